/**
 * Where truth comes from: a real API server, reached directly or through a hub. An upstream takes a
 * request in a caller's name and answers with what the API server said, byte for byte; it decides nothing about rights or
 * data. Whether the cloud can be reached is decided in one place for all callers (`Reachability`), from probes and from what
 * live traffic shows, so that no caller waits for a link that another already found dead.
 *
 * `contract.test-support.ts` is what every implementation has to pass; `direct.ts` and `linked/linkedupstream.ts` do.
 */
import type { X509Certificate } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Caller } from '../kube/caller.ts'
import type { CredentialLife } from './credential.ts'
import type { ToldSigns } from './told.ts'

/** In whose name a request goes up: no request has more rights there than its caller (I1). */
export type Identity =
  /** The edge itself: reflectors, probes, and the machine's administrator. */
  | { readonly kind: 'edge' }
  /** A bearer token, which travels unchanged. */
  | { readonly kind: 'token'; readonly token: string }
  /** A credential configured for callers whose certificate bears this common name; `caller` is whom that certificate names. */
  | { readonly kind: 'certificate'; readonly name: string; readonly caller?: Caller }
  | { readonly kind: 'anonymous' }
  /**
   * Named by a certificate that no credential goes with: the edge asks about it. Something goes up in its name only where an upstream
   * speaks for it, which is shown `chain`: the certificate with those between it and an authority (`tunnel/credentials`).
   */
  | NamedIdentity
  /** Known here alone, as one who is impersonated while the cloud is away: nothing goes up in its name. */
  | { readonly kind: 'local'; readonly caller: Caller }

export type NamedIdentity = { readonly kind: 'named'; readonly caller: Caller; readonly chain?: string }

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** An object at one version. */
export type HeldObject = { readonly uid: string; readonly version: number }

export type UpstreamRequest = {
  readonly method: string
  /** Path and query as they are sent. */
  readonly path: string
  /** By lower-case name. What belongs to one hop, and any credential, is left out by the upstream. */
  readonly headers?: Headers
  readonly body?: Buffer | AsyncIterable<Buffer>
  readonly identity: Identity
  /** A client's request, which bears the client's User-Agent or none; every other is the edge's own, and says so. */
  readonly passedOn?: boolean
  /** The API server has not accepted its credential: it goes over other connections than those of callers. */
  readonly byStranger?: boolean
  /** Of a GET: the object as the asker holds it. An upstream may say that it is the same instead of sending it. */
  readonly held?: HeldObject
  readonly signal?: AbortSignal
  /** How long the head of the answer may take; without it only a dead connection ends the wait. */
  readonly headMsMax?: number
}

export type UpstreamResponse = {
  readonly status: number
  readonly headers: Record<string, string | readonly string[]>
  /** The API server has what the asker said that it holds; no body follows. */
  readonly isSame?: boolean
  /** Pulled as fast as its reader reads. A reader that leaves before its end calls `return()`. Rejects with `Unreachable`. */
  readonly body: AsyncIterableIterator<Buffer>
  /** When the connection below last gave a sign of life, by the steady clock. */
  heardAt(): number
}

/** An upgraded connection (exec, attach, port-forward): bytes both ways. */
export type Connected = {
  readonly status: number
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly socket: Duplex
  /** What came behind the head. */
  readonly head: Buffer
}

/** No answer: the request did not get through, or what it began broke off. */
export class Unreachable extends Error {
  /** Whether the API server may have seen the request. */
  readonly sent: boolean

  constructor(why: string, sent: boolean) {
    super(why)
    this.sent = sent
  }
}

/** `why` is '' where there is none to be told. */
export type Speaking = { readonly yes: boolean; readonly why: string }

/** The hub on the way does not speak for this caller, or is not let: what it says is no word of the API server's on what the caller may. */
export class Unspoken extends Error {}

export type ReachabilityState =
  /** The last probe was answered, and traffic flows. */
  | 'reachable'
  /** Something took too long: no read waits until a probe succeeds. */
  | 'suspect'
  | 'unreachable'

/** Why it is reachable, where there is nothing else to say. */
export const answersWell = 'the API server answers'

export interface Reachability {
  readonly state: ReachabilityState
  /** In a sentence, for people. */
  readonly why: string
  /** Since when, by the clock of the wall. */
  readonly sinceMs: number
  /** When the API server last answered a probe, by the steady clock; -Infinity: not in this life of the process. */
  readonly heardAt: number
  /** It answers, and took the edge's own credential for none (401) when it was last probed: nothing of the edge's is done there. */
  readonly refusesEdge: boolean
  /** How long a read may wait for the cloud: max(300 ms, 4 × round trip), at most 2 s. */
  readonly limitMs: number
  /** A read hit its limit: suspect until a probe succeeds. */
  suspect(why: string): void
  /** Whether the API server answers a probe now: tells what is slow by itself from a line that is lost. Never rejects. */
  probe(): Promise<boolean>
  /** Hears every change of state; answers how to stop hearing. */
  observe(listener: (state: ReachabilityState) => void): () => void
}

/** A connection that was just made, before anything else is sent over it. */
export type Arrival = {
  /** The address that was dialled, and all that are configured. */
  readonly address: string
  readonly addresses: readonly string[]
  /** A digest of the certificate that the server showed; empty where an address is meant and not one connection. */
  readonly server: string
  /** Whether it is one of the edge's own, over which the edge can ask. */
  readonly isOwn: boolean
  /** The authorities that may have signed the server's certificate, as digests of their public keys. */
  readonly authorities: readonly string[]
  /** A GET as the edge: over this very connection if it is one of the edge's own, else over one of those. */
  get(path: string): Promise<{ readonly status: number; readonly body: Buffer }>
}

/** Whether what answers at an address is what this edge mirrors. Every sentence says why not; undefined: it is. */
export interface Gate {
  /** Asked of each new connection. Rejects where no answer came. */
  admit(arrival: Arrival): Promise<string | undefined>
  /** Asks again over connections admitted before, unless that was done within the time; without one it has its own. */
  look(arrival: Arrival, withinMs?: number): Promise<string | undefined>
}

export interface Upstream {
  readonly reachability: Reachability
  /** What the other end says of the cluster's documents; missing where it says nothing of the kind. */
  readonly told?: ToldSigns
  /** Nothing goes up in the name of the machine's administrator, who is refused; without it the edge's own credential does. */
  readonly keepsAdministrator?: boolean
  /** Whether requests of a caller that is known by its certificate alone can go up, and why not; without it they cannot. */
  speaksFor?(identity: NamedIdentity): Speaking
  /** The API server's answer, whatever its status. Rejects with `Unreachable`, or `Unspoken` for a caller who is known by a certificate alone. */
  ask(asked: UpstreamRequest): Promise<UpstreamResponse>
  /** Asks for an upgrade; an answer that is none has its own status and its body in `socket`. */
  connect(asked: UpstreamRequest): Promise<Connected>
  /** Where what is followed is not heard of all the time: asks how fresh it is, within the time. Never rejects. */
  freshen?(withinMs: number): Promise<void>
  /** For `ake status`: every address with whether it is the one in use. */
  addresses(): readonly { readonly url: string; readonly current: boolean; readonly why: string }[]
  /** Probes, follows files and keeps connections until the signal. */
  run(signal: AbortSignal): Promise<void>
}

/** The credential with which callers of a common name go up, or whom their certificate has to name. */
export type CallerCertificate =
  | X509Certificate
  /** One is configured, but its files hold none at present, so nothing goes up in its name. */
  | 'unusable'
  /** The caller whom the authorities of callers vouch for by exactly this subject. */
  | { readonly organizations: readonly string[] }
  | undefined

/** An upstream as an edge composes itself over it: with the credentials that are its own and its callers'. */
export interface EdgeUpstream extends Upstream {
  /** What is wrong with the files it was given, a sentence each with what to do. */
  readonly complaints: readonly string[]
  /** Another text whenever the credential of that common name is another one; the caller who stands behind it may be, too. */
  credentialVersion(name: string): string
  /** What goes with callers of that common name. */
  certificateOf(name: string): CallerCertificate
  /** The edge's own and those of callers. */
  credentials(): readonly CredentialLife[]
  /** Hears that what the API server refused may be accepted now; answers how to stop hearing. */
  onRenewed(listener: () => void): () => void
}
