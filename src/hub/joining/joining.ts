/**
 * How an edge gets its first certificate, and another where the old one is lost: plain requests with a bootstrap token, which the hub
 * passes on to the API server in the name of that token and in no other. It asks for one thing only, the client certificate of a node that
 * it names; every part of what goes up is written here. A stranger without a token that the API server takes learns nothing.
 *
 *     GET  /join/v1/authorities     the cluster's authorities of clients, and the hub's own; also to a node's certificate
 *     POST /join/v1/requests        a request for the certificate of a node; answers its name
 *     GET  /join/v1/requests/NAME   what became of it
 */
import { createHash, X509Certificate } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { counter, seriesOf } from '../../base/metrics.ts'
import type { Warnings } from '../../base/warnings.ts'
import { signingRequestOf, signingRequests, signingStateOf } from '../../kube/certificatesigning.ts'
import { readSigningRequest } from '../../pki/signingrequest.ts'
import { askJson } from '../../upstream/askjson.ts'
import { Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { AnswerTooLarge } from '../../upstream/whole.ts'
import type { Policies } from '../policy/policies.ts'
import { joinRevocationOf, unjudgeable } from '../policy/revocation.ts'
import type { PlainAnswer, PlainRequest } from '../sockets/plain.ts'
import { JoinerRates } from './joinerrates.ts'
import { type JoiningLimits, joiningLimits } from './limits.ts'

type Parts = {
  readonly upstream: Pick<Upstream, 'ask'>
  /** PEM, those that edges are to believe. */
  readonly authorities: () => readonly string[]
  /** PEM: those by which the API server knows clients; none while they could not be read. */
  readonly clusterAuthorities: () => readonly string[]
  /** Whether a link of that node is here, or at another replica as far as that is known. */
  readonly isLinked: (node: string) => boolean
  /** Which names were revoked. */
  readonly policies: Pick<Policies, 'isKnown' | 'why' | 'revokedSince'>
  readonly clock: Clock
  readonly log: Log
  readonly warnings: Pick<Warnings, 'warn'>
  readonly limits?: Partial<JoiningLimits>
}

type Asked = { readonly node: string; readonly request: string; readonly replace: boolean; readonly publicKey: Buffer }

const joinPath = '/join/v1/'

const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
const reviews = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
/** As Kubernetes names nodes. */
const nodeForm = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const nameForm = /^ake-join-[0-9a-f]{40}$/
const bearerForm = /^bearer +([a-z0-9]{6}\.[a-z0-9]{16})$/i

export class Joining {
  readonly #parts: Parts
  readonly #limits: JoiningLimits
  readonly #rates: JoinerRates
  /** Requests since it was made, by what became of them. */
  readonly #counts = { answered: 0, refused: 0, limited: 0, failed: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...joiningLimits, ...parts.limits }
    this.#rates = new JoinerRates(parts.clock, this.#limits)
  }

  async answer(asked: PlainRequest): Promise<PlainAnswer> {
    const answer = await this.#answer(asked)
    const { status } = answer
    this.#counts[status < 300 ? 'answered' : status === 429 ? 'limited' : status < 500 ? 'refused' : 'failed']++
    return answer
  }

  /** For /metrics. */
  figures(): string[] {
    const series = Object.entries(this.#counts).map(([result, count]) => [seriesOf({ result }), count] as const)
    return [counter('ake_hub_joining_requests_total', 'Requests of joiners, by what became of them.', series)]
  }

  async #answer(asked: PlainRequest): Promise<PlainAnswer> {
    const [, token] = bearerForm.exec(asked.authorization ?? '') ?? []
    const waitMs = this.#rates.begin(asked.from, token)
    if (waitMs > 0) return tooOften(waitMs)
    try {
      // Of a node that is known already, which looks whether they have changed.
      if (token === undefined && asked.node !== undefined && isForAuthorities(asked)) return this.#told()
      if (token === undefined) return this.#unknown(asked)
      return await this.#route(asked, token)
    } catch (error) {
      if (error instanceof AskedTooOften) return tooOften(error.waitMs)
      if (!(error instanceof Unreachable) && !(error instanceof AnswerTooLarge)) throw error
      const about = { who: `joiner ${asked.from}`, kind: 'joiner', same: error.message }
      this.#parts.warnings.warn('join.failed', about, { from: asked.from, why: error.message })
      return said(503, 'the hub cannot reach the API server now: try again')
    } finally {
      this.#rates.end()
    }
  }

  #route(asked: PlainRequest, token: string): PlainAnswer | Promise<PlainAnswer> {
    const { method, path } = asked
    const [, name] = /^\/join\/v1\/requests\/([^/]+)$/.exec(path) ?? []
    if (isForAuthorities(asked)) return this.#authorities(asked, token)
    if (method === 'POST' && path === `${joinPath}requests`) return this.#request(asked, token)
    if (method === 'GET' && name !== undefined && nameForm.test(name)) return this.#state(asked, token, name)
    return this.#senseless(asked, token, 404, 'a hub answers no such request')
  }

  async #authorities(asked: PlainRequest, token: string): Promise<PlainAnswer> {
    const unknown = await this.#review(asked, token)
    if (unknown !== undefined) return unknown
    return this.#told()
  }

  #told(): PlainAnswer {
    const { authorities, clusterAuthorities } = this.#parts
    const cluster = clusterAuthorities()
    if (cluster.length === 0) return this.#later("the hub has not read the cluster's authorities yet: try again")
    return { status: 200, content: { cluster, hub: authorities() } }
  }

  /** Undefined: the token counts. */
  async #review(asked: PlainRequest, token: string): Promise<PlainAnswer | undefined> {
    const { status } = await this.#ask(token, 'POST', reviews, review)
    if (status !== 201) return this.#refusal(asked, status, 'say who it is')
    this.#rates.known(token)
    return undefined
  }

  async #request(asked: PlainRequest, token: string): Promise<PlainAnswer> {
    const wanted = wantedIn(asked.body)
    if (typeof wanted === 'string') return this.#senseless(asked, token, 400, wanted)
    const { node, request, publicKey } = wanted
    // Only to a joiner whose token counts: whether a name is taken or revoked is no other joiner's affair.
    const unknown = this.#rates.knows(token) ? undefined : await this.#review(asked, token)
    if (unknown !== undefined) return unknown
    const { policies, clock } = this.#parts
    const unjudged = unjudgeable(policies)
    if (unjudged !== undefined) return this.#later(unjudged)
    // The cluster would sign it all the same, and an API server takes what counts at no hub.
    const revoked = joinRevocationOf({ name: node, now: clock.now() }, policies)
    if (revoked !== undefined) return this.#revoked(asked, node, revoked)
    const isItself = asked.node === node || asked.endedNode === node
    const taken = wanted.replace || isItself ? undefined : await this.#taken(node)
    if (taken !== undefined) return said(409, taken)
    const name = nameOf(node, publicKey)
    const object = signingRequestOf({ name, request, use: 'client' })
    const { status } = await this.#ask(token, 'POST', signingRequests, object)
    // There already: an earlier try of the same edge with the same key, whose answer got lost.
    if (status !== 201 && status !== 409) return this.#refusal(asked, status, 'request a certificate')
    const { log } = this.#parts
    log.info('join.requested', { node, from: asked.from, request: name, by: `bootstrap token ${token.slice(0, 6)}` })
    return { status: 201, content: { name } }
  }

  async #state(asked: PlainRequest, token: string, name: string): Promise<PlainAnswer> {
    const { status, object } = await this.#ask(token, 'GET', `${signingRequests}/${name}`)
    if (status === 404) return said(404, 'there is no such request')
    if (status !== 200) return this.#refusal(asked, status, 'read its request for a certificate')
    this.#rates.known(token)
    const state = signingStateOf(object)
    const why = state.state === 'issued' ? this.#revocationOf(state.certificate) : undefined
    return { status: 200, content: why === undefined ? state : { state: 'revoked', why } }
  }

  /** Of what an earlier try was given, before the name was revoked, or by a signer whose clock is behind. */
  #revocationOf(pem: string): string | undefined {
    const { policies, clock } = this.#parts
    const certificate = certificateIn(pem)
    const [, name] = /^CN=system:node:(.+)$/m.exec(certificate?.subject ?? '') ?? []
    if (certificate === undefined || name === undefined) return undefined
    return joinRevocationOf({ name, signedAtMs: certificate.validFromDate.getTime(), now: clock.now() }, policies)
  }

  #revoked({ from }: PlainRequest, node: string, why: string): PlainAnswer {
    this.#parts.warnings.warn('join.refused', { who: `joiner ${from}`, kind: 'joiner', same: why }, { from, node, why })
    return said(409, why)
  }

  #later(sentence: string): PlainAnswer {
    return { ...said(503, sentence), retryAfterMs: this.#limits.laterMs }
  }

  /**
   * A sentence that says by which machine. A Node that is not ready takes its name too: that is how the cluster sees an edge that is cut
   * off, whose policies and Secrets would go to the joiner that takes the name.
   */
  async #taken(node: string): Promise<string | undefined> {
    const remedy = 'choose another name with --name, or add --replace if that machine is gone, or is this one'
    if (this.#parts.isLinked(node)) return `an edge of the name "${node}" is linked to a hub now: ${remedy}`
    const { status, object } = await this.#ask(undefined, 'GET', `/api/v1/nodes/${node}`)
    if (status === 404) return undefined
    if (status !== 200) throw new Unreachable(`the API server answered ${status} for the node`, true)
    const how = isReady(object) ? 'and ready' : 'though not ready now'
    return `a node of the name "${node}" is in the cluster, ${how}: ${remedy}`
  }

  #refusal(asked: PlainRequest, status: number, what: string): PlainAnswer {
    if (status === 401) return this.#unknown(asked)
    if (status === 403) {
      return said(
        403,
        `the token may not ${what}: the cluster lacks the bindings of deploy/hub.yaml for the group system:bootstrappers:ake`,
      )
    }
    throw new Unreachable(`the API server answered ${status}`, true)
  }

  /** Expired, deleted, mistyped or invented: the joiner is not told which. */
  #unknown({ from }: PlainRequest): PlainAnswer {
    this.#rates.refused(from)
    const why = 'the token does not count'
    this.#parts.warnings.warn('join.refused', { who: `joiner ${from}`, kind: 'joiner', same: why }, { from, why })
    return said(401, 'the token does not count: it has expired, was deleted or is not written in full')
  }

  /** What no joiner asks for counts against an address whose token is not known to count. */
  #senseless({ from }: PlainRequest, token: string, status: number, sentence: string): PlainAnswer {
    if (!this.#rates.knows(token)) this.#rates.refused(from)
    return said(status, sentence)
  }

  /** With a token in its name; without one in the hub's own. */
  async #ask(token: string | undefined, method: string, path: string, content?: object) {
    const { answerMsMax, answerBytesMax } = this.#limits
    const waitMs = token === undefined ? 0 : this.#rates.asks(token)
    if (waitMs > 0) throw new AskedTooOften(waitMs)
    const { status, text } = await askJson(this.#parts.upstream, {
      ...{ method, path, content, headMsMax: answerMsMax, bytesMax: answerBytesMax },
      ...(token !== undefined && { identity: { kind: 'token', token }, byStranger: true }),
    })
    return { status, object: parsed(text) }
  }
}

/** By all whose tokens are not known yet. */
class AskedTooOften extends Error {
  readonly waitMs: number

  constructor(waitMs: number) {
    super('too many requests to join')
    this.waitMs = waitMs
  }
}

function tooOften(waitMs: number): PlainAnswer {
  return { ...said(429, 'too many requests to join: try again later'), retryAfterMs: waitMs }
}

function isForAuthorities({ method, path }: PlainRequest): boolean {
  return method === 'GET' && path === `${joinPath}authorities`
}

/** The same for the same key and node, so that another try finds the first. No other joiner can have this key. */
function nameOf(node: string, publicKey: Buffer): string {
  return `ake-join-${createHash('sha256').update(`${node}\n`).update(publicKey).digest('hex').slice(0, 40)}`
}

/** What is asked for, or a sentence that says why it is nothing that a joining edge may ask for. */
function wantedIn(body: Buffer): Asked | string {
  const { node, request, replace = false } = (parsed(body.toString()) ?? {}) as Partial<Record<string, unknown>>
  if (typeof node !== 'string' || typeof request !== 'string' || typeof replace !== 'boolean') return noRequest
  if (!nodeForm.test(node)) return 'the name cannot be that of a node'
  const read = readSigningRequest(request)
  if (read === undefined) return noRequest
  const subject = read.subject.map(({ type, text }) => `${type}=${text}`).sort()
  const expected = [`2.5.4.10=system:nodes`, `2.5.4.3=system:node:${node}`]
  const isPlain = !read.hasAttributes && subject.length === 2 && subject.every((part, at) => part === expected[at])
  if (!isPlain)
    return `the request is for more or for another than the node "${node}": a joining edge gets no other certificate`
  return { node, request, replace, publicKey: read.publicKey }
}

const noRequest = 'this is no request for the certificate of a node'

function isReady(node: unknown): boolean {
  type Conditions = readonly { readonly type?: string; readonly status?: string }[]
  const { status } = (node ?? {}) as { readonly status?: { readonly conditions?: Conditions } }
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
}

function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function said(status: number, sentence: string): PlainAnswer {
  return { status, content: { sentence } }
}
