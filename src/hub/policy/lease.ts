/**
 * Which of several hubs does what only one of them should: the one that holds a Lease of the cluster. A holder that is not heard of for its time is
 * replaced, by each hub's own clock, so that clocks need not agree. Held by two for a moment it does no harm: both write the same.
 */
import type { Clock } from '../../base/clock.ts'
import { askJson, type JsonAnswer } from '../../upstream/askjson.ts'
import { Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { AnswerTooLarge } from '../../upstream/whole.ts'

export type LeasePlace = { readonly namespace: string; readonly name: string }

type Parts = {
  readonly upstream: Pick<Upstream, 'ask'>
  readonly place: LeasePlace
  /** This hub. */
  readonly holder: string
  readonly clock: Clock
}

/** A hub that died is followed by another after this time; nothing that waits for it is urgent. */
export const leaseMs = 60_000
const answerMsMax = 5_000
const answerBytesMax = 64 * 1024

type LeaseObject = {
  readonly metadata?: { readonly name?: string; readonly resourceVersion?: string }
  readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string }
}

export class HubLease {
  readonly #parts: Parts
  /** What was last seen of another holder, and since when it is so. */
  #seen: { readonly text: string; readonly at: number } | undefined
  /** What keeps it from being had, as a sentence. */
  why = ''

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Takes it or goes on holding it, unless another hub does; to be called more often than its time. */
  async take(): Promise<boolean> {
    try {
      return await this.#take()
    } catch (error) {
      if (!(error instanceof Unreachable || error instanceof AnswerTooLarge || error instanceof SyntaxError))
        throw error
      this.why = error.message
      return false
    }
  }

  async #take(): Promise<boolean> {
    const { place, holder, clock } = this.#parts
    const collection = `/apis/coordination.k8s.io/v1/namespaces/${place.namespace}/leases`
    const found = await this.#ask('GET', `${collection}/${place.name}`)
    if (found.status !== 200 && found.status !== 404) return false
    const lease = found.status === 200 ? (JSON.parse(found.text) as LeaseObject) : undefined
    const { holderIdentity = '', renewTime = '' } = lease?.spec ?? {}
    const text = `${holderIdentity} ${renewTime}`
    if (this.#seen?.text !== text) this.#seen = { text, at: clock.steady() }
    const isFree = holderIdentity === '' || holderIdentity === holder || clock.steady() - this.#seen.at >= leaseMs
    if (!isFree) return false
    const spec = {
      ...{ holderIdentity: holder, leaseDurationSeconds: leaseMs / 1_000 },
      // As Kubernetes writes moments of leases.
      renewTime: new Date(clock.now()).toISOString().replace('Z', '000Z'),
    }
    const metadata = { name: place.name, namespace: place.namespace, ...lease?.metadata }
    const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
    const { status } =
      lease === undefined
        ? await this.#ask('POST', collection, object)
        : await this.#ask('PUT', `${collection}/${place.name}`, object)
    return status < 300
  }

  async #ask(method: string, path: string, content?: object): Promise<JsonAnswer> {
    const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
    const answer = await askJson(this.#parts.upstream, { method, path, content, ...limits })
    const { status, text } = answer
    // Another one was faster, or it is not there yet: nothing to tell.
    const isUsual = status < 300 || status === 409 || status === 404
    this.why = isUsual ? '' : `${method} ${path}: ${status} ${text.slice(0, 300)}`
    return answer
  }
}
