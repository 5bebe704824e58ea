/** One attempt to open a link to a hub at one address: a wire, through a proxy if there is one, TLS with both certificates, WebSocket. */
import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import type { Clock } from '../../base/clock.ts'
import { retryAfterMs } from '../../base/retryafter.ts'
import { type LinkLimits, linkPath, webSocketOptions } from '../../link/socket/limits.ts'
import { LinkSocket } from '../../link/socket/linksocket.ts'
import type { HubCredential } from '../../pki/credentialfile.ts'
import { type CertificateFault, faultOf, isAboutTime, signerOf } from '../../pki/verdict.ts'
import type { Dial } from '../dial.ts'
import { standardLimits, type UpstreamLimits } from '../limits.ts'
import type { ForwardProxy } from '../proxychoice.ts'
import { dialThrough } from '../proxydial.ts'
import { DialFault, reasonOf } from '../reason.ts'
import { type Secured, secure } from '../secure.ts'
import type { HubTicket, HubTicketPouch } from './tickets.ts'

export type HubPeer = {
  /** As it was dialled. */
  readonly address: string
  readonly resumed: boolean
  /** When the hub's certificate ends. */
  readonly endsAtMs: number
}

export type HubDialParts = {
  readonly dial: Dial
  /** wss://HOST:PORT */
  readonly address: URL
  readonly proxy?: ForwardProxy | undefined
  readonly credential: HubCredential
  readonly tickets: HubTicketPouch
  /** Trusted time, where the machine's clock is not: by it the hub's certificate is judged. */
  readonly now: () => number
  readonly clock: Clock
  readonly limits?: Partial<UpstreamLimits>
  readonly linkLimits?: Partial<LinkLimits>
  readonly signal: AbortSignal
}

/** There is a hub, and it does not give a link: not now, or not to this edge. */
export class HubRefusal extends Error {
  /** 0: not before the hub has been asked to do something about it, or as any other failure. */
  readonly retryAfterMs: number

  constructor(why: string, retryAfterMs = 0) {
    super(why)
    this.retryAfterMs = retryAfterMs
  }
}

/** Where the hub turns away handshakes, which cannot say for how long. It waits between this and twice as long. */
const busyMs = 5_000
/** What a hub says of why it refuses. */
const sentenceBytesMax = 1_024

/**
 * With a ticket the key exchange is classical, 2.3 KB shorter: the secret of the first handshake, which no recording gives away to
 * a quantum computer, is mixed into it. Without one, both kinds are.
 */
const [resumedGroups, fullGroups] = ['X25519', 'X25519MLKEM768:X25519']

/** Rejects with `HubRefusal` or `DialFault`; then nothing is left open. */
export async function dialHub(parts: HubDialParts): Promise<LinkSocket<HubPeer>> {
  const { address, tickets, clock } = parts
  const host = hostOf(address)
  let secured = await shakeHands(parts, tickets.get(host))
  if (secured === undefined) {
    // The ticket was refused: what followed was a full handshake of the shorter kind, over which nothing was sent.
    tickets.forget(host)
    secured = (await shakeHands(parts, undefined)) as Secured
  }
  const { socket } = secured
  const ticket = tickets.get(host)
  const certificate = socket.getPeerX509Certificate() ?? ticket?.certificate
  if (certificate === undefined) throw new DialFault('the hub showed no certificate', true)
  socket.on('session', (session: Buffer) => tickets.keep(host, { session, certificate }))
  const peer = {
    address: address.href,
    resumed: socket.isSessionReused(),
    endsAtMs: certificate.validToDate.getTime(),
  }
  const webSocket = await upgraded(socket, parts)
  return new LinkSocket(webSocket, peer, { line: socket, clock, ...(parts.linkLimits && { limits: parts.linkLimits }) })
}

/** Undefined: it did not take the ticket. */
async function shakeHands(parts: HubDialParts, ticket: HubTicket | undefined): Promise<Secured | undefined> {
  const { dial, address, proxy, credential, clock, limits, signal } = parts
  const trust = { ca: credential.ca, insecure: false }
  const secured = await secure({
    dial: proxy === undefined ? dial : dialThrough(dial, proxy, trust),
    url: address,
    trust,
    pair: undefined,
    protocols: ['http/1.1'],
    clock,
    limits: { ...standardLimits, ...limits },
    signal,
    options: {
      secureContext: contextOf(credential, ticket === undefined ? fullGroups : resumedGroups),
      ...(ticket !== undefined && { session: ticket.session }),
    },
    judge: (socket) => judged(socket, parts, ticket),
  }).catch((error: unknown) => {
    throw isBusy(error) ? new HubRefusal('it has too many edges to greet now', busyMs * (1 + Math.random())) : error
  })
  if (ticket === undefined || secured.socket.isSessionReused()) return secured
  secured.socket.destroy()
  return undefined
}

/** Kept with the credential: to read its key costs as much as a resumed handshake. */
const contexts = new WeakMap<HubCredential, Map<string, SecureContext>>()

function contextOf(credential: HubCredential, groups: string): SecureContext {
  const kept = contexts.get(credential) ?? new Map<string, SecureContext>()
  contexts.set(credential, kept)
  const { ca, pair } = credential
  const context = kept.get(groups) ?? createSecureContext({ ca, ...pair, minVersion: 'TLSv1.3', ecdhCurve: groups })
  kept.set(groups, context)
  return context
}

const faults: Readonly<Record<CertificateFault, string>> = {
  authority: 'its certificate is not signed by an authority of the credential',
  expired: 'its certificate has expired (or the time that this edge trusts is wrong)',
  early: 'its certificate is not valid yet (or the time that this edge trusts is wrong)',
  use: 'its certificate is not one of a server',
}

/** A resumed session was judged by its name when it was begun, under the same one; only a hub with the ticket key can resume it. */
function judged(socket: TLSSocket, parts: HubDialParts, ticket: HubTicket | undefined): DialFault | undefined {
  const certificate = socket.isSessionReused() ? ticket?.certificate : socket.getPeerX509Certificate()
  if (certificate === undefined) return new DialFault('it shows no certificate', true)
  const { credential, address, now, tickets } = parts
  const code = socket.authorized ? undefined : String(socket.authorizationError)
  const isStrange = code !== undefined && !isAboutTime(code) && code !== 'ERR_TLS_CERT_ALTNAME_INVALID'
  const bridge = bridgeOf(certificate, credential.authorities, now())
  const authorities = bridge === undefined ? credential.authorities : [bridge]
  const asked = { certificate, authorities, use: 'server', now: now() } as const
  // Which chain OpenSSL tries is its affair: what a bridge leads to is judged here.
  const fault = isStrange && bridge === undefined ? 'authority' : faultOf(asked)
  if (fault !== undefined) {
    tickets.forget(hostOf(address))
    return new DialFault(faults[fault], true)
  }
  const host = hostOf(address)
  const named = isIP(host) === 0 ? certificate.checkHost(host, { subject: 'never' }) : certificate.checkIP(host)
  return named === undefined ? new DialFault('its certificate is for another name', true) : undefined
}

/** An authority that the credential does not name, and that one of those it names has signed: the hub was given another one meanwhile. */
function bridgeOf(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
  now: number,
): X509Certificate | undefined {
  if (signerOf(certificate, authorities) !== undefined) return undefined
  const { issuerCertificate: issuer } = certificate
  if (issuer === undefined || !issuer.ca || issuer.validToDate.getTime() < now) return undefined
  return signerOf(issuer, authorities) === undefined ? undefined : issuer
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR'
}

function upgraded(socket: TLSSocket, { address, clock, limits, signal, now }: HubDialParts): Promise<WebSocket> {
  const { dialMsMax } = { ...standardLimits, ...limits }
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(new URL(linkPath, address), {
      ...webSocketOptions,
      createConnection: () => socket,
    })
    const fail = (error: Error) => {
      end()
      reject(error)
      socket.destroy()
    }
    const cancelTimer = clock.setTimer(dialMsMax, () => fail(new DialFault(`no link within ${dialMsMax} ms`, false)))
    const abort = () => fail(new DialFault('stopped', false))
    const end = () => {
      cancelTimer()
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    webSocket.on('error', (error) => fail(new DialFault(`no WebSocket: ${reasonOf(error)}`, false)))
    webSocket.once('unexpected-response', (_request, response) => {
      const waitMs = retryAfterMs(response.headers['retry-after'], now())
      sentenceOf(response)
        .then((said) => fail(new HubRefusal(`it refuses (${response.statusCode}): ${said}`, waitMs)))
        .catch(fail)
    })
    webSocket.once('open', () => {
      end()
      webSocket.removeAllListeners('error')
      resolve(webSocket)
    })
  })
}

/** Printable, and no more than a log takes. */
async function sentenceOf(body: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const chunk of body) {
    text += chunk.toString()
    if (text.length > sentenceBytesMax) break
  }
  return text
    .slice(0, sentenceBytesMax)
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
