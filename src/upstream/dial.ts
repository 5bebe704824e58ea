/** How a connection to an API server begins, below TLS: over TCP here, through a tunnel where one supplies its own `Dial`. */
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { standardLimits } from './limits.ts'
import { createLookup } from './names.ts'

/** Bytes both ways. Its count of bytes moves before a TLS record is complete, so it shows life on a slow line. */
export type Wire = Duplex & { readonly bytesRead: number }

/** The wire may still be under way: it keeps what is written to it, and fails with an error if it does not come about. */
export type Dial = (to: { readonly host: string; readonly port: number }) => Wire

const wireKeepAliveMs = 10_000 // finds a dead peer below HTTP/1.1 and upgrades, which have no PING

export function dialTcp({ familyMsMax } = standardLimits): Dial {
  const lookup = createLookup()
  return ({ host, port }) =>
    connect({
      host,
      port,
      lookup,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: wireKeepAliveMs,
      autoSelectFamilyAttemptTimeout: familyMsMax,
    })
}
