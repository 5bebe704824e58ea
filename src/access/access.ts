/**
 * Whose rights: nothing is read locally that the API server would not give to the same caller (I1, I2). Who a caller is and
 * what it may do is asked of the API server in the caller's own name, remembered, and goes on counting while the cloud cannot
 * be reached, also after a restart; while it can be, only what was said in the last seconds counts (I5). A decision belongs to
 * a caller (user, uid, groups, extra), not to its credential, so that a rotated token does not lose it. It answers its
 * question; what is allowed is allowed in each of its parts, and nothing else follows. Ignorance is a refusal.
 *
 * `callers.ts` knows who stands behind a credential, `decisions.ts` what the caller may do, `watches.ts` which callers listen already,
 * `tokens.ts` keeps the tokens that the cloud issued to hand them out again while it is away. `open.ts` puts them together.
 * No credential is stored here except by the token keeper, whose purpose that is (I4).
 */
import type { Caller } from '../kube/caller.ts'
import type { StatusError } from '../kube/status.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Question } from './question.ts'
import type { Opinion } from './rbac/rbac.ts'
import type { RulesReviewStatus } from './rbac/rulesreview.ts'

export type Verdict =
  | 'allowed'
  /** The API server said no. */
  | 'denied'
  /** The API server does not accept the credential, or it has expired. */
  | 'unauthorized'
  /** The API server could not be asked: a refusal for local answers; while it is reachable the request may go there itself. */
  | 'unknown'

/** What became of a request that was passed on. */
export type ForwardOutcome = {
  readonly status: number
  /** When it was sent, by the steady clock: an allowance given before a denial was told does not undo it. */
  readonly askedAt: number
}

export interface Access {
  /** Who it is, as far as that is known without asking. */
  held(identity: Identity): Caller | undefined
  /** Whether the API server said within seconds that it does not accept the credential. */
  isRefused(identity: Identity): boolean
  /** Who it is; asks when it must, as long as a read may wait. Undefined: not accepted, or the cloud could not be asked. */
  caller(identity: Identity): Promise<Caller | undefined>
  /** Immediate whenever a decision is held that counts: while the API server can be asked, a fresh one. */
  decide(identity: Identity, question: Question): Verdict | Promise<Verdict>
  /** What is known of what any caller may do, without asking; undefined: it would have to be asked. */
  opinion(caller: Caller, question: Question): Opinion | undefined
  /** The rules that apply to a caller in a namespace, as a review of them tells; undefined: it would have to be asked. */
  rules(caller: Caller, namespace: string): RulesReviewStatus | undefined
  /** For what is open already: asks unless a fresh decision is held, as long as that takes. `unknown`: there is no news. */
  recheck(identity: Identity, question: Question): Promise<Verdict>
  /** A forwarded request is an answer too. */
  learn(identity: Identity, question: Question, outcome: ForwardOutcome): void
  /** The refusal for any verdict but `allowed`, in kube-apiserver's words. */
  refusal(identity: Identity, question: Question, verdict: Verdict): StatusError
  /** Drops every decision of that caller. */
  forget(caller: Caller): void
}

/** The part of the store that is needed here: small values by kind and key. */
export interface Records {
  records(kind: string): Promise<readonly { readonly key: string; readonly value: Buffer }[]>
  commit(batch: {
    readonly changes: readonly never[]
    readonly synced: boolean
    readonly records: readonly RecordChange[]
  }): Promise<void>
}

export type RecordChange = { readonly kind: string; readonly key: string; readonly value: Buffer | undefined }
