/**
 * A certificate of this node that the cluster signs, renewed before its end: another key, a request for it in the node's own name through the
 * link, and the answer, which is written down before it counts. What is there stays in force until then, whatever fails.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type X509Certificate } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { type nodeSigners, signingRequestOf, signingRequests, signingStateOf } from '../../kube/certificatesigning.ts'
import type { KeyPair } from '../../pki/certificate.ts'
import { issuedCertificate } from '../../pki/issued.ts'
import { signingRequest } from '../../pki/signingrequest.ts'
import { askJson, type JsonAnswer } from '../askjson.ts'
import type { Upstream } from '../upstream.ts'

type Parts = {
  readonly use: keyof typeof nodeSigners
  readonly node: string
  readonly ask: Upstream['ask']
  /** Whether there is a link over which to ask. */
  readonly isLinked: () => boolean
  /** Undefined: there is none yet. `foreign`: it is renewed in another way. */
  readonly current: () => X509Certificate | 'foreign' | undefined
  /** One of them has to have signed it; undefined: they are not known here. */
  readonly authorities?: () => Promise<readonly X509Certificate[] | undefined>
  /** What it is to answer to; a client's to nothing. */
  readonly hosts?: () => Promise<readonly string[]>
  readonly keep: (pair: KeyPair) => Promise<void>
  readonly clock: Clock
  /** Trusted time, where the machine's clock is not. */
  readonly now: () => number
  readonly log: Log
  readonly random?: () => number
}

/** Of its life, when another is asked for; by chance up to a tenth later, so that edges that joined together do not ask together. */
const dueAt = 0.7
const lookMsMax = 60_000
const lookMsMin = 1_000
/** How long a signature is waited for: the request is looked at once a second at first. Where an operator approves by hand, it is looked at again later. */
const signedMsMax = 60_000
const looksMs = [500, 1_000, 2_000, 5_000]
/** After a failure: a tenth of what is left of its life, within these. */
const [retryMsMin, retryMsMax] = [5_000, 3_600_000]
const answerMsMax = 10_000
const answerBytesMax = 256 * 1024

export class ClusterSigned {
  readonly #parts: Parts
  /** By chance, at the start. */
  readonly #share: number
  #notBefore = 0
  /** Of a request that was not signed yet: the same key asks again. */
  #key: string | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#share = (parts.random ?? Math.random)()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, use, isLinked } = this.#parts
    while (!signal.aborted) {
      const leftMs = this.#leftMs()
      if (leftMs <= 0 && isLinked() && clock.steady() >= this.#notBefore) {
        await this.#renew(signal).catch((error: unknown) => {
          this.#notBefore = clock.steady() + this.#retryMs()
          log.warn('certificate.renewal', { of: use, why: reasonOf(error) })
        })
      }
      await sleep(clock, Math.min(lookMsMax, Math.max(lookMsMin, leftMs)), signal)
    }
  }

  /** Until another is due. */
  #leftMs(): number {
    const current = this.#parts.current()
    if (current === 'foreign') return Number.POSITIVE_INFINITY
    if (current === undefined) return 0
    const [from, until] = [current.validFromDate.getTime(), current.validToDate.getTime()]
    return from + (until - from) * (dueAt + this.#share / 10) - this.#parts.now()
  }

  #retryMs(): number {
    const current = this.#parts.current()
    const left = current instanceof Object ? current.validToDate.getTime() - this.#parts.now() : 0
    return Math.min(retryMsMax, Math.max(retryMsMin, left / 10))
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { use, node, now, keep, log, authorities: known } = this.#parts
    this.#key ??= newKey()
    const key = this.#key
    const name = await this.#request(key)
    const text = await this.#signed(name, signal)
    if (text === undefined) return
    const authorities = await known?.()
    const asked = { text, key, node, use: use === 'client' ? 'client' : 'server', now: now() } as const
    const issued = issuedCertificate({ ...asked, ...(authorities !== undefined && { authorities }) })
    this.#key = undefined
    if ('why' in issued) throw new Error(`what the cluster signed in ${name} is not what was asked for: ${issued.why}`)
    await keep({ cert: issued.cert, key })
    log.info('certificate.renewed', { of: use, request: name })
  }

  async #request(key: string): Promise<string> {
    const { use, node, hosts } = this.#parts
    const subject = { commonName: `system:node:${node}`, organization: 'system:nodes' }
    const request = signingRequest({ subject, hosts: (await hosts?.()) ?? [] }, createPrivateKey(key))
    const digest = createHash('sha256').update(createPublicKey(key).export({ type: 'spki', format: 'der' }))
    const name = `ake-${use}-${digest.digest('hex').slice(0, 40)}`
    const { status, text } = await this.#ask('POST', signingRequests, signingRequestOf({ name, request, use }))
    // There already: asked for before, and not signed in time.
    if (status === 201 || status === 409) return name
    throw new Error(`the API server answered ${status} to the request for a certificate (${messageIn(text)})`)
  }

  /** Undefined: this edge ends. */
  async #signed(name: string, signal: AbortSignal): Promise<string | undefined> {
    const { clock, use } = this.#parts
    const endsAt = clock.steady() + signedMsMax
    for (let look = 0; !signal.aborted; look++) {
      await sleep(clock, looksMs[look] ?? (looksMs.at(-1) as number), signal)
      const { status, text } = await this.#ask('GET', `${signingRequests}/${name}`)
      if (status !== 200) throw new Error(`the API server answered ${status} for the request ${name}`)
      const state = signingStateOf(JSON.parse(text))
      if (state.state === 'issued') return state.certificate
      if (state.state !== 'pending') {
        this.#key = undefined
        throw new Error(`the request ${name} was ${state.state} (${state.why})`)
      }
      if (clock.steady() < endsAt) continue
      const remedy =
        use === 'client'
          ? 'apply the bindings of deploy/hub.yaml'
          : `"kubectl certificate approve ${name}" after a look at it`
      throw new Error(
        `the request ${name} is ${state.approved ? 'approved and not signed' : `not approved: ${remedy}`}`,
      )
    }
    return undefined
  }

  #ask(method: string, path: string, content?: object): Promise<JsonAnswer> {
    const { ask, node } = this.#parts
    const identity = { kind: 'certificate', name: `system:node:${node}` } as const
    const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
    return askJson({ ask }, { method, path, content, identity, ...limits })
  }
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function messageIn(text: string): string {
  try {
    return String((JSON.parse(text) as { message?: unknown }).message).slice(0, 300)
  } catch {
    return 'without a word'
  }
}
