/**
 * The two questions put to the API server, in the caller's own name: who am I (SelfSubjectReview), may I do this
 * (SelfSubjectAccessReview). About a caller in whose name nothing can be asked the edge asks in its own: may this one do that
 * (SubjectAccessReview). An answer that is neither yes nor no (a failure, a timeout, no right to ask) is a failure, and
 * changes nothing that is known. At most a few are under way at a time (`fairqueue.ts`); for a caller that finds the queue full
 * nothing is asked.
 */
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
import { type Identity, Unreachable, type Upstream, type UpstreamResponse } from '../upstream/upstream.ts'
import { FairQueue, strangers } from './fairqueue.ts'
import type { Question } from './question.ts'

export type Subject = { readonly kind: 'caller'; readonly caller: Caller } | Unanswered
export type ReviewAnswer =
  | { readonly kind: 'decision'; readonly allowed: boolean; readonly reason: string }
  | Unanswered
export type Unanswered =
  | { readonly kind: 'unauthorized' }
  /** `lost`: no answer came at all. */
  | { readonly kind: 'failed'; readonly lost: boolean }

/** A review under way. */
export type Flight<T> = {
  readonly done: Promise<T>
  /** Whether it has left the queue: one that still waits for others says nothing about the link. */
  readonly sent: boolean
  /** When it left, by the steady clock. */
  readonly sentAt: number
}

const reviewMsMax = 10_000 // an answer later than this is of no use to any caller
const replyBytesMax = 1 << 20 // a user with thousands of groups fits

const refused: Unanswered = { kind: 'failed', lost: false }

type ReviewRequest = { readonly identity: Identity; readonly who: string; readonly path: string; readonly body: object }

type Parts = {
  readonly upstream: Upstream
  readonly clock: Clock
  /** Hears the API server's own idea of the time. */
  readonly heardTime: (ms: number) => void
}

export class Reviewer {
  readonly #upstream: Upstream
  readonly #clock: Clock
  readonly #heardTime: (ms: number) => void
  readonly #queue = new FairQueue()

  constructor({ upstream, clock, heardTime }: Parts) {
    this.#upstream = upstream
    this.#clock = clock
    this.#heardTime = heardTime
  }

  /** Both take their turn as `who`. */
  fetchSubject(identity: Identity, who: string): Flight<Subject> {
    const body = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' }
    const asked = { identity, who, path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body }
    return this.#fly(asked, (reply): Subject => {
      const user = tree(tree(reply.status)?.userInfo)
      const name = user?.username
      if (user === undefined || typeof name !== 'string' || name === '') return refused
      const uid = typeof user.uid === 'string' ? user.uid : ''
      const extra = extraOf(user.extra)
      const caller: Caller = { name, uid, groups: texts(user.groups) }
      return { kind: 'caller', caller: extra === undefined ? caller : { ...caller, extra } }
    })
  }

  fetchAnswer(identity: Identity, question: Question, who: string): Flight<ReviewAnswer> {
    const asked = { ...accessReview(identity, question), who }
    return this.#fly(asked, (reply): ReviewAnswer => {
      const status = tree(reply.status)
      const allowed = status?.allowed
      // An authorizer that failed has not said no: the request itself would have got a 500.
      const undecided = allowed === false && status?.denied !== true && (status?.evaluationError ?? '') !== ''
      if (typeof allowed !== 'boolean' || undecided) return refused
      return { kind: 'decision', allowed, reason: typeof status?.reason === 'string' ? status.reason : '' }
    })
  }

  #fly<T>(asked: ReviewRequest, read: (reply: Tree) => T): Flight<T | Unanswered> {
    const { promise: done, resolve } = Promise.withResolvers<T | Unanswered>()
    const flight = { done, sent: false, sentAt: this.#clock.steady() }
    const go = async () => {
      flight.sent = true
      flight.sentAt = this.#clock.steady()
      const reply = await this.#post(asked)
      this.#queue.leave(asked.who)
      resolve('kind' in reply ? reply : read(reply.reply))
    }
    if (!this.#queue.enter(asked.who, () => void go())) resolve(refused)
    return flight
  }

  async #post({ identity, path, body, who }: ReviewRequest): Promise<{ readonly reply: Tree } | Unanswered> {
    const ended = new AbortController()
    const cancel = this.#clock.setTimer(reviewMsMax, () => ended.abort())
    try {
      const answered = await this.#upstream.ask({
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: Buffer.from(JSON.stringify(body)),
        identity,
        byStranger: who === strangers,
        signal: ended.signal,
        headMsMax: reviewMsMax,
      })
      const bytes = await readBody(answered)
      const date = answered.headers.date
      const dateMs = typeof date === 'string' ? Date.parse(date) : Number.NaN
      // What the API server says of the edge's credential is not said of the caller that the edge asks about.
      if (answered.status === 401) return identity.kind === 'edge' ? refused : { kind: 'unauthorized' }
      if (answered.status !== 201 && answered.status !== 200) return refused
      const reply = bytes === undefined ? undefined : tree(JSON.parse(bytes.toString('utf8')))
      if (reply === undefined) return refused
      if (Number.isFinite(dateMs)) this.#heardTime(dateMs)
      return { reply }
    } catch (error) {
      return { kind: 'failed', lost: error instanceof Unreachable }
    } finally {
      cancel()
    }
  }
}

async function readBody(answered: UpstreamResponse): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answered.body) {
    size += chunk.length
    if (size > replyBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function accessReview(identity: Identity, question: Question): Omit<ReviewRequest, 'who'> {
  const group = 'authorization.k8s.io/v1'
  const spec = specOf(question)
  if (identity.kind !== 'named') {
    const body = { kind: 'SelfSubjectAccessReview', apiVersion: group, spec }
    return { identity, path: `/apis/${group}/selfsubjectaccessreviews`, body }
  }
  const { name: user, uid, groups, extra } = identity.caller
  const body = { kind: 'SubjectAccessReview', apiVersion: group, spec: { ...spec, user, uid, groups, extra } }
  return { identity: { kind: 'edge' }, path: `/apis/${group}/subjectaccessreviews`, body }
}

/** Selectors go raw: the API server reads them with the parser that it uses for requests, so that nothing gets lost. */
function specOf({ verb, group, version, resource, subresource, namespace, name, labels, fields, path }: Question) {
  if (resource === '') return { nonResourceAttributes: { verb, path } }
  return {
    resourceAttributes: {
      verb,
      group,
      version,
      resource,
      subresource,
      namespace,
      name,
      ...(fields === '' ? {} : { fieldSelector: { rawSelector: fields } }),
      ...(labels === '' ? {} : { labelSelector: { rawSelector: labels } }),
    },
  }
}

type Tree = Readonly<Record<string, unknown>>

function tree(value: unknown): Tree | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Tree) : undefined
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

function extraOf(value: unknown): Record<string, readonly string[]> | undefined {
  const extra = tree(value)
  return extra && Object.fromEntries(Object.entries(extra).map(([key, list]) => [key, texts(list)]))
}
