/**
 * How pods find this edge by their in-cluster configuration alone: the kubelet mounts the CA of `kube-root-ca.crt` into them,
 * and kube-proxy leads the address of the service `kubernetes` to its endpoints. The first is shown with the edge's own
 * authority behind the cluster's, the second with the edge's own address; nothing of it is written anywhere.
 */
import { isIP } from 'node:net'
import { field, isObject, type Json, type JsonObject, parseJson, printJson, text } from '../../kube/json/json.ts'
import type { Rewriting } from './view.ts'

export type HereAddress = { readonly host: string; readonly port: number }

const authorityName = 'kube-root-ca.crt'
const authorityKey = 'ca.crt'
const serviceNamespace = 'default'
const serviceName = 'kubernetes'

/** ConfigMaps: the cluster's authority and ours (PEM). */
export function withAuthority(authority: string): Rewriting {
  return {
    concerns: (_, name) => name === undefined || name === authorityName,
    see: ({ bytes }) =>
      changed(bytes, (object) => {
        const data = field(object, 'data')
        const known = text(data, authorityKey)
        // One without the cluster's own is not what it is called: it is left as it is.
        if (!isObject(data) || known === '' || known.includes(authority.trim())) return false
        data.set(authorityKey, `${known.trimEnd()}\n${authority}`)
        return true
      }),
  }
}

/** Endpoints `default/kubernetes`, which are of one family. Where we have no address of it they stay as they are. */
export function endpointsHere(here: readonly HereAddress[]): Rewriting {
  return {
    concerns: (namespace, name) => isService(namespace) && (name === undefined || name === serviceName),
    see: ({ bytes }) =>
      changed(bytes, (object) => {
        const [first] = subsetsOf(object)
        const family = isIP(text(addressesOf(first)[0], 'ip'))
        const ours = here.filter(({ host }) => isIP(host) === family)
        if (family === 0 || ours.length === 0) return false
        const ports = field(first, 'ports') ?? []
        const subset = ({ host, port }: HereAddress) =>
          objectOf({ addresses: [objectOf({ ip: host })], ports: leading(ports, port) })
        object.set('subsets', ours.map(subset))
        return true
      }),
  }
}

/** The EndpointSlices of the same service, each of one family. */
export function slicesHere(here: readonly HereAddress[]): Rewriting {
  return {
    concerns: isService,
    see: ({ bytes, labels }) => {
      if (labels?.get('kubernetes.io/service-name') !== serviceName) return bytes
      return changed(bytes, (slice) => {
        const family = { IPv4: 4, IPv6: 6 }[text(slice, 'addressType')]
        const ours = here.filter(({ host }) => isIP(host) === family)
        // All endpoints of a slice share its ports: of several of ours, those with the first one's.
        const [first] = ours
        if (first === undefined) return false
        const own = ours.filter(({ port }) => port === first.port)
        slice.set(
          'endpoints',
          own.map(({ host }) => endpoint(host)),
        )
        slice.set('ports', leading(field(slice, 'ports') ?? [], first.port))
        return true
      })
    },
  }
}

function isService(namespace: string): boolean {
  return namespace === '' || namespace === serviceNamespace
}

function subsetsOf(endpoints: JsonObject): Json[] {
  const subsets = endpoints.get('subsets')
  return Array.isArray(subsets) ? subsets : []
}

function addressesOf(subset: Json | undefined): Json[] {
  return ['addresses', 'notReadyAddresses'].flatMap((one) => {
    const found = field(subset, one)
    return Array.isArray(found) ? found : []
  })
}

function endpoint(host: string): JsonObject {
  return objectOf({ addresses: [host], conditions: objectOf({ ready: true }) })
}

/** The ports of the cluster's own, each with our number: clients look for them by name. */
function leading(ports: Json, port: number): Json {
  if (!Array.isArray(ports)) return ports
  return ports.map((one) => (isObject(one) ? new Map([...one, ['port', port]]) : one))
}

function objectOf(members: Record<string, Json>): JsonObject {
  return new Map(Object.entries(members))
}

/** The same bytes where nothing was changed, or where there is no object to change. */
function changed(bytes: Buffer, change: (object: JsonObject) => boolean): Buffer {
  const object = parseJson(bytes)
  return isObject(object) && change(object) ? Buffer.from(printJson(object)) : bytes
}
