/**
 * What the API server's own authorizers would say, told from what is mirrored of them. It never gives a caller more than the
 * API server did while that can be asked: there it only tells whether what was reviewed lately still follows from the roles.
 * Without the API server it decides, except where its reviews were seen to differ (a webhook, ABAC: authorizers that only it
 * can ask): then what was reviewed counts, and nothing new is concluded in that direction.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { counter } from '../base/metrics.ts'
import type { Caller } from '../kube/caller.ts'
import type { Changes } from './changes.ts'
import { nodeNameOf } from './node/nodeauthorizer.ts'
import type { Question } from './question.ts'
import { type Opinion, Rbac, type RbacResource } from './rbac/rbac.ts'
import { type RulesReviewStatus, rulesStatus } from './rbac/rulesreview.ts'

/** One of the API server's authorizers. Undefined: it cannot tell here, so nothing that it might allow counts as denied. */
export type Authorizer = (caller: Caller, question: Question) => Opinion | undefined

/** What judges nodes: kube-apiserver asks it before it looks at roles. */
export type NodeJudge = {
  readonly judge: Authorizer
  /** When it last came to other opinions, by the steady clock. */
  readonly changedAt: number
}

/** Where roles and bindings come from. */
export type RoleSource = {
  /** When the API server last gave a sign of life to the watches of all of them, by the steady clock; undefined: they are not all here. */
  heardAt(): number | undefined
}

/** The rules of single callers, where the whole of roles and bindings is not here (`knownrules.ts`). */
export type RulesOfCallers = {
  of(caller: Caller): Rbac | undefined
  /** When they were last known to be as the API server has them, by the steady clock. */
  heardAt(caller: Caller): number
  /** Whether they were not current any more when the API server could last be asked. */
  isPast(caller: Caller): boolean
}

/** `isPast`: by rules of this caller that may have changed while the API server could be asked, without the edge hearing of it. */
type RolesOpinion = Opinion & { readonly isPast?: true }

/** Whether a review said what the roles say; `unknown`: they may have changed while it was asked. */
export type Agreement = 'same' | 'other' | 'unknown'

const currentMs = 5_000 // as new as a list that is answered as the most recent one
const lookEveryMs = 500 // requests of a busy caller do not all look at four watches
const lagMs = 11_000 // the API server's authorizer and our mirror see a change at different times
const logEveryMs = 60_000 // a webhook may differ in every question of every caller

type Parts = { readonly clock: Clock; readonly log: Log; readonly changes: Changes }

export class Evaluation {
  readonly #parts: Parts
  readonly #rbac = new Rbac()
  /** Until another is told, nodes are not judged here. */
  #nodes: NodeJudge = { judge: unknownNodes, changedAt: Number.NEGATIVE_INFINITY }
  #source: RoleSource | undefined
  #callers: RulesOfCallers | undefined
  readonly #listeners = new Set<() => void>()
  #heardAt: number | undefined
  #lookedAt = Number.NEGATIVE_INFINITY
  #differences = 0
  #loggedAt = Number.NEGATIVE_INFINITY
  /** Another one with each change of what opinions follow from. */
  revision = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  follow(source: RoleSource): void {
    this.#source = source
  }

  /** What to go by as long as the whole is not followed. */
  followCallers(callers: RulesOfCallers): void {
    this.#callers = callers
  }

  /** All of them, where they are all here. */
  get rbac(): Rbac | undefined {
    return this.#source?.heardAt() === undefined ? undefined : this.#rbac
  }

  /** Hears of every change of roles and bindings; answers how to stop hearing. */
  observe(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => void this.#listeners.delete(changed)
  }

  judgeNodesBy(nodes: NodeJudge): void {
    this.#nodes = nodes
    this.revision++
  }

  put(resource: RbacResource, key: string, bytes: Buffer): void {
    this.#changed()
    this.#rbac.put(resource, key, bytes)
  }

  delete(resource: RbacResource, key: string): void {
    this.#changed()
    this.#rbac.delete(resource, key)
  }

  /** Everything of that resource, before it is read anew. */
  clear(resource: RbacResource): void {
    this.#changed()
    this.#rbac.clear(resource)
  }

  #changed(): void {
    this.revision++
    for (const changed of this.#listeners) changed()
  }

  /** Those that say what this caller may. */
  #rolesOf(caller: Caller): Rbac | undefined {
    return this.rbac ?? this.#callers?.of(caller)
  }

  /** Whether what it says is as new as a review, of any caller or of this one. */
  isCurrent(now: number, caller?: Caller): boolean {
    if (this.#isWholeCurrent(now)) return true
    if (caller === undefined || this.#callers === undefined || this.rbac !== undefined) return false
    return now - this.#callers.heardAt(caller) <= currentMs
  }

  #isWholeCurrent(now: number): boolean {
    if (now - this.#lookedAt >= lookEveryMs) {
      this.#lookedAt = now
      this.#heardAt = this.#source?.heardAt()
    }
    return this.#heardAt !== undefined && now - this.#heardAt <= currentMs
  }

  /** Whether what is known of this caller is no more than what its roles once were. */
  #isPast(caller: Caller): boolean {
    return this.rbac === undefined && this.#callers?.isPast(caller) === true
  }

  /** Undefined where it cannot be told. */
  judge(caller: Caller, question: Question): RolesOpinion | undefined {
    if (isScoped(caller)) return undefined
    const ofNode = this.#nodes.judge(caller, question)
    if (ofNode?.allowed === true) return ofNode
    const roles = this.#rolesOf(caller)
    if (roles === undefined) return undefined
    const ofRoles = roles.judge(caller, question)
    const past = this.#isPast(caller) ? ({ isPast: true } as const) : {}
    if (ofRoles.allowed || ofNode?.reason === '') return { ...ofRoles, ...past }
    if (ofNode === undefined) return undefined
    const reason = [ofNode.reason, ofRoles.reason].filter((one) => one !== '').join('\n')
    return { allowed: false, reason, ...past }
  }

  /** The rules of a caller in a namespace; undefined where they cannot be told. */
  rules(caller: Caller, namespace: string): RulesReviewStatus | undefined {
    const roles = isScoped(caller) || this.#isPast(caller) ? undefined : this.#rolesOf(caller)
    if (roles === undefined) return undefined
    return rulesStatus(roles.rulesOf(caller, namespace), nodeNameOf(caller) !== undefined)
  }

  /** A review that was asked at that time, beside what the roles say; undefined: they say nothing, or nothing new. */
  compare(caller: Caller, question: Question, reviewed: { allowed: boolean; askedAt: number }): Agreement | undefined {
    const { clock, changes } = this.#parts
    const opinion = this.judge(caller, question)
    if (opinion === undefined) return undefined
    const isCurrent = this.isCurrent(clock.steady(), caller)
    if (opinion.allowed === reviewed.allowed) return isCurrent ? 'same' : undefined
    const changedAt = Math.max(changes.since(question.namespace), this.#nodes.changedAt)
    const isSettled = reviewed.askedAt - changedAt >= lagMs
    return isCurrent && isSettled ? 'other' : 'unknown'
  }

  /** A difference that was not known before. */
  differs(caller: Caller, question: Question, allowed: boolean): void {
    const { clock, log } = this.#parts
    this.#differences++
    const now = clock.steady()
    if (now - this.#loggedAt < logEveryMs) return
    this.#loggedAt = now
    const { verb, group, resource, subresource, namespace, name, path } = question
    const asked = { verb, group, resource, subresource, namespace, name, path }
    const why = allowed ? 'the API server allows what its roles do not' : 'the API server denies what its roles allow'
    log.warn('access.differs', { user: caller.name, ...asked, why, differences: this.#differences })
  }

  figures(): string[] {
    const what = 'Reviews of the API server that said otherwise than its roles and bindings.'
    return [counter('ake_authorization_differences_total', what, [['', this.#differences]])]
  }
}

/** What a node's pods use is not seen here. */
const unknownNodes: Authorizer = (caller) => (nodeNameOf(caller) === undefined ? noOpinion : undefined)

/** What an authenticator of the cluster's own says of a caller is there for an authorizer of its own. */
function isScoped({ extra = {} }: Caller): boolean {
  for (const key of Object.keys(extra)) if (!key.startsWith('authentication.kubernetes.io/')) return true
  return false
}

const noOpinion: Opinion = { allowed: false, reason: '' }
