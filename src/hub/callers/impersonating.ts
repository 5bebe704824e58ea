/**
 * A caller who asks to be taken for another, and whom the hub itself has to be taken for: the API server would only see the hub ask. So the
 * hub asks first whether that caller may, in each of the ways that the API server would try, and then speaks for the other.
 */
import type { Access } from '../../access/access.ts'
import { wantedBy } from '../../access/authenticate/impersonation.ts'
import { type ImpersonationWay, impersonationWays } from '../../access/authenticate/impersonationways.ts'
import { type Asking, makeQuestion, type Question, questionOf } from '../../access/question.ts'
import { forbiddenStatus } from '../../access/refusal.ts'
import type { Caller } from '../../kube/caller.ts'
import { parseRequest } from '../../kube/request.ts'
import { failure, type StatusError } from '../../kube/status.ts'
import { headerLines } from '../../tunnel/request/request.ts'
import type { Headers, NamedIdentity } from '../../upstream/upstream.ts'
import { unbound } from './callers.ts'

export type AskedAccess = Pick<Access, 'recheck' | 'refusal'>

type Asked = { readonly method: string; readonly path: string; readonly headers: Headers }

/** Groups and extras that one request may ask for: each is a question to the API server. */
const partsMax = 64

/**
 * The caller that the request is to be taken for: its own where it asks for no other. Throws what the API server would answer.
 * `isConstrained`: it knows the narrow ways.
 */
export async function impersonatedBy(
  caller: Caller,
  asked: Asked,
  { access, isConstrained }: { readonly access: AskedAccess; readonly isConstrained: boolean },
): Promise<Caller> {
  const lines = headerLines(asked.headers).flatMap(({ name, value }) => [name, value])
  const wanted = wantedBy(lines)
  if (wanted === undefined) return caller
  const ways = impersonationWays(wanted, caller).filter(({ name }) => isConstrained || name === '')
  if (ways.some((way) => way.asked.length > partsMax))
    throw failure(400, 'BadRequest', `a hub passes on no impersonation of more than ${partsMax} groups and extras`)
  const question = questionOf(parseRequest(asked.method, asked.path))
  const as: NamedIdentity = { kind: 'named', caller: unbound(caller) }
  let first: StatusError | undefined
  for (const way of ways) {
    const refusal = await whyNot(way, { as, question, access })
    if (refusal === undefined) return way.caller
    first ??= refusal
  }
  throw first ?? failure(403, 'Forbidden', 'all impersonation modes failed')
}

type Questioned = {
  readonly as: NamedIdentity
  /** What the request itself asks for. */
  readonly question: Question
  readonly access: AskedAccess
}

/** Undefined: it may. One question after the other, as the API server asks them. */
async function whyNot(way: ImpersonationWay, { as, question, access }: Questioned): Promise<StatusError | undefined> {
  const { on, asked, never } = way
  const askings: readonly Asking[] = [...(on === '' ? [] : [{ ...question, verb: `${on}${question.verb}` }]), ...asked]
  for (const asking of askings) {
    const one = makeQuestion(asking)
    const verdict = await access.recheck(as, one)
    if (verdict === 'unknown')
      throw failure(503, 'ServiceUnavailable', 'the hub cannot tell now whether this caller may impersonate: try again')
    if (verdict !== 'allowed') return access.refusal(as, one, verdict)
  }
  return never === undefined ? undefined : forbiddenStatus(as.caller, makeQuestion(never.asked), never.why)
}
