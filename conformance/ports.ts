/** Loopback ports that stay ours across restarts: below the range from which the system picks ports for connections. */
import { once } from 'node:events'
import { createServer } from 'node:net'

const first = 20_000
/** Linux hands out 32768 and above to outgoing connections, which would take the port of a server that is just away. */
const end = 32_000
/** Processes that run at the same time begin in different blocks: one that only looks whether a port is free has it for a moment. */
const blockPorts = 200
const own = first + (process.pid % ((end - first) / blockPorts)) * blockPorts
/** What this process was given it may be about to listen on. */
const given = new Set<number>()

/** So many free ports, all different. They are free now; a process that wants to keep them listens soon. */
export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = []
  for (let tries = 0; found.length < count; tries++) {
    const [from, ports] = tries < blockPorts ? [own, blockPorts] : [first, end - first]
    const port = from + Math.floor(Math.random() * ports)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) found.push(port)
  }
  return found
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
    await once(server.close(), 'close')
    return true
  } catch {
    return false
  }
}
