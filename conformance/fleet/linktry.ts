/**
 * One try for a link by hand, so that it can be told whether TLS resumed the session of a ticket: an edge that is refused a ticket shakes hands in full,
 * and would not say.
 */
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:tls'
import { systemClock } from '../../src/base/clock.ts'
import { until } from '../../src/base/until.test-support.ts'
import { linkPath } from '../../src/link/socket/limits.ts'
import { parseCredential } from '../../src/pki/credentialfile.ts'
import { dialTcp } from '../../src/upstream/dial.ts'
import { dialHub } from '../../src/upstream/linked/hubdial.ts'
import { HubTicketPouch } from '../../src/upstream/linked/tickets.ts'

/** `said`: the head and body of the answer; of a link that was given the head alone. */
export type LinkTried = { readonly resumed: boolean; readonly said: string }

type Parts = { readonly file: string; readonly port: number; readonly session?: Buffer | undefined }

const host = '127.0.0.1'
const answerMsMax = 10_000

/** The session of a link that was made with this credential, and ended. */
export async function ticketOf({ file, port }: Pick<Parts, 'file' | 'port'>, signal: AbortSignal): Promise<Buffer> {
  const credential = parseCredential(await readFile(file, 'utf8'), file)
  const tickets = new HubTicketPouch()
  const address = new URL(`wss://${host}:${port}`)
  const link = await dialHub({
    ...{ dial: dialTcp(), address, credential, tickets, now: Date.now, clock: systemClock, signal },
  })
  await until(() => tickets.get(host) !== undefined, 'a ticket', { withinMs: answerMsMax, everyMs: 20, signal })
  link.close('done', '')
  return tickets.get(host)?.session as Buffer
}

export async function tryLink({ file, port, session }: Parts): Promise<LinkTried> {
  const { ca, pair } = parseCredential(await readFile(file, 'utf8'), file)
  const protocols = { minVersion: 'TLSv1.3', ALPNProtocols: ['http/1.1'] } as const
  const socket = connect({ ...{ host, port, ca, ...pair }, ...protocols, ...(session && { session }) })
  const { promise, resolve, reject } = Promise.withResolvers<LinkTried>()
  let said = ''
  const tried = () => resolve({ resumed: socket.isSessionReused(), said })
  socket.setTimeout(answerMsMax, () => socket.destroy(new Error(`no answer within ${answerMsMax} ms`)))
  socket.on('error', reject)
  socket.on('end', tried)
  socket.on('data', (chunk) => {
    said += chunk.toString('latin1')
    if (said.startsWith('HTTP/1.1 101')) tried()
  })
  socket.once('secureConnect', () => {
    const key = randomBytes(16).toString('base64')
    const lines = [`GET ${linkPath} HTTP/1.1`, `Host: ${host}`, 'Connection: Upgrade', 'Upgrade: websocket']
    socket.write([...lines, 'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${key}`, '', ''].join('\r\n'))
  })
  return await promise.finally(() => socket.destroy())
}
