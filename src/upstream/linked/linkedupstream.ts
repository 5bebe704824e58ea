/**
 * The API server reached through a hub. Whether it can be is told by the link: a ping that its hub answers, at the pace of an idle
 * link, since a request each time would cost more than the rest of an idle day. Where the hub could not have a request answered,
 * probes are requests to the API server until one is.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import { Checker } from '../checker.ts'
import type { CredentialLife } from '../credential.ts'
import type { Sign } from '../judgement.ts'
import { standardLimits, type UpstreamLimits } from '../limits.ts'
import { isBalancer } from '../probe.ts'
import type {
  CallerCertificate,
  Connected,
  EdgeUpstream,
  Reachability,
  UpstreamRequest,
  UpstreamResponse,
} from '../upstream.ts'
import { readWhole } from '../whole.ts'
import type { EdgeLink } from './edgelink.ts'
import type { FollowedHubCredential } from './hubcredential.ts'
import { LinkedRequests } from './linked.ts'

type Parts = {
  readonly link: EdgeLink
  /** Of its hubs. */
  readonly addresses: readonly URL[]
  /** Whose certificate the link's is. */
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
      ...{ clock, log, limits: this.#limits, everyMs: probeEveryMs, note: () => undefined },
      probe: () => this.#probe(),
    })
  }

  get reachability(): Reachability {
    return this.#checker
  }

  /** As the hub said when it welcomed the link. */
  get keepsAdministrator(): boolean {
    return this.#parts.link.current?.welcome?.trustsEdges === false
  }

  get complaints(): readonly string[] {
    return this.#parts.credential.complaints
  }

  /** The hub stands for one caller that has a certificate: the link's own node. */
  certificateOf(name: string): CallerCertificate {
    return name === this.#parts.credential.user ? { organizations: nodeOrganizations } : undefined
  }

  /** Whom the hub stands for is always the same, whatever certificate the link has. */
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
    const answer = await this.#requests.ask(asked)
    if (isBalancer(answer)) this.#doubt(`nobody behind the hub (${answer.status})`)
    return answer
  }

  async connect(asked: UpstreamRequest): Promise<Connected> {
    return await this.#requests.connect(asked)
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
    await Promise.all([link.run(signal), this.#checker.run(signal), this.#parts.credential.run(signal)])
    deaf()
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

const nodeOrganizations = ['system:nodes']
