/**
 * The way to the API server through a hub: each request is a stream of the edge's link (`tunnel/request`). The hub passes it
 * on as its caller; how far the link and the API server behind it can be reached is told elsewhere.
 *
 * What is not answered is told honestly: unsent is a request of which nothing was handed to the link, or of which the hub said
 * that it passed nothing on. Of any other the API server may have seen all.
 */
import type { Clock } from '../../base/clock.ts'
import { tooManyRequests } from '../../kube/status.ts'
import { isBearable, isCarriedChain } from '../../tunnel/credentials.ts'
import { StreamBroken, type TunnelDuplex } from '../../tunnel/duplex.ts'
import { takeHead } from '../../tunnel/request/head.ts'
import {
  decodeReplyHead,
  encodeRequestHead,
  headBytesMax,
  headerLines,
  isSmall,
  likenessOf,
  type ReplyHead,
  type RequestHead,
  requestPurpose,
  type TunnelledActor,
  upgradePurpose,
} from '../../tunnel/request/request.ts'
import type { TunnelStreams } from '../../tunnel/streams.ts'
import { Flow, pour } from '../flow.ts'
import {
  answerHeaders,
  bytesOf,
  rawAnswerHeaders,
  requestHeaders,
  type SentHeaders,
  upgradeHeaders,
} from '../headers.ts'
import { Patience } from '../patience.ts'
import {
  type Connected,
  type Identity,
  Unreachable,
  Unspoken,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../upstream.ts'

type Parts = {
  /** Of the link that there is; undefined while there is none. */
  readonly streams: () => Pick<TunnelStreams, 'open' | 'closed' | 'takesCertificates'> | undefined
  /** When the link last gave a sign of life, by the steady clock. */
  readonly heardAt: () => number
  /** The common name of the link's certificate: whose requests go up as the link's own node. */
  readonly node: string
  readonly userAgent: string
  readonly clock: Clock
  /** Hears that the hub could not have a request answered, and why. */
  readonly failed?: (why: string) => void
}

export class LinkedRequests {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const { body } = asked
    const hasBody = body !== undefined
    const opened = this.#open(asked, {
      purpose: requestPurpose,
      headers: requestHeaders(this.#headersOf(asked)),
      hasBody,
    })
    const { stream, patience } = opened
    let bodyBroke = false
    if (!hasBody) stream.end()
    // A stream has an end of its own: its hub counts.
    else
      pour(body, stream, undefined).catch(() => {
        bodyBroke = true
        stream.giveUp('cancelled', 'the body of the request broke off')
      })
    const failure = (): Unreachable =>
      bodyBroke
        ? new Unreachable('the body of the request broke off', stream.isSent)
        : this.#brokenOff(stream, patience)
    const { status, headers, same, unspoken } = await head(opened, failure)
    if (unspoken !== 0) throw await unspokenBy(stream)
    return {
      status,
      isSame: same !== 0,
      headers: answerHeaders(raw(headers)),
      body: new Flow({
        stream,
        failure: () => {
          if (!stream.readableEnded) return failure()
          // Answered before all of it was sent: the rest is of no use to the API server.
          if (!stream.writableFinished) stream.destroy()
          return undefined
        },
        cancel: () => void stream.destroy(),
        heard: () => {},
      }),
      heardAt: this.#parts.heardAt,
    }
  }

  async connect(asked: UpstreamRequest): Promise<Connected> {
    const headers = upgradeHeaders(this.#headersOf(asked))
    const opened = this.#open(asked, { purpose: upgradePurpose, headers, hasBody: false })
    const { stream, patience } = opened
    const { status, headers: lines, unspoken } = await head(opened, () => this.#brokenOff(stream, patience))
    if (unspoken !== 0) throw await unspokenBy(stream)
    if (status !== 101) stream.end()
    const rawHeaders = status === 101 ? raw(lines) : rawAnswerHeaders(raw(lines))
    return { status, rawHeaders, socket: stream, head: Buffer.alloc(0) }
  }

  #brokenOff(stream: TunnelDuplex, patience: Patience): Unreachable {
    const { errored } = stream
    if (errored instanceof StreamBroken && beyondHub.has(errored.reason)) this.#parts.failed?.(errored.message)
    return brokenOff(stream, patience)
  }

  #headersOf(asked: UpstreamRequest): Parameters<typeof requestHeaders>[0] {
    const agent = asked.passedOn === true ? undefined : this.#parts.userAgent
    return { headers: asked.headers, token: undefined, agent, bytes: bytesOf(asked) }
  }

  #open(
    { method, path, identity, passedOn, held, signal, headMsMax }: UpstreamRequest,
    { purpose, headers, hasBody }: { purpose: string; headers: SentHeaders; hasBody: boolean },
  ): Opened {
    const { streams, clock, node } = this.#parts
    const { actor, ...credential } = actorOf(identity, { node, isOwn: passedOn !== true })
    const lines = headerLines(headers)
    const { version, uid } = held ?? { version: 0, uid: '' }
    const head: RequestHead = { method, path, actor, hasBody: hasBody ? 1 : 0, headers: lines, version, uid }
    const bytes = headOf(head)
    const link = streams()
    if (link === undefined || link.closed !== undefined)
      throw new Unreachable(link?.closed ?? 'there is no link', false)
    if (signal?.aborted === true) throw new Unreachable('the caller gave up', false)
    if (credential.certificate !== undefined && !link.takesCertificates) throw new Unreachable(notTaken, false)
    // For what the edge asks for itself no caller waits until the link is found dead.
    const stream = link.open({ purpose, ...credential, isAwaited: passedOn === true })
    if (stream === undefined)
      throw tooManyRequests('too many requests are passed on to the hub at once, please try again later', 1)
    const patience = new Patience({ clock, signal, headMsMax })
    patience.signal.addEventListener('abort', () => stream.destroy(), { once: true })
    stream.once('close', () => patience.done())
    if (purpose === requestPurpose) {
      stream.likened(likenessOf(head, credential.token ?? credential.certificate, bytes.length))
      stream.gather(isSmall(lines))
    }
    stream.write(bytes)
    return { stream, patience }
  }
}

type Opened = { readonly stream: TunnelDuplex; readonly patience: Patience }

const notTaken = 'the hub takes no certificates of callers'

/** Of what a hub says of itself. */
const sentenceBytesMax = 16 * 1024

/** What the hub says to a caller for whom it does not speak. */
async function unspokenBy(stream: TunnelDuplex): Promise<Unspoken> {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      size += piece.length
      if (size > sentenceBytesMax) break
      pieces.push(piece)
    }
    const { message } = JSON.parse(Buffer.concat(pieces).toString()) as { message?: unknown }
    if (typeof message === 'string') return new Unspoken(message)
  } catch {
    // It broke off, or makes no sense: that it does not speak is told all the same.
  } finally {
    stream.destroy()
  }
  return new Unspoken('its hub does not speak for it')
}

/** After `unknown`, `busy` and `unsent` the hub has passed nothing on. */
const unsent: ReadonlySet<string> = new Set(['unknown', 'busy', 'unsent'])

/** What became of a request behind the hub. */
const beyondHub: ReadonlySet<string> = new Set(['unsent', 'broken'])

async function head({ stream, patience }: Opened, failure: () => Unreachable): Promise<ReplyHead> {
  const bytes = await takeHead(stream).catch(() => undefined)
  if (bytes === undefined) {
    const error = failure()
    stream.destroy()
    throw error
  }
  patience.answered()
  try {
    return decodeReplyHead(bytes)
  } catch {
    stream.destroy()
    throw new Unreachable('the answer of the hub makes no sense', true)
  }
}

function brokenOff(stream: TunnelDuplex, patience: Patience): Unreachable {
  if (patience.signal.aborted) return patience.error(stream.isSent)
  const { errored } = stream
  if (!(errored instanceof StreamBroken)) return new Unreachable('the answer ended too early', stream.isSent)
  return new Unreachable(errored.message, stream.isSent && !unsent.has(errored.reason))
}

/**
 * Throws `Unreachable` where nothing goes up in that name. What the edge asks for itself (documents, reviews) it asks as its node, for whom every hub
 * stands; what its administrator asks for needs a hub that trusts its edges.
 */
function actorOf(
  identity: Identity,
  { node, isOwn }: { node: string; isOwn: boolean },
): { actor: TunnelledActor; token?: string; certificate?: string } {
  switch (identity.kind) {
    case 'edge':
      return { actor: isOwn ? 'node' : 'administrator' }
    case 'anonymous':
      return { actor: 'anonymous' }
    case 'token':
      if (!isBearable(identity.token)) throw new Unreachable('a token that no header can carry', false)
      return { actor: 'token', token: identity.token }
    case 'certificate':
      if (identity.name === node) return { actor: 'node' }
      throw new Unreachable(
        `a hub passes nothing on for "${identity.name}", whom a certificate of this edge names`,
        false,
      )
    case 'named':
      if (identity.chain === undefined || !isCarriedChain(identity.chain)) throw new Unreachable(notTaken, false)
      return { actor: 'certificate', certificate: identity.chain }
    case 'local':
      throw new Unreachable(`no credential is configured for "${identity.caller.name}"`, false)
  }
}

function headOf(head: Parameters<typeof encodeRequestHead>[0]): Buffer {
  try {
    return encodeRequestHead(head)
  } catch {
    throw new Unreachable(`the head of the request is longer than ${headBytesMax} bytes`, false)
  }
}

/** Names and values in turn. */
function raw(lines: ReplyHead['headers']): string[] {
  return lines.flatMap(({ name, value }) => [name, value])
}
