/**
 * By what the cluster's tokens are known: its issuer and public keys, as the API server publishes them to those who may ask
 * (`system:service-account-issuer-discovery`). They are written down, so that a start without the cloud has them, and
 * while it is there they count for half a minute, as everything that a credential counts by (I5): one question for the
 * tokens of all callers. Where the edge may not read them, nothing is verified here.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import { signOf } from '../../upstream/told.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import { PublicKeys } from './publickeys.ts'

const validMs = 30_000 // how long a key that was taken away may go on verifying while the API server can be asked
const askAgainMs = 15_000 // from then on they are asked for beside the requests of a busy node
const pauseMs = 5_000 // no token, however many name keys that are not known, makes them be asked for more often
const failedMs = 30_000 // after a failure
const refusedMs = 600_000 // an operator may give the edge the right later, or publish them
const everyMs = 3_600_000 // so that what is written down is not old when the cloud goes
const replyMsMax = 10_000
const replyBytesMax = 256 << 10 // a key has about 500

export type IssuerRecord = {
  readonly issuer: string
  /** The document with the keys, as it came. */
  readonly jwks: string
  /** What tokens were for that the API server took: each is enough for another. */
  readonly audiences: readonly (readonly string[])[]
  /** The API server judged a token of these keys otherwise than it was judged here. */
  readonly differs: boolean
}

type Parts = {
  readonly upstream: Upstream
  readonly clock: Clock
  readonly stored: Buffer | undefined
  readonly keep: (value: Buffer) => void
  /** Others count from now on. */
  readonly changed: () => void
}

export class TokenKeys {
  readonly #parts: Parts
  #record: IssuerRecord | undefined
  #keys: PublicKeys | undefined
  #confirmedAt = Number.NEGATIVE_INFINITY
  #notBefore = Number.NEGATIVE_INFINITY
  #asking: Promise<void> | undefined
  /** Of both documents as they last came. */
  #sign: Buffer | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#record = revived(parts.stored)
    this.#keys = this.#record && PublicKeys.read(this.#record.jwks)
  }

  get record(): IssuerRecord | undefined {
    return this.#record
  }

  get keys(): PublicKeys | undefined {
    return this.#keys
  }

  /** Whether they count while the API server can be asked; such as soon will not are asked for beside. */
  isFresh(): boolean {
    const ageMs = this.#parts.clock.steady() - this.#confirmedAt
    if (ageMs >= askAgainMs) void this.refresh()
    return ageMs < validMs
  }

  /** Something else is known of the issuer. */
  note(known: Partial<Pick<IssuerRecord, 'audiences' | 'differs'>>): void {
    if (this.#record === undefined) return
    this.#record = { ...this.#record, ...known }
    this.#parts.keep(Buffer.from(JSON.stringify(this.#record)))
  }

  /** Resolves when they were asked for, or at once where that is too soon. */
  refresh(): Promise<void> {
    const { clock, upstream } = this.#parts
    if (this.#asking !== undefined) return this.#asking
    if (upstream.reachability.state !== 'reachable' || clock.steady() < this.#notBefore) return Promise.resolve()
    this.#asking = this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, upstream } = this.#parts
    // What the hub says to be as it is known need not be asked for until it has to count for a token.
    const look = () => (this.#isTold() ? Promise.resolve() : this.refresh())
    const stops = [upstream.reachability.observe(() => void look()), upstream.told?.observe(() => void look())]
    while (!signal.aborted) {
      await look()
      await sleep(clock, this.#record === undefined ? failedMs : everyMs, signal)
    }
    for (const stop of stops) stop?.()
  }

  #isTold(): boolean {
    const said = this.#parts.upstream.told?.of('keys')
    return said !== undefined && this.#sign?.equals(said) === true
  }

  async #ask(): Promise<void> {
    const { clock } = this.#parts
    const askedAt = clock.steady()
    const [found, jwks] = await Promise.all([
      this.#fetch('/.well-known/openid-configuration'),
      this.#fetch('/openid/v1/jwks'),
    ])
    const issuer = typeof found === 'string' ? issuerIn(found) : undefined
    if (typeof found !== 'string' || issuer === undefined || typeof jwks !== 'string') {
      const isRefused = [found, jwks].some((one) => typeof one === 'number' && one < 500)
      this.#notBefore = askedAt + (isRefused ? refusedMs : failedMs)
      return
    }
    this.#notBefore = askedAt + pauseMs
    this.#sign = signOf(found, jwks)
    this.#take(issuer, jwks)
    this.#confirmedAt = askedAt
  }

  #take(issuer: string, jwks: string): void {
    const before = this.#record
    if (before?.issuer === issuer && before.jwks === jwks) return
    this.#keys = PublicKeys.read(jwks)
    const audiences = before?.issuer === issuer ? before.audiences : []
    this.#record = { issuer, jwks, audiences, differs: false }
    this.#parts.keep(Buffer.from(JSON.stringify(this.#record)))
    this.#parts.changed()
  }

  /** Its text, or the status that is not 200; undefined: there was no answer. */
  async #fetch(path: string): Promise<string | number | undefined> {
    const { clock, upstream } = this.#parts
    const ended = new AbortController()
    const cancel = clock.setTimer(replyMsMax, () => ended.abort())
    try {
      const { status, body } = await upstream.ask({
        ...{ method: 'GET', path, headers: { accept: 'application/json, application/jwk-set+json' } },
        ...{ identity: { kind: 'edge' }, signal: ended.signal, headMsMax: replyMsMax },
      })
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of body) {
        size += chunk.length
        if (size > replyBytesMax) return undefined
        chunks.push(chunk)
      }
      return status === 200 ? Buffer.concat(chunks).toString('utf8') : status
    } catch {
      return undefined
    } finally {
      cancel()
    }
  }
}

function issuerIn(document: string): string | undefined {
  try {
    const { issuer } = JSON.parse(document) as Record<string, unknown>
    return typeof issuer === 'string' && issuer !== '' ? issuer : undefined
  } catch {
    return undefined
  }
}

function revived(stored: Buffer | undefined): IssuerRecord | undefined {
  try {
    const { issuer, jwks, audiences, differs } = JSON.parse(String(stored)) as Record<string, unknown>
    if (typeof issuer !== 'string' || typeof jwks !== 'string' || !Array.isArray(audiences)) return undefined
    const lists = audiences.map((list: unknown) => (Array.isArray(list) ? list.map(String) : []))
    return { issuer, jwks, audiences: lists.filter((list) => list.length > 0), differs: differs === true }
  } catch {
    return undefined
  }
}
