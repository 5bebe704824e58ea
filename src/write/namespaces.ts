/** Namespaces around writes: they must exist, the first ones cannot be deleted, and nothing new enters a leaving one. */

import { parseJson, text } from '../kube/json/json.ts'
import { isResource } from '../kube/resource.ts'
import { forbidden, notFound } from '../kube/status.ts'
import { type Engine, namespaces } from './engine.ts'
import { namespacePlace, resourcePlace } from './entering.ts'
import type { WriteRequest } from './write.ts'

/** The real server's own: their loss would take the cluster along. */
const immortal: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public'])

/** Runs a creation in its namespace, which stays there meanwhile; throws if it does not exist or is leaving. */
export async function entering<T>(
  engine: Engine,
  request: WriteRequest,
  name: string,
  create: () => Promise<T>,
): Promise<T> {
  requireNamespace(engine, request, name)
  const { resource, namespace } = request
  const places = [resourcePlace(resource)]
  if (resource.namespaced) places.push(namespacePlace(namespace))
  return engine.entering.during(places, create)
}

function requireNamespace(engine: Engine, request: WriteRequest, name: string): void {
  const { resource, namespace } = request
  if (!resource.namespaced) return
  const stored = engine.objectsOf(namespaces).get(namespace)
  if (stored === undefined) throw notFound(namespaces, namespace)
  const tree = parseJson(stored.bytes)
  if (text(tree, 'status', 'phase') !== 'Terminating') return
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  const error = forbidden(resource, name, why)
  const message = `namespace ${namespace} is being terminated`
  const cause = { reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }
  error.status.details = { ...error.status.details, causes: [cause] }
  throw error
}

export function refuseImmortal(request: WriteRequest, name: string): void {
  if (isResource(request.resource, namespaces) && immortal.has(name)) {
    throw forbidden(namespaces, name, 'this namespace may not be deleted')
  }
}
