/** The end of a server: first nothing new comes, then what is under way ends, then what it was made of. */
import type { Server } from '../endpoint/sockets/server.ts'

/** Resolves when every connection is gone; `drained` is called once nothing is waited for any longer. */
export async function endInOrder(signal: AbortSignal, server: Server, drained: () => void = () => {}): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  await server.drain()
  drained()
  await server.close()
}
