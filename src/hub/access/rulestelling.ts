/**
 * Tells edges what their callers may do (L29): for each stream of the purpose `rules` the roles and bindings of one caller, out of the hub's own mirror, and
 * again whenever they change. An edge hears of callers whose credential it has shown over that very link, of its own node, of
 * clients without a credential, and of subjects that the API server has reviewed for its node over that link: never of
 * anything else that roles say. What is told of one caller is made once for all edges that have it.
 */
import { deflateRawSync } from 'node:zlib'
import type { OpenAccess } from '../../access/open.ts'
import type { Rbac } from '../../access/rbac/rbac.ts'
import { subjectKey, writeSubjectRules } from '../../access/rbac/subjectrules.ts'
import { type Clock, sleep } from '../../base/clock.ts'
import { gauge } from '../../base/metrics.ts'
import { pieceMsMax, turns } from '../../base/turns.ts'
import { anonymous, type Caller } from '../../kube/caller.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import type { TunnelDuplex } from '../../tunnel/duplex.ts'
import {
  decodeRulesQuestion,
  encodeToldRules,
  hearMessages,
  type RulesQuestion,
  rulesPurpose,
} from '../../tunnel/rules/rules.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { unbound } from '../callers/callers.ts'
import type { CallerCertificates } from '../callers/certificates.ts'
import type { ReviewedSubjects } from '../callers/reviewedsubjects.ts'
import { type RulesLimits, rulesLimits } from '../callers/ruleslimits.ts'
import { AskingRate } from '../forwarding/rate.ts'

/** The roles of the cluster, as the hub mirrors them. */
export type MirroredRoles = {
  /** Undefined: not all of them were read yet. */
  readonly rbac: Rbac | undefined
  isCurrent(now: number): boolean
  observe(changed: () => void): () => void
}

type Parts = {
  readonly roles: MirroredRoles
  readonly recheckCaller: OpenAccess['recheckCaller']
  readonly certificates: Pick<CallerCertificates, 'judge'>
  readonly reviewed: Pick<ReviewedSubjects, 'has'>
  readonly clock: Clock
  readonly limits?: Partial<RulesLimits>
}

type AskingLink = { readonly name: string }

/** One caller of some edges. */
type ToldSubject = {
  readonly caller: FoundCaller
  readonly streams: Set<ToldStream>
  text: string | undefined
  packed: Buffer
}

type ToldStream = {
  readonly stream: TunnelDuplex
  isFull: boolean
  isBehind: boolean
  /** Nothing more is told over it. */
  leave: () => void
}

type FoundCaller = Pick<Caller, 'name' | 'groups'>

type LinkStreams = { open: number; readonly rate: AskingRate }

export class RulesTelling {
  readonly #parts: Parts
  readonly #limits: RulesLimits
  readonly #links = new WeakMap<AskingLink, LinkStreams>()
  readonly #subjects = new Map<string, ToldSubject>()
  #isCurrent = false
  #isGathering = false
  #streams = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...rulesLimits, ...parts.limits }
  }

  /** Takes such streams of one link; the others go on to `next`. */
  acceptFor(edge: AskingLink, next: (incoming: IncomingStream) => void): (incoming: IncomingStream) => void {
    return (incoming) => {
      if (incoming.purpose === rulesPurpose) this.#accept(edge, incoming)
      else next(incoming)
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { roles, clock } = this.#parts
    const deaf = roles.observe(() => this.#changed())
    while (!signal.aborted) {
      await sleep(clock, this.#limits.lookEveryMs, signal)
      this.#look()
    }
    deaf()
  }

  figures(): string[] {
    return [
      gauge('ake_hub_rules_subjects', 'Callers whose rules are told to edges, by name and groups.', [
        ['', this.#subjects.size],
      ]),
      gauge('ake_hub_rules_streams', 'Callers of edges that are told their rules, times those edges.', [
        ['', this.#streams],
      ]),
    ]
  }

  #accept(edge: AskingLink, incoming: IncomingStream): void {
    const { perLinkMax, perSecond, burst } = this.#limits
    const link = this.#links.get(edge) ?? { open: 0, rate: new AskingRate(this.#parts.clock, perSecond, burst) }
    this.#links.set(edge, link)
    const { stream } = incoming
    if (link.open >= perLinkMax || link.rate.take() > 0) {
      stream.giveUp('busy', `the rules of ${perLinkMax} callers are told over a link, and not too many at once`)
      return
    }
    link.open++
    stream.once('close', () => link.open--)
    const failed = (error: unknown) => {
      if (error instanceof LinkFault) stream.giveUp('unsent', error.message)
      else stream.giveUp('broken', 'it broke off')
    }
    let isAsked = false
    const take = (bytes: Buffer) => {
      if (isAsked) throw new LinkFault('more than one question in a stream about rules')
      isAsked = true
      this.#answer(edge, decodeRulesQuestion(bytes), incoming).catch(failed)
    }
    hearMessages(stream, { take, failed })
    // Its edge wants to hear no more of it.
    stream.once('end', () => stream.destroy())
  }

  async #answer(edge: AskingLink, question: RulesQuestion, incoming: IncomingStream): Promise<void> {
    const { stream } = incoming
    const find = () => this.#callerOf(edge, question, incoming)
    const caller = await find()
    if (stream.destroyed) return
    if (typeof caller === 'string') {
      stream.end(encodeToldRules({ ...nothing, sentence: caller }))
      return
    }
    const told: ToldStream = { stream, isFull: false, isBehind: false, leave: () => undefined }
    this.#tellOf(caller, told)
    if (question.meant === 'credential') this.#followCredential(caller, told, find)
  }

  /** A sentence that says why nothing is told. */
  async #callerOf(
    edge: AskingLink,
    { meant, name, groups }: RulesQuestion,
    { token, certificate }: IncomingStream,
  ): Promise<FoundCaller | string> {
    const { recheckCaller, certificates, reviewed } = this.#parts
    if (meant === 'node') return { name: `system:node:${edge.name}`, groups: ['system:nodes', 'system:authenticated'] }
    if (meant === 'anonymous') return anonymous
    if (meant === 'subject') return reviewed.has(edge, { name, groups }) ? { name, groups } : unasked
    // No policy has to let this edge speak for it: that is needed to act for a caller, and one for whom no hub acts is judged by its edge all the
    // same, offline by these rules alone. They say no more than this caller could ask about itself, and the node about it by a review.
    if (certificate !== undefined) {
      const judged = certificates.judge(certificate)
      return 'caller' in judged ? judged.caller : judged.sentence
    }
    if (token === undefined) return 'no credential was shown'
    const found = await recheckCaller({ kind: 'token', token: token.tell() })
    if (found === 'refused') return 'the API server does not accept this credential'
    return found === 'unknown' ? untold : unbound(found)
  }

  /** What was begun with a credential ends with it; what cannot be told now was told before. The edge may ask again with another one. */
  #followCredential(caller: FoundCaller, told: ToldStream, find: () => Promise<FoundCaller | string>): void {
    const { clock } = this.#parts
    const { stream } = told
    let cancel = () => {}
    const look = async () => {
      const found = await find().catch(() => untold)
      if (stream.destroyed) return
      const isSame = typeof found === 'string' ? found === untold : subjectKey(found) === subjectKey(caller)
      if (isSame) return wait()
      told.leave()
      stream.end(encodeToldRules({ ...nothing, sentence: typeof found === 'string' ? found : another }))
    }
    const wait = () => {
      cancel = clock.setTimer(this.#limits.recheckEveryMs, () => void look())
    }
    if (!stream.destroyed) wait()
    stream.once('close', () => cancel())
  }

  #tellOf(caller: FoundCaller, told: ToldStream): void {
    const key = subjectKey(caller)
    const known = this.#subjects.get(key)
    if (known === undefined && this.#subjects.size >= this.#limits.subjectsMax) {
      told.stream.giveUp('busy', 'the hub tells the rules of as many callers as it can')
      return
    }
    const subject = known ?? { caller, streams: new Set(), text: undefined, packed: empty }
    this.#subjects.set(key, subject)
    subject.streams.add(told)
    this.#streams++
    told.leave = () => {
      told.isBehind = false
      if (!subject.streams.delete(told)) return
      this.#streams--
      if (subject.streams.size === 0) this.#subjects.delete(key)
    }
    told.stream.once('close', () => told.leave())
    told.stream.on('drain', () => {
      told.isFull = false
      if (told.isBehind) this.#tell(subject, told)
    })
    if (known === undefined) this.#make(subject)
    this.#tell(subject, told)
  }

  /** Whether its rules are other ones. */
  #make(subject: ToldSubject): boolean {
    const { rbac } = this.#parts.roles
    if (rbac === undefined) return false
    const text = writeSubjectRules(rbac, { ...subject.caller, uid: '' }) ?? ''
    if (text === subject.text) return false
    subject.text = text
    subject.packed = text === '' ? empty : compact(deflateRawSync(text))
    return true
  }

  /** Those that were told last and are not read yet need not be: the newest go out after them. */
  #tell({ caller, text, packed }: ToldSubject, told: ToldStream): void {
    told.isBehind = told.isFull
    // Not read yet: they are told as soon as they are.
    if (told.isFull || text === undefined || told.stream.destroyed) return
    const { name, groups } = caller
    const current = this.#isCurrent ? 1 : 0
    const one =
      text === ''
        ? ({ saying: 'none', sentence: tooMany, rules: empty } as const)
        : ({ saying: 'rules', sentence: '', rules: packed } as const)
    told.isFull = !told.stream.write(encodeToldRules({ ...one, name, groups, current }))
  }

  #changed(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#parts.clock.setTimer(this.#limits.gatherMs, () => void this.#makeAll())
  }

  async #makeAll(): Promise<void> {
    this.#isGathering = false
    let beganAt = performance.now()
    for (const subject of [...this.#subjects.values()]) {
      if (this.#make(subject)) for (const told of subject.streams) this.#tell(subject, told)
      if (performance.now() - beganAt < pieceMsMax) continue
      await turns.take()
      beganAt = performance.now()
    }
  }

  /** A hub whose watches are silent does not know of changes, and says so. */
  #look(): void {
    const isCurrent = this.#parts.roles.isCurrent(this.#parts.clock.steady())
    if (isCurrent === this.#isCurrent) return
    this.#isCurrent = isCurrent
    const standing = encodeToldRules({ ...nothing, saying: 'standing', current: isCurrent ? 1 : 0 })
    for (const { streams, text } of this.#subjects.values())
      for (const told of streams) {
        if (told.isFull) told.isBehind = true
        else if (text !== undefined) told.isFull = !told.stream.write(standing)
      }
  }
}

/** Without what was allocated beside it: zlib answers with a part of 16 KiB, and 20,000 callers are a few hundred bytes each. */
function compact(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

const empty = Buffer.alloc(0)
const nothing = { saying: 'none', current: 0, sentence: '', name: '', groups: [], rules: empty } as const
const untold = 'the hub cannot tell now whose credential it is'
const another = 'the credential stands for another caller now'
const unasked = 'the API server has not reviewed such a subject for the node of this link over it'
const tooMany = 'there are more rules of this caller than a hub tells'
