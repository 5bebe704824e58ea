/** One TLS connection to an API server, over a wire of its own, with the protocol that both sides speak. */
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import type { Clock } from '../base/clock.ts'
import type { Dial, Wire } from './dial.ts'
import type { UpstreamLimits } from './limits.ts'
import { DialFault } from './reason.ts'

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
  /** What this kind of connection has besides. */
  readonly options?: Pick<ConnectionOptions, 'session' | 'secureContext'>
  /** Says instead of Node and its clock whether the other side is believed: why not, or undefined. */
  readonly judge?: (socket: TLSSocket) => DialFault | undefined
}

/** The signal ends it until it is secured, its time does too; afterwards its user does. */
export function secure(securing: Securing): Promise<Secured> {
  const { dial, url, trust, pair, protocols, clock, limits, signal, options, judge } = securing
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const dialling = new AbortController()
    let wire: Wire | undefined
    let socket: TLSSocket | undefined
    const fail = (error: Error) => {
      end()
      // Before anything is closed, which is told at once and says less.
      reject(error)
      wire?.destroy()
      socket?.destroy()
    }
    // A dial that is given up says itself what it was waiting for.
    const giveUp = (error: Error) => (wire === undefined ? dialling.abort(error) : fail(error))
    const cancelTimer = clock.setTimer(limits.dialMsMax, () =>
      giveUp(new DialFault(`no connection within ${limits.dialMsMax} ms`, false)),
    )
    const abort = () => giveUp(new Error('stopped'))
    const end = () => {
      cancelTimer()
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    dial({ host, port: Number(url.port || 443) }, dialling.signal)
      .then((dialled) => {
        wire = dialled
        dialled.on('error', fail)
        if (dialled.destroyed || dialling.signal.aborted) return fail(dialled.errored ?? new Error('closed'))
        const begun = connect({
          socket: dialled,
          host,
          ...(trust.serverName !== undefined && { servername: trust.serverName }),
          ...(trust.ca !== undefined && { ca: trust.ca }),
          ...pair,
          ...options,
          rejectUnauthorized: !trust.insecure && judge === undefined,
          ALPNProtocols: [...protocols],
        })
        socket = begun
        begun.on('error', fail)
        begun.once('close', () => fail(dialled.errored ?? new Error('closed'))) // TLS is closed before the wire has told why
        begun.once('secureConnect', () => {
          const fault = judge?.(begun)
          if (fault !== undefined) {
            reject(fault)
            begun.destroy()
            // Later: to close what is below TLS while TLS is calling ends the process (Node 26).
            setImmediate(() => fail(fault))
            return
          }
          end()
          begun.removeAllListeners('close')
          begun.off('error', fail)
          begun.on('error', () => {}) // the user of the socket hears of it as well
          resolve({ socket: begun, wire: dialled, protocol: begun.alpnProtocol === 'h2' ? 'h2' : 'http/1.1' })
        })
      })
      .catch(fail) // also a certificate or key that is none
  })
}
