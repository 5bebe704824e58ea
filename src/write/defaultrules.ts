/** The defaults of built-in kinds that depend on more than one field. */

import { cloneJson, field, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'

/** Every member of `from` that the object `struct[name]` does not have. */
export function copyAbsent(struct: JsonObject, name: string, from: Json | undefined): void {
  if (!isObject(from) || from.size === 0) return
  const held = struct.get(name)
  const target: JsonObject = isObject(held) ? held : new Map()
  for (const [key, value] of from) if (!target.has(key)) target.set(key, cloneJson(value))
  struct.set(name, target)
}

const part = '[a-z0-9]+(?:[._-]+[a-z0-9]+)*'
const host = '[A-Za-z0-9.-]+(?::[0-9]+)?'
const imageName = new RegExp(`^(?:${host}/)?${part}(?:/${part})*(?::([\\w][\\w.-]*))?(@[\\w+.-]+:[0-9a-fA-F]+)?$`)

/** An image is pulled always if it is the latest, by name or because neither a tag nor a digest is named. */
export function pullPolicy(struct: JsonObject, name: string, image: string): void {
  if (text(struct, name) !== '') return
  const [found, tag, digest] = imageName.exec(image) ?? []
  const latest = found !== undefined && (tag === 'latest' || (tag === undefined && digest === undefined))
  struct.set(name, latest ? 'Always' : 'IfNotPresent')
}

/** In the host's network a container's port is the host's. */
export function defaultPorts(ports: readonly Json[]): void {
  for (const port of ports) {
    if (isObject(port) && (port.get('hostPort') ?? 0) === 0) port.set('hostPort', port.get('containerPort') ?? 0)
  }
}

const affinitySeconds = 10_800

export function defaultService(service: JsonObject): void {
  const spec = service.get('spec')
  if (!isObject(spec)) return
  const absent = (name: string, value: Json) => text(spec, name) === '' && spec.set(name, value)
  absent('sessionAffinity', 'None')
  absent('type', 'ClusterIP')
  const affinity = text(spec, 'sessionAffinity')
  const type = text(spec, 'type')
  if (affinity === 'None') spec.delete('sessionAffinityConfig')
  if (affinity === 'ClientIP' && field(spec, 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds') === undefined) {
    spec.set('sessionAffinityConfig', new Map([['clientIP', new Map([['timeoutSeconds', affinitySeconds]])]]))
  }
  const outside = type === 'NodePort' || type === 'LoadBalancer' || (type === 'ClusterIP' && spec.has('externalIPs'))
  if (outside) absent('externalTrafficPolicy', 'Cluster')
  if (type !== 'ExternalName' && !spec.has('internalTrafficPolicy')) spec.set('internalTrafficPolicy', 'Cluster')
  for (const port of items(spec, 'ports')) {
    const target = port.get('targetPort')
    if (target === undefined || target === 0 || target === '') port.set('targetPort', port.get('port') ?? 0)
  }
  if (type !== 'LoadBalancer') return
  if (!spec.has('allocateLoadBalancerNodePorts')) spec.set('allocateLoadBalancerNodePorts', true)
  for (const one of items(field(service, 'status', 'loadBalancer'), 'ingress')) {
    if (text(one, 'ip') !== '' && !one.has('ipMode')) one.set('ipMode', 'VIP')
  }
}

function items(struct: Json | undefined, name: string): readonly JsonObject[] {
  const found = field(struct, name)
  return Array.isArray(found) ? found.filter(isObject) : []
}
