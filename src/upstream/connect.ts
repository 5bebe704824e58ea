/** Upgrades (exec, attach, port-forward): a connection of their own that becomes bytes both ways. They are HTTP/1.1's. */
import type { IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { request } from '../base/http.ts'
import { pour } from './flow.ts'
import { declaredBytes, rawAnswerHeaders } from './headers.ts'
import type { Pool } from './pool.ts'
import { reasonOf } from './reason.ts'
import type { Secured } from './secure.ts'
import type { Sending } from './session.ts'
import { type Connected, Unreachable } from './upstream.ts'

type Parts = {
  readonly pool: Pick<Pool, 'dial'>
  readonly url: URL
  readonly sending: Sending
  readonly stopped: AbortSignal
}

/** An upgrade outlives the pool that made its connection, but not the upstream, which is `stopped`. */
export async function upgradeOver({ pool, url, sending, stopped }: Parts): Promise<Connected> {
  const { patience } = sending
  const dialling = pool.dial(['http/1.1'])
  dialling.then(
    ({ socket }) => {
      const stop = () => socket.destroy()
      if (stopped.aborted || patience.signal.aborted) return stop()
      stopped.addEventListener('abort', stop)
      socket.once('close', () => stopped.removeEventListener('abort', stop))
    },
    () => {},
  )
  return await upgrade(await patience.wait(dialling), url, sending)
}

/** `secured` is used up. Its socket ends when the patience does, also after the answer. */
function upgrade(secured: Secured, url: URL, sending: Sending): Promise<Connected> {
  const { method, path, headers, body, patience } = sending
  const { socket } = secured
  return new Promise((resolve, reject) => {
    const leave = () => {
      socket.destroy()
      reject(patience.error(true))
    }
    if (patience.signal.aborted) return leave()
    patience.signal.addEventListener('abort', leave, { once: true })
    socket.once('close', () => {
      patience.signal.removeEventListener('abort', leave)
      patience.done()
      reject(new Unreachable(`${url.origin}: connection closed`, true)) // without effect once it was answered
    })
    const asked = request({
      createConnection: () => socket,
      method,
      path,
      headers: { connection: 'close', ...headers, host: url.host },
    })
    asked.on('error', (error) => {
      socket.destroy()
      reject(
        patience.signal.aborted ? patience.error(true) : new Unreachable(`${url.origin}: ${reasonOf(error)}`, true),
      )
    })
    asked.once('upgrade', (response, upgraded, head) => {
      patience.answered()
      resolve({ status: response.statusCode ?? 101, rawHeaders: response.rawHeaders, socket: upgraded, head })
    })
    asked.once('response', (response) => {
      patience.answered()
      const rawHeaders = rawAnswerHeaders(response.rawHeaders)
      const status = response.statusCode ?? 0
      resolve({ status, rawHeaders, socket: bodyOf(response, url, () => socket.destroy()), head: Buffer.alloc(0) })
    })
    if (body === undefined) asked.end()
    else pour(body, asked, declaredBytes(headers)).catch(() => socket.destroy())
  })
}

/** The body of an answer that is no upgrade; what is written to it goes nowhere, as the server does not listen. */
function bodyOf(response: IncomingMessage, url: URL, ended: () => void): Duplex {
  const body = new Duplex({
    allowHalfOpen: false,
    read: () => void response.resume(),
    write: (_chunk, _encoding, done) => done(),
    destroy: (error, done) => {
      ended()
      done(error)
    },
  })
  // It may break before its reader looks.
  body.on('error', () => {})
  response.on('data', (chunk: Buffer) => {
    if (!body.push(chunk)) response.pause()
  })
  response.on('end', () => body.push(null))
  response.on('error', (error) => body.destroy(new Unreachable(`${url.origin}: ${reasonOf(error)}`, true)))
  return body
}
