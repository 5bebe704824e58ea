/** A box with a credential of a hub and nothing else of an edge: what who takes one can say over its link, and what it hears. */
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import type { InterestHeld } from '../../src/link/session/edgeinterest.ts'
import { dialTcp } from '../../src/upstream/dial.ts'
import { EdgeLink } from '../../src/upstream/linked/edgelink.ts'
import { FollowedHubCredential } from '../../src/upstream/linked/hubcredential.ts'
import { Hubs } from '../../src/upstream/linked/hubs.ts'
import { LinkedUpstream } from '../../src/upstream/linked/linkedupstream.ts'
import { CredentialRenewal } from '../../src/upstream/linked/renewal.ts'
import type { UpstreamRequest } from '../../src/upstream/upstream.ts'
import { readWhole } from '../../src/upstream/whole.ts'
import { BoxCopy } from './boxcopy.ts'

const answerBytesMax = 1024 * 1024

type Parts = {
  readonly file: string
  readonly ports: readonly number[]
  readonly hello?: string
  readonly clock?: Clock
}

export class Box {
  readonly link: EdgeLink
  readonly credential: FollowedHubCredential
  readonly #upstream: LinkedUpstream
  readonly #ending = new AbortController()
  readonly #running: Promise<void>
  /** Of each link, how long there was none before it: nothing where it was made beside the one before. */
  readonly gapsMs: number[] = []
  #since = performance.now()
  #current: EdgeLink['current']

  static async open(parts: Parts): Promise<Box> {
    const clock = parts.clock ?? systemClock
    const credential = await FollowedHubCredential.open({ path: parts.file, clock, log: silentLog })
    return new Box(parts, credential, clock)
  }

  private constructor({ ports, hello }: Parts, credential: FollowedHubCredential, clock: Clock) {
    this.credential = credential
    const log = silentLog
    const addresses = ports.map((port) => new URL(`wss://127.0.0.1:${port}`))
    const now = () => clock.now()
    const hubs = new Hubs({ addresses, credential, dial: dialTcp(), clock, log, now })
    this.link = new EdgeLink({
      ...{ hubs, edge: hello ?? credential.node, release: 'box', clock, log },
      known: () => ({ cluster: '', epoch: 0 }),
      admit: () => Promise.resolve(undefined),
    })
    // As an edge renews, within seconds instead of minutes.
    const limits = { spreadMs: 3_000, lookEveryMs: 500 }
    const renewal = [new CredentialRenewal({ link: this.link, credential, clock, now, log, limits })]
    this.#upstream = new LinkedUpstream({
      link: this.link,
      addresses,
      credential,
      renewal,
      userAgent: 'box',
      clock,
      log,
    })
    this.link.observe(() => this.#linked())
    this.#running = this.#upstream.run(this.#ending.signal)
  }

  /** As its node asks, with whatever headers. */
  async ask(
    path: string,
    more: Partial<UpstreamRequest> = {},
  ): Promise<{ readonly status: number; readonly body: string }> {
    const identity = { kind: 'certificate', name: this.credential.user } as const
    const answer = await this.#upstream.ask({ method: 'GET', path, identity, headers: {}, headMsMax: 10_000, ...more })
    return { status: answer.status, body: (await readWhole(answer, answerBytesMax)).toString() }
  }

  /** The pods of its node, mirrored and watched. */
  mirror(): Promise<BoxCopy> {
    return BoxCopy.open({ link: this.link, upstream: this.#upstream, node: this.credential.node })
  }

  /** What the hub says to an interest, of which the box claims to hold so much: `given`, `wait` until the hub has come as far, or why not. */
  wants(name: string, held: InterestHeld = { epoch: 0, version: 0, wish: 'anew' }): Promise<string> {
    const live = this.link.current
    if (live === undefined) return Promise.resolve(`no link: ${this.link.why}`)
    return new Promise((resolve) => {
      const subscribed = live.subscribe(name, held, {
        held: () => undefined,
        told: (effect) => {
          if (effect.effect === 'refused') resolve(`${effect.reason}: ${effect.sentence}`)
          else if (effect.effect === 'whole') resolve('given')
          else if (effect.effect === 'begins' && effect.start !== 'snapshot') answered(effect.start)
        },
        changed: (_, taken) => taken(),
        broken: (why) => resolve(`broken: ${why}`),
      })
      /** What it would have to go on with is let go of. */
      const answered = (start: string) => {
        subscribed.leave()
        resolve(start)
      }
    })
  }

  async end(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  #linked(): void {
    const { current } = this.link
    if (current === this.#current) return
    const now = performance.now()
    if (current === undefined) this.#since = now
    else this.gapsMs.push(this.#current === undefined ? now - this.#since : 0)
    this.#current = current
  }
}
