/**
 * What callers of this edge may do, as its hub tells it: for each caller that is seen a stream of the link (`tunnel/rules`), opened
 * with the credential that the caller has shown, and open as long as the caller is seen now and then. Credentials are in
 * memory alone: after a start of the edge a caller's rules are those that were told last, until it asks again. What keeps
 * them hears what becomes of the stream, since rules of which no change was heard while there was a link are of the past.
 */
import { inflateRawSync } from 'node:zlib'
import { type Clock, sleep } from '../../base/clock.ts'
import type { Caller } from '../../kube/caller.ts'
import { CarriedToken, isBearable, isCarriedChain } from '../../tunnel/credentials.ts'
import type { TunnelDuplex } from '../../tunnel/duplex.ts'
import { decodeToldRules, encodeRulesQuestion, hearMessages, rulesPurpose } from '../../tunnel/rules/rules.ts'
import type { Identity } from '../upstream.ts'
import type { EdgeLink } from './edgelink.ts'
import type { LiveLink } from './livelink.ts'

/** As many as a hub tells of over one link; of more those that were seen last. */
const callersMax = 64
/** One that has not asked for this long is not told of any longer. */
const unseenMsMax = 75 * 60_000
/** After a stream that the hub has ended: it could not tell who that is, or has no room. */
const retryMs = 60_000
const lookEveryMs = 60_000
/** Of rules unpacked, twice what a hub packs (`access/rbac/subjectrules`). */
const unpackedBytesMax = 512 * 1024

type RuledSubject = Pick<Caller, 'name' | 'groups'>

type Parts = {
  readonly link: Pick<EdgeLink, 'current' | 'observe'>
  readonly clock: Clock
  readonly rules: KeptRules
}

/** As `access/knownrules` keeps them. */
type KeptRules = {
  /** `text` as a hub writes rules, undefined where it tells none of this caller; `heardAt`: when they were last known to be current. */
  told(caller: RuledSubject, text: string | undefined, heardAt: () => number): void
  /**
   * `heard`, `unheard`: whether the hub hears of changes. `ended`: nothing more is told over a stream though there is a link; `cut`: it went with its link.
   * Resolves once what follows from that is written.
   */
  stands(caller: RuledSubject, news: 'heard' | 'unheard' | 'ended' | 'cut'): Promise<void>
}

/** Who is meant, as the hub can judge it. */
type Meant =
  | { readonly meant: 'credential'; readonly token?: CarriedToken; readonly certificate?: string }
  | { readonly meant: 'node' | 'anonymous' | 'subject' }

type SeenCaller = {
  readonly caller: RuledSubject
  meant: Meant
  seenAt: number
  stream: TunnelDuplex | undefined
  over: LiveLink | undefined
  isCurrent: boolean
  /** Whom the hub has told of last. */
  told: RuledSubject | undefined
  retryAt: number
}

export class LinkedRules {
  readonly #parts: Parts
  /** By name and groups, the one that was seen longest ago first. */
  readonly #callers = new Map<string, SeenCaller>()
  /** Each request of a busy caller comes by here. */
  readonly #known = new WeakMap<Caller, SeenCaller>()
  /** The edge ends: to its rules that is a cut. */
  #isEnding = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Such a caller asks here. */
  seen(identity: Identity, caller: Caller): void {
    const now = this.#parts.clock.steady()
    const known = this.#known.get(caller)
    if (known !== undefined && known.stream !== undefined && known.over === this.#parts.link.current) {
      known.seenAt = now
      return
    }
    const meant = meantBy(identity)
    if (meant !== undefined) this.#known.set(caller, this.#see(caller, meant))
  }

  /** The kubelet of this node has asked the API server about it. */
  reviewed(subject: RuledSubject): void {
    this.#see(subject, { meant: 'subject' })
  }

  async run(signal: AbortSignal): Promise<void> {
    const { link, clock } = this.#parts
    const deaf = link.observe(() => this.#openAll())
    while (!signal.aborted) {
      await sleep(clock, lookEveryMs, signal)
      if (!signal.aborted) this.#tidy()
    }
    deaf()
    this.#isEnding = true
    for (const { stream } of this.#callers.values()) stream?.destroy()
  }

  #see({ name, groups }: RuledSubject, meant: Meant): SeenCaller {
    const { clock } = this.#parts
    const key = JSON.stringify([name, ...[...new Set(groups)].sort()])
    const now = clock.steady()
    const caller = this.#callers.get(key) ?? {
      ...{ caller: { name, groups }, meant, seenAt: now, stream: undefined, over: undefined },
      ...{ isCurrent: false, told: undefined, retryAt: 0 },
    }
    // A token of today counts longer than one of an hour ago.
    if (meant.meant !== 'subject') caller.meant = meant
    caller.seenAt = now
    this.#callers.delete(key)
    this.#callers.set(key, caller)
    this.#open(caller)
    if (this.#callers.size > callersMax) this.#forget(this.#callers.keys().next().value as string)
    return caller
  }

  #openAll(): void {
    const { current } = this.#parts.link
    for (const caller of this.#callers.values()) {
      caller.retryAt = 0
      // Over another link nothing was told yet.
      if (current !== undefined && caller.over !== current) void this.#tellOf(caller, 'ended')
      this.#open(caller)
    }
  }

  async #tellOf({ told }: SeenCaller, news: Parameters<KeptRules['stands']>[1]): Promise<void> {
    if (told !== undefined && !this.#isEnding) await this.#parts.rules.stands(told, news)
  }

  #open(caller: SeenCaller): void {
    const { link, clock } = this.#parts
    const { current } = link
    if (current === undefined || (caller.stream !== undefined && caller.over === current)) return
    // A hub that trusts its edges lets them have the roles themselves.
    if (current.welcome?.trustsEdges !== false || clock.steady() < caller.retryAt) return
    caller.retryAt = clock.steady() + retryMs
    const { meant, token, certificate } = shownBy(caller.meant)
    if (certificate !== undefined && current.streams?.takesCertificates !== true) return
    const stream = current.streams?.open({ purpose: rulesPurpose, token, certificate })
    if (stream === undefined) return
    caller.stream = stream
    caller.over = current
    stream.write(encodeRulesQuestion({ meant, ...questioned(meant, caller.caller) }))
    this.#listen(caller, stream, current)
  }

  #listen(caller: SeenCaller, stream: TunnelDuplex, link: LiveLink): void {
    // What came over this link is as new as the link's last sign of life, as long as the hub says that it hears of changes.
    const heardAt = () => {
      const isLive = caller.stream === stream && caller.isCurrent && this.#parts.link.current === link
      return isLive ? link.heardAt : Number.NEGATIVE_INFINITY
    }
    const take = (bytes: Buffer) => {
      // The link was replaced, or the caller has not been seen for long.
      if (caller.stream !== stream) return
      const { saying, current, name, groups, rules } = decodeToldRules(bytes)
      caller.isCurrent = current !== 0 && saying !== 'none'
      // Without a name the credential does not count: that says nothing of the caller's rules.
      if (saying === 'rules' || (saying === 'none' && name !== '')) {
        caller.told = { name, groups }
        this.#parts.rules.told(caller.told, saying === 'rules' ? unpacked(rules) : undefined, heardAt)
      }
      void this.#tellOf(caller, caller.isCurrent ? 'heard' : 'unheard')
    }
    const over = () => {
      stream.destroy()
      if (caller.stream === stream) {
        caller.stream = undefined
        void this.#tellOf(caller, this.#parts.link.current === link ? 'ended' : 'cut')
      }
    }
    hearMessages(stream, { take, failed: over })
    stream.once('end', over)
    stream.once('close', over)
  }

  #tidy(): void {
    const now = this.#parts.clock.steady()
    for (const [key, { seenAt }] of [...this.#callers]) if (now - seenAt >= unseenMsMax) this.#forget(key)
    for (const caller of this.#callers.values()) this.#open(caller)
  }

  #forget(key: string): void {
    const caller = this.#callers.get(key)
    this.#callers.delete(key)
    if (caller === undefined) return
    const { stream } = caller
    caller.stream = undefined
    // That they do not count as current is on the disk before the hub stops telling of changes: a crash in between claims nothing.
    void this.#tellOf(caller, 'ended').finally(() => stream?.destroy())
  }
}

/** Undefined where a hub could not judge it. */
function meantBy(identity: Identity): Meant | undefined {
  switch (identity.kind) {
    case 'token':
      return isBearable(identity.token) ? { meant: 'credential', token: new CarriedToken(identity.token) } : undefined
    case 'named':
      if (identity.chain === undefined || !isCarriedChain(identity.chain)) return undefined
      return { meant: 'credential', certificate: identity.chain }
    case 'certificate':
      return { meant: 'node' }
    case 'anonymous':
      return { meant: 'anonymous' }
    default:
      return undefined
  }
}

function shownBy(meant: Meant): { meant: Meant['meant']; token: string | undefined; certificate: string | undefined } {
  if (meant.meant !== 'credential') return { meant: meant.meant, token: undefined, certificate: undefined }
  return { meant: 'credential', token: meant.token?.tell(), certificate: meant.certificate }
}

function questioned(meant: Meant['meant'], { name, groups }: RuledSubject): RuledSubject {
  return meant === 'subject' ? { name, groups } : { name: '', groups: [] }
}

/** What is too large, or none, makes no rules. */
function unpacked(rules: Buffer): string | undefined {
  try {
    return inflateRawSync(rules, { maxOutputLength: unpackedBytesMax }).toString('utf8')
  } catch {
    return undefined
  }
}
