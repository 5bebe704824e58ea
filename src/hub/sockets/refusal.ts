/** What an edge hears that does not get a link: a status, a sentence, and when to try again. */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../base/clock.ts'
import { STATUS_CODES } from '../../base/http.ts'

type LinkRefusal = { readonly status: number; readonly sentence: string; readonly retryAfterMs?: number }

export function refuse(
  socket: Duplex,
  { status, sentence, retryAfterMs }: LinkRefusal,
  lastWordsMsMax: number,
  clock: Clock,
): void {
  const body = `${sentence}\n`
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...(retryAfterMs === undefined ? [] : [`Retry-After: ${Math.ceil(retryAfterMs / 1_000)}`]),
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.on('error', () => {})
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.resume()
  const cancel = clock.setTimer(lastWordsMsMax, () => socket.destroy())
  socket.once('close', cancel)
}
