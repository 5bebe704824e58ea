/** Which hub writes the status of policies: where several share a state in a Secret the one that holds a Lease beside it, else this one. */
import { randomUUID } from 'node:crypto'
import type { HubPeers } from '../../hub/peers/peers.ts'
import { HubLease } from '../../hub/policy/lease.ts'
import { PolicyStatus } from '../../hub/policy/policystatus.ts'
import type { StatePlace } from '../optionkinds.ts'
import type { HubFleet } from './fleet.ts'

type Parts = Omit<ConstructorParameters<typeof PolicyStatus>[0], 'edges' | 'lease'> & {
  readonly hub: string
  readonly state: StatePlace
  readonly peers: Pick<HubPeers, 'names'>
  /** Other replicas, as far as they are known. */
  readonly fleet: Pick<HubFleet, 'others'>
}

export function openPolicyStatus({ hub, state, peers, fleet, ...parts }: Parts): PolicyStatus {
  const { upstream, clock } = parts
  const place = 'folder' in state ? undefined : { namespace: state.namespace, name: `${state.name}-policies` }
  // Several may run on one machine.
  const holder = `${hub}_${randomUUID()}`
  const lease = place && new HubLease({ upstream, place, holder, clock })
  const elsewhere = () => fleet.others.flatMap(({ names }) => names.map(({ name }) => name))
  // One that moves may be at two for a moment.
  return new PolicyStatus({ ...parts, lease, edges: () => new Set([...peers.names(), ...elsewhere()]) })
}
