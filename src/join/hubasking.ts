/** Plain HTTPS requests, one to a connection, to a hub that is known by a digest of its authority's public key, and by nothing else yet. */
import { createHash, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import type { Clock } from '../base/clock.ts'
import { Unavailable, UsageError } from '../base/fault.ts'
import { request } from '../base/http.ts'
import { retryAfterMs } from '../base/retryafter.ts'
import type { KeyPair } from '../pki/certificate.ts'
import { faultOf } from '../pki/verdict.ts'
import type { Dial } from '../upstream/dial.ts'
import { standardLimits } from '../upstream/limits.ts'
import { type ProxyVariables, proxyFor } from '../upstream/proxychoice.ts'
import { dialThrough } from '../upstream/proxydial.ts'
import { DialFault, reasonOf } from '../upstream/reason.ts'
import { secure } from '../upstream/secure.ts'

type Parts = {
  /** wss://HOST:PORT */
  readonly hub: URL
  /** Without it what the certificate proves is asked for. */
  readonly token?: string
  /** `sha256:` and hexadecimal digits: of the authorities' public keys, any of which may be the hub's. */
  readonly hashes: readonly string[]
  /** A certificate of this node that it has already. */
  readonly pair?: KeyPair
  readonly dial: Dial
  readonly environment?: ProxyVariables
  readonly clock: Clock
}

/** `hubNow`: the time as the hub has it. */
type HubAnswer = { readonly object: unknown; readonly hubNow: number }

/** Throws `UsageError` or `Unavailable`, with what to do. */
export type AskHub = (method: string, path: string, content?: object) => Promise<HubAnswer>

/** The hub answered that it does not do it. */
export class HubSaid extends UsageError {
  readonly status: number
  /** Undefined: there is no point in asking again. */
  readonly retryAfterMs: number | undefined

  constructor(sentence: string, status: number, waitMs?: number) {
    super(sentence)
    this.status = status
    this.retryAfterMs = waitMs
  }
}

const answerMsMax = 15_000
const answerBytesMax = 256 * 1024
/** Where a hub is too busy to shake hands, or says not when. */
const busyMs = 3_000

/**
 * The hubs in turn: one that cannot be reached, is not the pinned one or cannot answer now is passed over, and the one that answered is the first to be asked
 * the next time. All of them have the same cluster behind them, and a request that is made twice is one.
 */
export function askingHubs({ hubs, ...parts }: Omit<Parts, 'hub'> & { readonly hubs: readonly URL[] }): AskHub {
  const asks = hubs.map((hub) => askingHub({ ...parts, hub }))
  let first = 0
  return async (method, path, content) => {
    const faults: Error[] = []
    for (let tries = 0; tries < asks.length; tries++) {
      const at = (first + tries) % asks.length
      try {
        const answer = await (asks[at] as AskHub)(method, path, content)
        first = at
        return answer
      } catch (error) {
        if (!isPassedOver(error)) throw error
        faults.push(error)
      }
    }
    throw allOf(faults)
  }
}

/** Another hub may answer where this one did not; what a hub says of the joiner any other would say too. */
function isPassedOver(error: unknown): error is Error {
  if (error instanceof HubSaid) return error.status === 503
  return error instanceof Unavailable || error instanceof UsageError
}

/** As the one that says most of whether to try again, with what each said. */
function allOf(faults: readonly Error[]): Error {
  const [only] = faults
  if (faults.length === 1 && only !== undefined) return only
  const words = faults.map(({ message }) => message).join('; ')
  const later = faults.find((one) => one instanceof HubSaid)
  if (later !== undefined) return new HubSaid(words, later.status, later.retryAfterMs)
  return faults.some((one) => one instanceof Unavailable) ? new Unavailable(words) : new UsageError(words)
}

function askingHub(parts: Parts): AskHub {
  const { hub, clock, environment } = parts
  const proxy = proxyFor(hub, { environment })
  return async (method, path, content) => {
    const socket = await connected(parts, proxy)
    try {
      const { status, headers, text } = await exchanged(socket, parts, { method, path, content })
      const object = parsed(text)
      if (status >= 300 || object === undefined)
        throw refusal(status, object, retryAfterMs(headers['retry-after'], clock.now()))
      return { object, hubNow: Date.parse(headers.date ?? '') || clock.now() }
    } finally {
      socket.destroy()
    }
  }
}

async function connected(parts: Parts, proxy: ReturnType<typeof proxyFor>): Promise<TLSSocket> {
  const { hub, dial, clock, pair } = parts
  const trust = { insecure: false }
  try {
    const { socket } = await secure({
      ...{ dial: proxy === undefined ? dial : dialThrough(dial, proxy, trust), url: hub, trust, pair, clock },
      ...{ protocols: ['http/1.1'], limits: standardLimits, signal: new AbortController().signal },
      judge: (tls) => faultAt(tls, parts),
    })
    return socket
  } catch (error) {
    if (error instanceof PinFault) throw new UsageError(error.message)
    if (error instanceof Error && 'code' in error && error.code === 'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR')
      throw new HubSaid('the hub has too many edges to greet now: try again later', 503, busyMs)
    throw new Unavailable(
      `the hub at ${hub.host} cannot be reached (${reasonOf(error)}): check --hub and the network, and run the same command again`,
    )
  }
}

/** What answers there is not the hub that it should be. */
class PinFault extends DialFault {}

/** By the digest alone: the clock of this machine is judged later, by what the hub says. */
function faultAt(socket: TLSSocket, { hub, hashes }: Parts): DialFault | undefined {
  const shown = chainOf(socket)
  const [leaf, ...others] = shown
  const authorities = others.filter((one) => one.ca && hashes.includes(hashOf(one)))
  if (leaf === undefined || authorities.length === 0) {
    const seen = others.filter(({ ca }) => ca).map(hashOf)
    return new PinFault(
      `what answers at ${hub.host} is not the hub of --ca-hash${seen.length === 0 ? '' : ` (it shows ${seen.join(', ')})`}: somebody is in between, --hub is the wrong one, or its authority was changed; take the whole command from "ake hub token"`,
      true,
    )
  }
  const fault = faultOf({ certificate: leaf, authorities, use: 'server', now: leaf.validFromDate.getTime() })
  if (fault !== undefined)
    return new PinFault(
      `what answers at ${hub.host} shows a certificate that its authority has not signed for a hub`,
      true,
    )
  const host = hub.hostname.replace(/^\[|\]$/g, '')
  const isNamed = (isIP(host) === 0 ? leaf.checkHost(host, { subject: 'never' }) : leaf.checkIP(host)) !== undefined
  return isNamed
    ? undefined
    : new PinFault(
        `the hub's certificate does not bear ${host}: start the hub with --host ${host}, or give --hub by a name that it has`,
        true,
      )
}

/** As `ake hub token` prints it. */
function hashOf({ publicKey }: X509Certificate): string {
  return `sha256:${createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')}`
}

/** What was shown, the server's own first; a chain that leads into itself ends there. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const found: X509Certificate[] = []
  let at: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (at?.raw !== undefined && found.length < chainMax) {
    found.push(new X509Certificate(at.raw))
    if (at.issuerCertificate === at) break
    at = at.issuerCertificate
  }
  return found
}

/** A hub shows two. */
const chainMax = 6

type JoinExchange = { readonly method: string; readonly path: string; readonly content: object | undefined }
type Exchanged = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
}

function exchanged(
  socket: TLSSocket,
  { hub, token, clock }: Parts,
  { method, path, content }: JoinExchange,
): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    const gone = (why: string) =>
      reject(new Unavailable(`the hub at ${hub.host} broke off (${why}): run the same command again`))
    const cancel = clock.setTimer(answerMsMax, () => {
      gone(`no answer within ${answerMsMax / 1_000} s`)
      socket.destroy()
    })
    const body = content === undefined ? undefined : Buffer.from(JSON.stringify(content))
    const sent = request({
      ...{ method, path: `/join/v1/${path}`, createConnection: () => socket },
      headers: {
        ...{ host: hub.host, accept: 'application/json', connection: 'close' },
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json', 'content-length': body.length }),
      },
    })
    sent.on('error', (error) => gone(reasonOf(error)))
    sent.once('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
        if (text.length > answerBytesMax) answer.destroy(new Error('too long'))
      })
      answer.on('error', (error) => gone(reasonOf(error)))
      answer.on('end', () => {
        cancel()
        const headers = { date: answer.headers.date, 'retry-after': answer.headers['retry-after'] }
        resolve({ status: answer.statusCode ?? 0, headers, text })
      })
    })
    sent.once('close', cancel)
    sent.end(body)
  })
}

function refusal(status: number, object: unknown, waitMs: number): HubSaid {
  const { sentence } = (object ?? {}) as { readonly sentence?: unknown }
  const words = printable(sentence)
  const said = words === '' ? `it answered ${status}: is it a hub, and not older than this ake?` : words
  if (status === 401) return new HubSaid(`${said}; make another with "ake hub token"`, status)
  if (status === 429 || status === 503) return new HubSaid(said, status, waitMs > 0 ? waitMs : busyMs)
  return new HubSaid(said, status)
}

/** A sentence of the hub goes to a terminal. */
export function printable(sentence: unknown): string {
  return typeof sentence === 'string' ? sentence.slice(0, 1_000).replace(/[^\x20-\x7e]+/g, ' ') : ''
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
