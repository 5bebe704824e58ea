/**
 * A hub's state in a Secret of the cluster, for several hubs: of those that start at once one makes it, the others find it. The
 * API server's resourceVersion decides who was first.
 */
import { Unavailable, UsageError } from '../../base/fault.ts'
import { askJson, type JsonAnswer } from '../../upstream/askjson.ts'
import { Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { AnswerTooLarge } from '../../upstream/whole.ts'
import type { StateStore, StoredState } from './keptstate.ts'
import { damaged, type StateTexts } from './state.ts'

export type SecretName = { readonly namespace: string; readonly name: string }

type Parts = SecretName & { readonly upstream: Pick<Upstream, 'ask'> }

type Secret = {
  readonly metadata?: {
    readonly resourceVersion?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly data?: Readonly<Record<string, string>>
}

/** Tells a Secret that has lost its state from an empty one that an operator made for it. */
const mark = 'ake-hub-state'
const answerBytesMax = 2 * 1024 * 1024 // a Secret has 1 MiB at most, and a third more in base64
const answerMsMax = 10_000

export class SecretState implements StateStore {
  readonly name: string
  readonly #parts: Parts
  readonly #collection: string
  /** One without anything in it: it is filled, not made. */
  #empty: Secret | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.name = `the Secret ${parts.namespace}/${parts.name}`
    this.#collection = `/api/v1/namespaces/${parts.namespace}/secrets`
  }

  async read(): Promise<StoredState | undefined> {
    const { status, object } = await this.#ask('get', 'GET', this.#path)
    this.#empty = undefined
    if (status === 404) return undefined
    const { metadata = {}, data = {} } = object
    if (Object.keys(data).length === 0) {
      if (metadata.annotations?.[mark] !== undefined) throw damaged(this.name, 'it is empty')
      this.#empty = object
      return undefined
    }
    const texts = Object.entries(data).map(([name, text]) => [name, Buffer.from(text, 'base64').toString()] as const)
    return { texts: Object.fromEntries(texts), version: JSON.stringify(object) }
  }

  async create(texts: StateTexts): Promise<boolean> {
    if (this.#empty !== undefined) return await this.#put(this.#empty, texts)
    const { namespace, name } = this.#parts
    const metadata = { namespace, name, annotations: { [mark]: '1' } }
    const secret = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data: encoded(texts) }
    const { status } = await this.#ask('create', 'POST', this.#collection, secret)
    if (status === 404) throw new UsageError(`there is no namespace "${namespace}" for ${this.name}: create it`)
    return status !== 409
  }

  replace({ version }: StoredState, texts: StateTexts): Promise<boolean> {
    return this.#put(JSON.parse(version) as Secret, texts)
  }

  get #path(): string {
    return `${this.#collection}/${this.#parts.name}`
  }

  /** Everything else in it stays, the version it was read at included: that one is asked for. */
  async #put(before: Secret, texts: StateTexts): Promise<boolean> {
    const annotations = { ...before.metadata?.annotations, [mark]: '1' }
    const after = { ...before, metadata: { ...before.metadata, annotations }, data: encoded(texts) }
    const { status } = await this.#ask('update', 'PUT', this.#path, after)
    return status !== 409 && status !== 404
  }

  async #ask(
    verb: string,
    method: string,
    path: string,
    content?: object,
  ): Promise<{ readonly status: number; readonly object: Secret }> {
    const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
    let answer: JsonAnswer
    try {
      answer = await askJson(this.#parts.upstream, { method, path, content, ...limits })
    } catch (error) {
      if (!(error instanceof Unreachable) && !(error instanceof AnswerTooLarge)) throw error
      throw new Unavailable(`cannot ${verb} ${this.name}: ${error.message}`)
    }
    const { status, text } = answer
    if (status === 401 || status === 403) {
      throw new UsageError(
        `the kubeconfig's user may not ${verb} ${this.name} (${status}): allow it to get, create and update that Secret`,
      )
    }
    const isExpected = status < 300 || status === 404 || status === 409
    const object = isExpected ? parsed(text) : undefined
    if (object === undefined) {
      throw new Unavailable(`cannot ${verb} ${this.name}: the API server answered ${status}`)
    }
    return { status, object }
  }
}

function encoded(texts: StateTexts): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]))
}

function parsed(text: string): Secret | undefined {
  try {
    const object: unknown = JSON.parse(text)
    return typeof object === 'object' && object !== null ? (object as Secret) : undefined
  } catch {
    return undefined
  }
}
