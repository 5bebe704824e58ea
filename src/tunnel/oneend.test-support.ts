/** One end of a tunnel without any driver: frames are given to it and taken from it as they are meant. */

import type { TunnelEffect } from './effects.ts'
import { decodeTunnelFrame, encodeTunnelFrame, type TunnelFrame } from './frames.ts'
import { standardTunnelLimits, type TunnelLimits } from './limits.ts'
import { Tunnel, type TunnelSide } from './tunnel.ts'

export const none = Buffer.alloc(0)
export const some = Buffer.from('some')

export const limits: TunnelLimits = { ...standardTunnelLimits, streamsMax: 4, windowBytes: 100, windowBytesMax: 400 }
export const begin = {
  kind: 'begin',
  streams: 4,
  window: 100,
  credentials: 2,
  contexts: 0,
  certificates: 0,
} as const satisfies TunnelFrame

export const sides: readonly TunnelSide[] = ['edge', 'hub']

export function give(tunnel: Tunnel, frame: TunnelFrame): TunnelEffect[] {
  return tunnel.receive(encodeTunnelFrame(frame))
}

/** Everything it has to send. */
export function takeAll(tunnel: Tunnel, isBulkTaken = true): TunnelFrame[] {
  const frames: TunnelFrame[] = []
  for (let taken = tunnel.next(isBulkTaken); taken !== undefined; taken = tunnel.next(isBulkTaken))
    frames.push(decodeTunnelFrame(taken.frame) as TunnelFrame)
  return frames
}

export function begun(side: TunnelSide, own = limits, other: TunnelFrame & { kind: 'begin' } = begin): Tunnel {
  const tunnel = new Tunnel({ side, limits: own })
  takeAll(tunnel)
  give(tunnel, other)
  return tunnel
}
