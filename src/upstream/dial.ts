/** One TLS connection to an API server, with the protocol that both sides speak. */
import { connect as connectTcp, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Clock } from '../base/clock.ts'
import type { UpstreamLimits } from './limits.ts'

/** Whom to believe on the other side. */
export type Trust = { readonly ca?: string; readonly insecure: boolean; readonly serverName?: string }

export type Pair = { readonly cert: string; readonly key: string }

export type Dialled = {
  readonly socket: TLSSocket
  /** Below TLS: its count of bytes moves before a record is complete. */
  readonly wire: Socket
  readonly protocol: 'h2' | 'http/1.1'
}

export type Dialling = {
  readonly url: URL
  readonly trust: Trust
  readonly pair: Pair | undefined
  readonly protocols: readonly ('h2' | 'http/1.1')[]
  readonly lookup: LookupFunction
  readonly clock: Clock
  readonly limits: UpstreamLimits
  readonly signal: AbortSignal
}

export class DialTimeout extends Error {}

const wireKeepAliveMs = 10_000 // finds a dead peer below HTTP/1.1 and upgrades, which have no PING

export function dial({ url, trust, pair, protocols, lookup, clock, limits, signal }: Dialling): Promise<Dialled> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const wire = connectTcp({
      host,
      port: Number(url.port || 443),
      lookup,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: wireKeepAliveMs,
      autoSelectFamilyAttemptTimeout: limits.familyMsMax,
    })
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
      socket = connectTls({
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
    socket.once('close', () => fail(wire.errored ?? new Error('closed'))) // TLS is closed before TCP has told why
    socket.once('secureConnect', () => {
      end()
      socket.removeAllListeners('close')
      socket.off('error', fail)
      socket.on('error', () => {}) // whoever uses it hears of it as well
      resolve({ socket, wire, protocol: socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1' })
    })
  })
}
