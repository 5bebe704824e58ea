/** Which paths and methods a resource has: everything else about it is refused in kube-apiserver's words. Pure. */
import type { ApiRequest } from './request.ts'
import type { Resource, Subresource, Verb } from './resource.ts'
import { badRequest, methodNotAllowed, notFound, pathNotFound } from './status.ts'

/** Lead through the server into a node, a pod or a service; `log` too: what it answers is not the pod that discovery tells of. */
const connections: ReadonlySet<string> = new Set(['attach', 'exec', 'log', 'portforward', 'proxy'])

export function isConnection(subresource: string): boolean {
  return connections.has(subresource)
}

/** Refuses what the resource does not serve; false where the path is of no resource at all. */
export function isServed(resource: Resource, api: ApiRequest): boolean {
  if (!isInScope(resource, api)) return false
  const { subresource } = api
  const allowed = subresource === '' ? resource : subresourceOf(resource, api)
  if (api.name !== '' && subresource === '' && !hasNames(resource)) throw pathNotFound()
  if (!allowed.verbs.includes(api.verb as Verb) || !isAddressed(api)) throw methodNotAllowed()
  if (api.badSegment !== '') throw badRequest(api.badSegment)
  return true
}

function subresourceOf(resource: Resource, api: ApiRequest): Subresource {
  const found = resource.subresources.find((one) => one.name === api.subresource)
  if (found === undefined && resource.custom && api.parts.length === 3) throw notFound(resource, api.name)
  if (found === undefined || api.parts.length > 3) throw pathNotFound()
  return found
}

/** A namespaced resource is addressed inside its namespace, except by list and watch across all of them. */
function isInScope(resource: Resource, api: ApiRequest): boolean {
  const inNamespace = api.namespace !== '' && !(resource.group === '' && resource.resource === 'namespaces')
  if (resource.namespaced === inNamespace) return true
  if (!resource.namespaced || api.name !== '') return false
  if (api.verb === 'deletecollection') throw methodNotAllowed()
  return true
}

/** Reviews and bindings are only ever created: nothing lies below their collection. */
function hasNames({ verbs }: Resource): boolean {
  return verbs.includes('get') || verbs.includes('update') || verbs.includes('patch') || verbs.includes('delete')
}

/** Collections are created in, single objects are replaced and patched; nothing answers to HEAD. */
function isAddressed({ method, verb, name, subresource }: ApiRequest): boolean {
  if (method === 'HEAD') return false
  if (verb === 'create') return name === '' || subresource !== ''
  return name !== '' || (verb !== 'update' && verb !== 'patch')
}
