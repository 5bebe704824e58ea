/** What the options of a hub mean for its parts. */
import { hostname } from 'node:os'
import { type ForwardingLimits, forwardingLimits } from '../../hub/forwarding/limits.ts'
import { isWildcard, machineAddresses } from '../../pki/pki.ts'
import type { HubConfig } from '../config.ts'

/** By which names and addresses edges reach it: its certificate bears them, and an edge that dials another leaves. */
export function hubHosts({ listen, host }: Pick<HubConfig, 'listen' | 'host'>, machine = machineAddresses): string[] {
  const given = listen.map((one) => one.host)
  const own = given.some(isWildcard) ? [...(/^[a-z0-9.-]+$/i.test(hostname()) ? [hostname()] : []), ...machine()] : []
  const named = given.filter((one) => !isWildcard(one)).map((one) => one.replace(/%.*$/, ''))
  return [...new Set(['localhost', '127.0.0.1', '::1', ...named, ...own, ...host])]
}

/** Bursts grow with the rates, as they stand to each other where nothing is set. */
export function forwardingLimitsOf(
  config: Pick<HubConfig, 'edgeRequestsPerSecond' | 'callerRequestsPerSecond'>,
): Partial<ForwardingLimits> {
  const { edgeRequestsPerSecond: edgePerSecond, callerRequestsPerSecond: callerPerSecond } = config
  const standard = forwardingLimits
  return {
    edgePerSecond,
    edgeBurst: edgePerSecond * (standard.edgeBurst / standard.edgePerSecond),
    callerPerSecond,
    callerBurst: callerPerSecond * (standard.callerBurst / standard.callerPerSecond),
  }
}
