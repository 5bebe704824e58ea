/** One TLS connection to an API server, over a wire of its own, with the protocol that both sides speak. */
import { connect, type TLSSocket } from 'node:tls'
import type { Clock } from '../base/clock.ts'
import type { Dial, Wire } from './dial.ts'
import type { UpstreamLimits } from './limits.ts'

/** Whom to believe on the other side. */
export type Trust = { readonly ca?: string; readonly insecure: boolean; readonly serverName?: string }

export type Pair = { readonly cert: string; readonly key: string }

export type Secured = {
  readonly socket: TLSSocket
  readonly wire: Wire
  readonly protocol: 'h2' | 'http/1.1'
}

export type Securing = {
  readonly dial: Dial
  readonly url: URL
  readonly trust: Trust
  readonly pair: Pair | undefined
  readonly protocols: readonly ('h2' | 'http/1.1')[]
  readonly clock: Clock
  readonly limits: UpstreamLimits
  readonly signal: AbortSignal
}

export class DialTimeout extends Error {}

export function secure({ dial, url, trust, pair, protocols, clock, limits, signal }: Securing): Promise<Secured> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const wire = dial({ host, port: Number(url.port || 443) })
    let socket: TLSSocket
    const fail = (error: Error) => {
      end()
      wire.destroy()
      socket?.destroy()
      reject(error)
    }
    const cancelTimer = clock.setTimer(limits.dialMsMax, () => fail(new DialTimeout()))
    const abort = () => fail(new Error('stopped'))
    const end = () => {
      cancelTimer()
      signal.removeEventListener('abort', abort)
    }
    wire.on('error', fail)
    signal.addEventListener('abort', abort)
    try {
      socket = connect({
        socket: wire,
        host,
        ...(trust.serverName !== undefined && { servername: trust.serverName }),
        ...(trust.ca !== undefined && { ca: trust.ca }),
        ...pair,
        rejectUnauthorized: !trust.insecure,
        ALPNProtocols: [...protocols],
      })
    } catch (error) {
      fail(error as Error) // a certificate or key that is none
      return
    }
    socket.on('error', fail)
    socket.once('close', () => fail(wire.errored ?? new Error('closed'))) // TLS is closed before the wire has told why
    socket.once('secureConnect', () => {
      end()
      socket.removeAllListeners('close')
      socket.off('error', fail)
      socket.on('error', () => {}) // the user of the socket hears of it as well
      resolve({ socket, wire, protocol: socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1' })
    })
  })
}
