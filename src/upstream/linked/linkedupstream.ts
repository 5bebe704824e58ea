/**
 * The API server reached through a hub. Whether it can be is told by the link: a ping that its hub answers, at the pace of an idle
 * link, since a request each time would cost more than the rest of an idle day. Where the hub could not have a request answered,
 * probes are requests to the API server until one is.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Caller } from '../../kube/caller.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import { Checker } from '../checker.ts'
import type { CredentialLife } from '../credential.ts'
import type { Sign } from '../judgement.ts'
import { standardLimits, type UpstreamLimits } from '../limits.ts'
import { isBalancer } from '../probe.ts'
import { type ToldSigns, toldDocuments } from '../told.ts'
import {
  type CallerCertificate,
  type Connected,
  type EdgeUpstream,
  type Identity,
  type NamedIdentity,
  type Reachability,
  type Speaking,
  Unspoken,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../upstream.ts'
import { readWhole } from '../whole.ts'
import type { EdgeLink } from './edgelink.ts'
import type { FollowedHubCredential } from './hubcredential.ts'
import { LinkedRequests } from './linked.ts'
import type { LiveLink } from './livelink.ts'

type Parts = {
  readonly link: EdgeLink
  /** Of its hubs. */
  readonly addresses: readonly URL[]
  /** Whose certificate the link's is. */
  /** What keeps the credential in force, each in its way. */
  readonly renewal?: readonly { run(signal: AbortSignal): Promise<void> }[]
  readonly credential: Pick<FollowedHubCredential, 'user' | 'complaints' | 'life' | 'observe' | 'run'>
  readonly userAgent: string
  readonly clock: Clock
  readonly log: Log
  readonly probeEveryMs?: number
  readonly limits?: Partial<UpstreamLimits>
}

export class LinkedUpstream implements EdgeUpstream {
  readonly #parts: Parts
  readonly #limits: UpstreamLimits
  readonly #requests: LinkedRequests
  readonly #checker: Checker
  /** The hub is there, and what is behind it was not. */
  #isDoubted = false
  /** By caller, over which link and when the hub said that it does not speak for it. */
  readonly #unspoken = new Map<string, { readonly over: LiveLink; readonly at: number; readonly why: string }>()

  constructor(parts: Parts) {
    const { link, credential, userAgent, clock, log, probeEveryMs = sessionLimits.keepaliveMsMax } = parts
    this.#parts = parts
    this.#limits = { ...standardLimits, ...parts.limits }
    this.#requests = new LinkedRequests({
      ...{ node: credential.user, userAgent, clock },
      streams: () => link.current?.streams,
      heardAt: () => link.current?.heardAt ?? Number.NEGATIVE_INFINITY,
      failed: (why) => this.#doubt(why),
    })
    this.#checker = new Checker({
      ...{ clock, log, limits: this.#limits, everyMs: probeEveryMs, awayEveryMs, note: () => undefined },
      probe: () => this.#probe(),
    })
  }

  /** By the link that there is: what another hub said before counts no more. */
  readonly told: ToldSigns = {
    of: (document) => {
      const sign = this.#parts.link.current?.signs[toldDocuments.indexOf(document)]
      return sign === undefined || sign.length === 0 ? undefined : sign
    },
    observe: (listener) => this.#parts.link.observeSigns(listener),
  }

  get reachability(): Reachability {
    return this.#checker
  }

  /** As the hub said when it welcomed the link. */
  get keepsAdministrator(): boolean {
    return this.#parts.link.current?.welcome?.trustsEdges === false
  }

  /** Not where the hub said of this caller a moment ago that it does not. */
  speaksFor({ caller, chain }: NamedIdentity): Speaking {
    const { link, clock } = this.#parts
    const { current } = link
    if (chain === undefined || current?.streams?.takesCertificates !== true) return { yes: false, why: '' }
    const refused = this.#unspoken.get(keyOf(caller))
    const isRefused = refused?.over === current && clock.steady() - refused.at < unspokenMs
    return isRefused ? { yes: false, why: refused.why } : { yes: true, why: '' }
  }

  get complaints(): readonly string[] {
    return this.#parts.credential.complaints
  }

  /** The hub stands for one caller that has a certificate: the link's own node. */
  certificateOf(name: string): CallerCertificate {
    return name === this.#parts.credential.user ? { organizations: nodeOrganizations } : undefined
  }

  /** The caller whom the hub stands for is always the same, whatever certificate the link has. */
  credentialVersion(name: string): string {
    return name === this.#parts.credential.user ? 'hub' : ''
  }

  credentials(): readonly CredentialLife[] {
    return [this.#parts.credential.life]
  }

  onRenewed(listener: () => void): () => void {
    return this.#parts.credential.observe(listener)
  }

  addresses(): readonly { readonly url: string; readonly current: boolean; readonly why: string }[] {
    const { link, addresses } = this.#parts
    const isLinked = link.current !== undefined
    return addresses.map(({ href }) => {
      const current = href === link.address
      const why = isLinked ? 'the hub answers' : link.why
      return { url: href, current, why: current ? why : 'not in use' }
    })
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const answer = await this.#heeding(asked.identity, () => this.#requests.ask(asked))
    if (isBalancer(answer)) this.#doubt(`nobody behind the hub (${answer.status})`)
    return answer
  }

  async connect(asked: UpstreamRequest): Promise<Connected> {
    return await this.#heeding(asked.identity, () => this.#requests.connect(asked))
  }

  async freshen(withinMs: number): Promise<void> {
    await this.#parts.link.current?.freshen(withinMs)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { link } = this.#parts
    const deaf = link.observe(() => {
      this.#isDoubted = false
      this.#checker.probeAnew()
    })
    const { credential, renewal } = this.#parts
    await Promise.all([link, this.#checker, credential, ...(renewal ?? [])].map((one) => one.run(signal)))
    deaf()
  }

  /** Remembers the callers for whom the hub does not speak. */
  async #heeding<Answer>(identity: Identity, ask: () => Promise<Answer>): Promise<Answer> {
    const { link, clock } = this.#parts
    try {
      return await ask()
    } catch (error) {
      if (error instanceof Unspoken && identity.kind === 'named' && link.current !== undefined) {
        this.#unspoken.set(keyOf(identity.caller), { over: link.current, at: clock.steady(), why: error.message })
        if (this.#unspoken.size > unspokenMax) this.#unspoken.delete(this.#unspoken.keys().next().value as string)
      }
      throw error
    }
  }

  #doubt(why: string): void {
    this.#isDoubted = true
    this.#checker.suspect(why)
  }

  async #probe(): Promise<Sign> {
    const { link, clock } = this.#parts
    const { current, why } = link
    if (current === undefined) return { kind: 'probe failed', why, certain: true, alive: false }
    const startedMs = clock.steady()
    if (this.#isDoubted) return await this.#probeBeyond(startedMs)
    const { probeMsMax } = this.#limits
    if (await current.ask(probeMsMax)) {
      const answeredMs = clock.steady()
      // A hub that has not heard of the API server for a while does not know whether it is there.
      if (answeredMs - current.freshAt > silentMsMax) return await this.#probeBeyond(startedMs)
      return { kind: 'probe answered', rttMs: answeredMs - startedMs }
    }
    const alive = current.heardAt > startedMs
    return { kind: 'probe failed', why: `the hub did not answer within ${probeMsMax} ms`, certain: false, alive }
  }

  /** In the name of the link's own node, for whom any hub asks. */
  async #probeBeyond(startedMs: number): Promise<Sign> {
    const { clock, credential } = this.#parts
    const { probeMsMax, probeBytesMax } = this.#limits
    const failed = (why: string): Sign => ({ kind: 'probe failed', why, certain: true, alive: false })
    try {
      const asked = {
        method: 'GET',
        path: '/readyz',
        identity: { kind: 'certificate', name: credential.user },
      } as const
      const answer = await this.#requests.ask({ ...asked, headMsMax: probeMsMax })
      await readWhole(answer, probeBytesMax)
      if (answer.status >= 500) return failed(`the API server behind the hub is not ready (${answer.status})`)
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error))
    }
    this.#isDoubted = false
    return { kind: 'probe answered', rttMs: clock.steady() - startedMs }
  }
}

/** A watch that lives gives a sign of life every few seconds; one that is begun anew takes about as long. */
const silentMsMax = 30_000

/** A request through the hub each time, 150 bytes: an API server that is back is known of as soon as without a hub. */
const awayEveryMs = 5_000

/** A policy that is written for a caller counts within this time. */
const unspokenMs = 10_000
/** More people with certificates than one node has. */
const unspokenMax = 1_024

function keyOf({ name, groups }: Caller): string {
  return JSON.stringify([name, ...groups])
}

const nodeOrganizations = ['system:nodes']
