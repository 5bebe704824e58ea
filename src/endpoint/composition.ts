/** What each composition supplies to the way of a request: whom to believe, what to allow, what to answer with. */
import type { Verdict } from '../access/access.ts'
import type { AuthorityCopy } from '../cache/authoritycopy.ts'
import type { Caller } from '../kube/caller.ts'
import type { Catalog } from '../kube/schema/catalog.ts'
import type { StatusError } from '../kube/status.ts'
import type { Connected, Identity } from '../upstream/upstream.ts'
import type { Call } from './call.ts'
import type { ReadParts, Request, Response, Served, WriteVerbs } from './endpoint.ts'

/** Who asks. */
export interface Authentication {
  /** In whose name a request goes, by its connection and head alone. */
  identify(request: Request): Identity
  /** Who that is, as far as it is known without asking. */
  callerOf(call: Call): Caller | undefined
}

/** What callers may do. The administrator is an answer of it like any other. */
export interface Authorization {
  /** At once wherever that is known. */
  decide(call: Call): Verdict | Promise<Verdict>
  /** The refusal for any verdict but `allowed`, in kube-apiserver's words. */
  refusal(call: Call, verdict: Verdict): StatusError
}

/** Answers callers who may be answered. */
export interface Answering {
  answer(call: Call): Promise<Response> | Response
}

/** What stands behind a mirror: judges and answers whatever is not the mirror's own. */
export interface Beyond {
  /** Whether the request is ours to judge and to answer; a promise only while that is not known yet. */
  isOurs(call: Call): boolean | Promise<boolean>
  pass(call: Call): Promise<Response>
  /** What a caller gets in place of our refusal; undefined where it stands. */
  instead(call: Call, verdict: Verdict): Promise<Response> | undefined
  connect(call: Call): Promise<Connected>
}

/** What the verbs of an authority work with. */
export type EndpointParts = ReadParts & {
  readonly copy: AuthorityCopy
  readonly catalog: Catalog<Served>
  readonly writer: WriteVerbs
  readonly authentication: Authentication
}
