/** Rows of services and what leads to them: endpoints, ingresses, policies, addresses. */

import {
  age,
  count,
  field,
  formatLabels,
  formatSelector,
  list,
  nameOf,
  type Printers,
  record,
  shortened,
  text,
  textOr,
  texts,
  type View,
} from './read.ts'

/** More addresses, ports or hosts than this are only counted. */
const SHOWN = 3

export const networkPrinters: Printers = {
  services: (service, nowMs) => [
    nameOf(service),
    text(service, 'spec', 'type'),
    texts(service, 'spec', 'clusterIPs')[0] ?? textOr('<none>', service, 'spec', 'clusterIP'),
    externalAddress(service),
    list(service, 'spec', 'ports').map(servicePort).join(',') || '<none>',
    age(service, nowMs),
    formatLabels(record(service, 'spec', 'selector')),
  ],
  endpoints: (object, nowMs) => [nameOf(object), endpointsText(object), age(object, nowMs)],
  'endpointslices.discovery.k8s.io': (slice, nowMs) => [
    nameOf(slice),
    text(slice, 'addressType'),
    shortened(list(slice, 'ports').map(slicePort), SHOWN) || '<unset>',
    shortened(
      list(slice, 'endpoints').flatMap((endpoint) => texts(endpoint, 'addresses')),
      SHOWN,
    ) || '<unset>',
    age(slice, nowMs),
  ],
  'ingresses.networking.k8s.io': (ingress, nowMs) => [
    nameOf(ingress),
    textOr('<none>', ingress, 'spec', 'ingressClassName'),
    ingressHosts(ingress),
    balancerAddresses(ingress).join(','),
    list(ingress, 'spec', 'tls').length > 0 ? '80, 443' : '80',
    age(ingress, nowMs),
  ],
  'ingressclasses.networking.k8s.io': (object, nowMs) => {
    const annotation = record(object, 'metadata', 'annotations')['ingressclass.kubernetes.io/is-default-class']
    return [
      nameOf(object) + (annotation === 'true' ? ' (default)' : ''),
      text(object, 'spec', 'controller'),
      classParameters(field(object, 'spec', 'parameters')),
      age(object, nowMs),
    ]
  },
  'networkpolicies.networking.k8s.io': (object, nowMs) => [
    nameOf(object),
    formatSelector(field(object, 'spec', 'podSelector')),
    age(object, nowMs),
  ],
  'servicecidrs.networking.k8s.io': (object, nowMs) => [
    nameOf(object),
    texts(object, 'spec', 'cidrs').join(','),
    age(object, nowMs),
  ],
  'ipaddresses.networking.k8s.io': (object, nowMs) => [
    nameOf(object),
    parentOf(field(object, 'spec', 'parentRef')),
    age(object, nowMs),
  ],
}

function servicePort(port: unknown): string {
  const node = count(port, 'nodePort')
  return `${count(port, 'port')}${node > 0 ? `:${node}` : ''}/${text(port, 'protocol')}`
}

function externalAddress(service: View): string {
  const own = texts(service, 'spec', 'externalIPs')
  switch (text(service, 'spec', 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return own.join(',') || '<none>'
    case 'LoadBalancer':
      return [...balancerAddresses(service), ...own].join(',') || '<pending>'
    case 'ExternalName':
      return text(service, 'spec', 'externalName')
    default:
      return '<unknown>'
  }
}

/** What the load balancer reported, each once, sorted. */
function balancerAddresses(object: View): readonly string[] {
  const entries = list(object, 'status', 'loadBalancer', 'ingress')
  const addresses = entries.map((entry) => text(entry, 'ip') || text(entry, 'hostname'))
  return [...new Set(addresses)].filter((address) => address !== '').sort()
}

function endpointsText(object: View): string {
  const subsets = list(object, 'subsets')
  if (subsets.length === 0) return '<none>'
  const all = subsets.flatMap((subset) => {
    const addresses = list(subset, 'addresses').map((address) => text(address, 'ip'))
    const ports = list(subset, 'ports')
    // A headless service may have no ports at all.
    return ports.length === 0 ? addresses : ports.flatMap((port) => addresses.map((ip) => joinPort(ip, port)))
  })
  return shortened(all, SHOWN)
}

function joinPort(ip: string, port: unknown): string {
  return `${ip.includes(':') ? `[${ip}]` : ip}:${count(port, 'port')}`
}

function slicePort(port: unknown): string {
  if (field(port, 'port') !== undefined) return text(port, 'port')
  return textOr('*', port, 'name')
}

function ingressHosts(ingress: View): string {
  const rules = list(ingress, 'spec', 'rules')
  const hosts = rules.map((rule) => text(rule, 'host'))
  const shown: string[] = []
  let more = false
  for (const host of hosts) {
    if (shown.length === SHOWN) more = true
    else if (host !== '') shown.push(host)
  }
  if (shown.length === 0) return '*'
  // Rules without a host count among the hidden ones, as they do in the real table.
  return more ? `${shown.join(',')} + ${rules.length - SHOWN} more...` : shown.join(',')
}

function classParameters(parameters: unknown): string {
  if (parameters === undefined) return '<none>'
  const group = field(parameters, 'apiGroup') === undefined ? '' : `.${text(parameters, 'apiGroup')}`
  return `${text(parameters, 'kind')}${group}/${text(parameters, 'name')}`
}

function parentOf(parent: unknown): string {
  if (parent === undefined) return '<none>'
  const group = text(parent, 'group')
  const resource = text(parent, 'resource') + (group === '' ? '' : `.${group}`)
  const namespace = text(parent, 'namespace')
  return `${resource.toLowerCase()}${namespace === '' ? '' : `/${namespace}`}/${text(parent, 'name')}`
}
