/** Whether the client is still there to be answered. Made only where it is asked: most answers are there at once. */
import type { Writable } from 'node:stream'

export function goneWith(answer: Writable): AbortSignal {
  const left = new AbortController()
  if (answer.destroyed) left.abort()
  else answer.once('close', () => left.abort())
  return left.signal
}
