/**
 * How a machine becomes an edge: with a bootstrap token and the digest of the hub's authority it gets, over one plain HTTPS connection after
 * the other, the authorities of both sides and a client certificate of its node, which the cluster signs. The hub is believed by that digest
 * alone. What is begun and not ended is gone on with: the key is written before the hub hears of it, and names its request.
 */
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { type Clock, sleep } from '../base/clock.ts'
import { Unavailable, UsageError } from '../base/fault.ts'
import type { SigningState } from '../kube/certificatesigning.ts'
import { type KeyPair, pemsIn } from '../pki/certificate.ts'
import { issuedCertificate } from '../pki/issued.ts'
import { signingRequest } from '../pki/signingrequest.ts'
import { type AskHub, HubSaid, printable } from './hubasking.ts'

export type JoinedAuthorities = {
  /** PEM: those by which the cluster knows clients, and those by which the hub is believed. */
  readonly cluster: string
  readonly hub: string
}

/** The key of a join that is not ended. */
export interface KeptKey {
  /** PEM, or undefined where none was begun. */
  read(): Promise<string | undefined>
  write(key: string): Promise<void>
  remove(): Promise<void>
}

/** What became of a request; `revoked`: it was signed, and counts at no hub. */
type JoinState = SigningState | { readonly state: 'revoked'; readonly why: string }

type Parts = {
  readonly ask: AskHub
  readonly node: string
  /** A machine of that name is gone. */
  readonly replace: boolean
  readonly key: KeptKey
  /** How long a signature is waited for. */
  readonly withinMs: number
  readonly clock: Clock
  /** A line for the operator who waits. */
  readonly told: (line: string) => void
}

/** What a clock may be off: less than what a signer backdates a certificate by. */
const clockMsMax = 4 * 60_000
/** Between two looks at a request: kube-controller-manager takes a fraction of a second. */
const looksMs = [400, 600, 1_000, 2_000]
/** Between two tries where the hub was away or busy, unless it says when. */
const retryMs = 2_000

export class Join {
  readonly #parts: Parts
  readonly #endsAt: number

  constructor(parts: Parts) {
    this.#parts = parts
    this.#endsAt = parts.clock.steady() + parts.withinMs
  }

  /** What both sides are believed by; the token counts, and the clock is right. */
  async authorities(): Promise<JoinedAuthorities> {
    const { object, hubNow } = await this.#asked('GET', 'authorities')
    refuseClock(this.#parts.clock.now(), hubNow)
    const { cluster, hub } = object as { readonly cluster?: unknown; readonly hub?: unknown }
    const [ofCluster, ofHub] = [textOf(cluster), textOf(hub)]
    if (ofCluster === '' || ofHub === '') throw new Unavailable('the hub told no authorities: is it a newer release?')
    return { cluster: ofCluster, hub: ofHub }
  }

  /** The certificate and key of the node. Throws a sentence that says what to do. */
  async certificate({ cluster }: Pick<JoinedAuthorities, 'cluster'>): Promise<KeyPair> {
    const { node, key: kept, clock } = this.#parts
    const key = (await kept.read()) ?? (await this.#newKey())
    const name = await this.#request(key)
    const state = await this.#signed(name)
    if (state.state === 'pending') throw new Unavailable(waiting(name, state.approved))
    if (state.state === 'revoked') {
      await kept.remove()
      throw new UsageError(printable(state.why))
    }
    if (state.state !== 'issued') {
      await kept.remove()
      throw new UsageError(
        `the cluster has ${state.state === 'denied' ? 'denied' : 'not signed'} the request ${name} (${printable(state.why)}): see to that, and run the same command again, which makes another`,
      )
    }
    const authorities = pemsIn(cluster).map((pem) => new X509Certificate(pem))
    const issued = issuedCertificate({
      ...{ text: state.certificate, key, node, use: 'client', authorities, now: clock.now() },
    })
    if ('cert' in issued) return { cert: issued.cert, key }
    await kept.remove()
    throw new Unavailable(`the cluster signed something else than was asked for in ${name}: ${issued.why}. Try again`)
  }

  async #newKey(): Promise<string> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    await this.#parts.key.write(key)
    return key
  }

  async #request(key: string): Promise<string> {
    const { node, replace } = this.#parts
    const subject = { commonName: `system:node:${node}`, organization: 'system:nodes' }
    const request = signingRequest({ subject }, createPrivateKey(key))
    const { object } = await this.#asked('POST', 'requests', { node, request, replace })
    const { name } = object as { readonly name?: unknown }
    if (typeof name === 'string' && /^[a-z0-9-]{1,100}$/.test(name)) return name
    throw new Unavailable('the hub told no name of the request: is it a newer release?')
  }

  /** Pending where the time is over. */
  async #signed(name: string): Promise<JoinState> {
    const { clock, told } = this.#parts
    for (let look = 0; ; look++) {
      await sleep(clock, looksMs[look] ?? (looksMs.at(-1) as number))
      const { object } = await this.#asked('GET', `requests/${name}`)
      const state = object as JoinState
      if (state.state !== 'pending' || clock.steady() >= this.#endsAt) return state
      if (look === looksMs.length) told(`waiting for the cluster to sign ${name}`)
    }
  }

  /** What is away or busy is asked again while there is time. */
  async #asked(method: string, path: string, content?: object): ReturnType<AskHub> {
    const { ask, clock, told } = this.#parts
    for (let tries = 0; ; tries++) {
      try {
        return await ask(method, path, content)
      } catch (error) {
        const waitMs =
          error instanceof HubSaid ? error.retryAfterMs : error instanceof Unavailable ? retryMs : undefined
        if (waitMs === undefined || clock.steady() + waitMs >= this.#endsAt) throw error
        if (tries === 0) told(`${error instanceof Error ? error.message : ''} (trying again)`)
        await sleep(clock, waitMs)
      }
    }
  }
}

function refuseClock(here: number, hub: number): void {
  if (Math.abs(here - hub) <= clockMsMax) return
  const [own, its] = [here, hub].map((ms) => new Date(ms).toISOString().slice(0, 19).replace('T', ' '))
  throw new UsageError(
    `the clock of this machine says ${own} and that of the hub ${its} (UTC), so a certificate would not count here: set it (timedatectl set-ntp true, or date), and run the same command again`,
  )
}

function waiting(name: string, approved: boolean): string {
  const again = 'then run the same command again: it goes on with this request'
  return approved
    ? `the request ${name} is approved, but nobody has signed it: see whether kube-controller-manager runs and has --cluster-signing-cert-file, ${again}`
    : `nobody has approved the request ${name}: apply the bindings of deploy/hub.yaml, by which the cluster does it itself, or "kubectl certificate approve ${name}", ${again}`
}

/** PEM, one behind the other, whatever else stands there left out. */
function textOf(given: unknown): string {
  const texts = Array.isArray(given) ? given.filter((one): one is string => typeof one === 'string') : []
  return pemsIn(texts.join('\n')).join('')
}
