/**
 * The end of a link that answers requests: each stream becomes a call, and its answer goes back as it is read. What the call
 * does with the request, and in whose name, is not known here.
 */
import type { Duplex } from 'node:stream'
import { tooManyRequests } from '../../kube/status.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import type { CarriedCertificate } from '../credentials.ts'
import type { TunnelDuplex } from '../duplex.ts'
import type { IncomingStream } from '../streams.ts'
import { takeHead } from './head.ts'
import {
  decodeRequestHead,
  encodeReplyHead,
  type HeaderLines,
  headersByName,
  isSmall,
  likenessOf,
  requestPurpose,
  type TunnelledActor,
  upgradePurpose,
} from './request.ts'

/** In whose name, as the link says it; only a token is proof of anything by itself. */
export type TunnelledIdentity =
  | { readonly kind: 'token'; readonly token: string }
  /** Whose holder is to be judged: an edge that shows it says that its caller has the key. */
  | { readonly kind: 'certificate'; readonly certificate: CarriedCertificate }
  | { readonly kind: 'node' | 'administrator' | 'anonymous' }

export type TunnelledRequest = {
  readonly method: string
  readonly path: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly identity: TunnelledIdentity
  readonly isUpgrade: boolean
  /** The object as its asker holds it: `same` may be answered. */
  readonly held: { readonly uid: string; readonly version: number } | undefined
  /** At the pace of its reader; undefined: it has none. One that is not read by the end of the answer is thrown away. */
  readonly body: AsyncIterable<Buffer> | undefined
  /** The asker left, or the link did, before the answer was on its way. */
  readonly signal: AbortSignal
}

export type TunnelledReply = {
  readonly status: number
  readonly headers: HeaderLines
  /** The API server has what the asker holds: the body is empty. */
  readonly isSame?: boolean
  /** The API server was not asked: the hub does not speak for this caller. */
  readonly isUnspoken?: boolean
  /** Of an upgrade: what it leads to, bytes both ways after a 101; of any other answer to it the body alone. */
  readonly body: Buffer | AsyncIterable<Buffer> | { readonly socket: Duplex }
}

/** The request could not be answered. The sentence goes to the asker, so it holds no credential. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
  /** Whether it may have been seen by what was to answer it. */
  readonly sent: boolean

  constructor(sentence: string, sent: boolean) {
    super(sentence)
    this.sent = sent
  }
}

type Parts = {
  readonly handle: (request: TunnelledRequest) => Promise<TunnelledReply>
  /** Requests of one caller at once on this link: a caller that has its share waits alone. */
  readonly callerRequestsMax: number
}

export class RequestServer {
  readonly #parts: Parts
  /** By caller, how many are under way; a token is its own name. */
  readonly #underWay = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Takes the streams that are requests, and tells the other side of others that it does not know them. */
  accept({ stream, purpose, token, certificate }: IncomingStream): void {
    if (purpose !== requestPurpose && purpose !== upgradePurpose) {
      stream.giveUp('unknown', 'streams of this kind are not taken here')
      return
    }
    const shown = { token: token?.tell(), certificate }
    this.#serve(stream, purpose === upgradePurpose, shown).catch((error: unknown) => {
      // What came whole and makes no sense is the asker's fault, and that of this stream alone.
      if (error instanceof LinkFault) stream.giveUp('unsent', error.message)
      else if (error instanceof RequestFailed) stream.giveUp(error.sent ? 'broken' : 'unsent', error.message)
      else stream.giveUp('broken', 'it broke off')
    })
  }

  async #serve(stream: TunnelDuplex, isUpgrade: boolean, shown: Shown): Promise<void> {
    const leaving = new AbortController()
    stream.once('close', () => {
      // A reason of its own, since one that Node makes for each costs more than the rest of a small request's end.
      if (!stream.writableFinished) leaving.abort(askerLeft)
    })
    const bytes = await takeHead(stream)
    if (bytes === undefined || stream.destroyed) throw new RequestFailed('the request ended before its head', false)
    const head = decodeRequestHead(bytes)
    const { method, path, actor, hasBody, headers, version, uid } = head
    const identity = identityOf(actor, shown)
    if (identity === undefined) throw new RequestFailed(`the request bears no ${actor}`, false)
    const credential = shown.token ?? shown.certificate?.text
    const leave = this.#enter(credential ?? `the link's ${actor}`)
    if (leave === undefined) return refuse(stream)
    stream.once('close', leave)
    const body =
      hasBody === 0 || isUpgrade ? undefined : (stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
    const reply = await this.#parts.handle({
      ...{ method, path, headers: headersByName(headers), identity, isUpgrade, body },
      held: version === 0 ? undefined : { uid, version },
      signal: leaving.signal,
    })
    const replied = encodeReplyHead({
      ...reply,
      ...{ same: reply.isSame ? 1 : 0, unspoken: reply.isUnspoken ? 1 : 0 },
    })
    if (!isUpgrade) {
      stream.likened(likenessOf(head, credential, replied.length))
      stream.gather(isSmall(reply.headers))
    }
    stream.write(replied)
    await answer(stream, reply)
  }

  /** How to leave again; undefined where the caller has its share. */
  #enter(caller: string): (() => void) | undefined {
    const before = this.#underWay.get(caller) ?? 0
    if (before >= this.#parts.callerRequestsMax) return undefined
    this.#underWay.set(caller, before + 1)
    return () => {
      const left = (this.#underWay.get(caller) ?? 1) - 1
      if (left > 0) this.#underWay.set(caller, left)
      else this.#underWay.delete(caller)
    }
  }
}

const askerLeft = new RequestFailed('the asker left', true)

type Shown = { readonly token: string | undefined; readonly certificate: CarriedCertificate | undefined }

/** Undefined where it bears no credential of the kind that its head names. */
function identityOf(actor: TunnelledActor, { token, certificate }: Shown): TunnelledIdentity | undefined {
  if (actor === 'token') return token === undefined ? undefined : { kind: 'token', token }
  if (actor === 'certificate') return certificate === undefined ? undefined : { kind: 'certificate', certificate }
  return { kind: actor === 'node' || actor === 'administrator' ? actor : 'anonymous' }
}

/** As an API server says it. */
function refuse(stream: TunnelDuplex): void {
  const { status } = tooManyRequests('too many requests of this caller are under way, please try again later', 1)
  const headers = [
    { name: 'content-type', value: 'application/json' },
    { name: 'retry-after', value: '1' },
  ]
  stream.write(encodeReplyHead({ status: 429, headers, same: 0, unspoken: 0 }))
  stream.end(JSON.stringify(status))
  stream.resume()
}

/** What follows its head. */
async function answer(stream: TunnelDuplex, { status, body: given }: TunnelledReply): Promise<void> {
  const body = 'socket' in given ? given.socket : given
  if ('socket' in given && status === 101) {
    join(stream, given.socket)
    return
  }
  if (body instanceof Buffer) stream.end(body)
  else {
    // Left early, by a reader that went, the loop ends the body too.
    for await (const chunk of body) {
      if (stream.destroyed) return
      if (!stream.write(chunk)) await drained(stream)
    }
    stream.end()
  }
  stream.resume()
}

/** Bytes both ways. A server that is done closes at once, whatever the asker may still say: what it said goes to its end all the same. */
function join(stream: TunnelDuplex, socket: Duplex): void {
  socket.pipe(stream)
  stream.pipe(socket)
  socket.on('error', () => {})
  socket.once('close', () => {
    if (!socket.readableEnded) stream.giveUp('broken', 'the connection that it led to broke off')
    // The server hears no more of it; the asker ends it when it has read the end.
    else stream.resume()
  })
  stream.once('close', () => socket.destroy())
}

function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const goOn = () => {
      stream.off('drain', goOn).off('close', goOn)
      resolve()
    }
    if (stream.destroyed) resolve()
    else stream.on('drain', goOn).on('close', goOn)
  })
}
