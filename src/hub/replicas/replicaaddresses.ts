/** Where the replicas of a hub are, by the EndpointSlices of their Service. */
import type { Clock } from '../../base/clock.ts'
import { parseLabelSelector } from '../../kube/selector.ts'
import { FollowedObjects } from '../access/followed.ts'
import type { HubSources } from '../sources/sources.ts'
import type { ReplicaAddress } from './replicasockets.ts'

type Parts = {
  readonly sources: Pick<HubSources, 'open'>
  readonly service: { readonly namespace: string; readonly name: string }
  readonly clock: Clock
}

type EndpointSlice = {
  readonly endpoints?: readonly { readonly addresses?: readonly string[] }[]
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[]
}

/** What the port of links is called, where there are several. */
const linkPort = 'link'

export class ReplicaAddresses {
  readonly #followed: FollowedObjects
  readonly #slices = new Map<string, readonly ReplicaAddress[]>()

  constructor({ sources, service, clock }: Parts) {
    const labels = parseLabelSelector(`kubernetes.io/service-name=${service.name}`)
    const { namespace } = service
    this.#followed = new FollowedObjects({
      ...{
        sources,
        clock,
        of: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices', namespace, labels },
      },
      put: ({ key, bytes }) => void this.#slices.set(key, addressesIn(bytes)),
      remove: (key) => void this.#slices.delete(key),
      // Lines that there are stay, whatever the API server says for a moment.
      clear: () => this.#slices.clear(),
      told: () => undefined,
    })
  }

  get all(): readonly ReplicaAddress[] {
    return [...this.#slices.values()].flat()
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#followed.start()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    this.#followed.stop()
  }
}

function addressesIn(bytes: Buffer): readonly ReplicaAddress[] {
  const { endpoints = [], ports = [] } = JSON.parse(bytes.toString()) as EndpointSlice
  const port = (ports.find(({ name }) => name === linkPort) ?? ports[0])?.port
  if (port === undefined) return []
  return endpoints.flatMap(({ addresses = [] }) => addresses.map((host) => ({ host, port })))
}
