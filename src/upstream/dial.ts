/** How a connection to an API server begins, below TLS: over TCP here, through a proxy or a tunnel by another `Dial`. */
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { standardLimits } from './limits.ts'
import { createLookup } from './names.ts'

/** Bytes both ways. Its count of bytes moves before a TLS record is complete, so it shows life on a slow line. */
export type Wire = Duplex & { readonly bytesRead: number }

export type Destination = { readonly host: string; readonly port: number }

/**
 * Resolves with a wire that leads there, of which nothing was read. Rejects with why there is none, at the latest when the
 * signal fires, with its reason or a better one; then nothing is left open.
 */
export type Dial = (to: Destination, signal: AbortSignal) => Promise<Wire>

const wireKeepAliveMs = 10_000 // finds a dead peer below HTTP/1.1 and upgrades, which have no PING

export function dialTcp({ familyMsMax } = standardLimits): Dial {
  const lookup = createLookup()
  return ({ host, port }, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect({
        host,
        port,
        lookup,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: wireKeepAliveMs,
        autoSelectFamilyAttemptTimeout: familyMsMax,
      })
      const leave = () => socket.destroy(signal.reason as Error)
      if (signal.aborted) leave()
      signal.addEventListener('abort', leave)
      // It stays, without effect, once there is a connection: then the user of the wire hears of errors as well.
      socket.on('error', reject)
      socket.once('connect', () => resolve(socket))
      socket.once('close', () => signal.removeEventListener('abort', leave))
    })
}
