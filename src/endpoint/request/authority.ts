/** What an authority answers: its own documents, and one file per verb over its own copy. */
import type { Cache } from '../../cache/cache.ts'
import { isBuiltinGroup } from '../../kube/builtin.ts'
import type { ApiRequest } from '../../kube/request.ts'
import type { Resource, Subresource, Verb } from '../../kube/resource.ts'
import { badRequest, methodNotAllowed, notFound, pathNotFound } from '../../kube/status.ts'
import { pageNotFound } from '../answer/respond.ts'
import type { Call } from '../call.ts'
import type { Answering, EndpointParts } from '../composition.ts'
import type { NonResourcePaths, Response, Served } from '../endpoint.ts'
import { isConnection, notConnected } from './connect.ts'
import { getObject } from './get.ts'
import { listObjects } from './list.ts'
import { getScale } from './scale.ts'
import { watchObjects } from './watch.ts'
import { writeObject } from './write.ts'

export class AuthorityAnswers implements Answering {
  readonly #parts: EndpointParts
  readonly #documents: readonly NonResourcePaths[]

  constructor(parts: EndpointParts & { documents: readonly NonResourcePaths[] }) {
    this.#parts = parts
    this.#documents = parts.documents
  }

  answer(call: Call): Promise<Response> | Response {
    const { api } = call
    if (!api.isResource) return this.#document(call)
    const { resource, subresource } = api
    const served = this.#parts.catalog.find(api.group, api.version, resource)
    if (served === undefined || !isInScope(served.resource, api)) return unknown(api.group)
    const allowed = subresource === '' ? served.resource : subresourceOf(served.resource, api)
    if (api.name !== '' && subresource === '' && !hasNames(served.resource)) throw pathNotFound()
    if (!allowed.verbs.includes(api.verb as Verb) || !isAddressed(api)) throw methodNotAllowed()
    if (api.badSegment !== '') throw badRequest(api.badSegment)
    if (isConnection(subresource)) {
      throw notConnected(served.resource, api, (key) => this.#cacheOf(served).get(key) !== undefined)
    }
    switch (api.verb) {
      case 'get':
        return subresource === 'scale'
          ? getScale(this.#parts, served, call)
          : getObject(this.#parts, served, this.#cacheOf(served), call)
      case 'list':
        return listObjects(this.#parts, served, this.#cacheOf(served), call)
      case 'watch':
        return watchObjects(this.#parts, served, this.#cacheOf(served), call)
      default:
        return writeObject(this.#parts, served, call)
    }
  }

  #cacheOf({ resource }: Served): Cache {
    return this.#parts.copy.cache(resource.interest)
  }

  #document({ api, request }: Call): Promise<Response> | Response {
    for (const documents of this.#documents) {
      const answer = documents.answer(api, request)
      if (answer !== undefined) return answer
    }
    const [, root, group] = api.path.split('/')
    return root === 'api' ? unknown('') : root === 'apis' ? unknown(group ?? '') : pageNotFound()
  }
}

/** Below a built-in group the API itself does not know the path; elsewhere there is nothing to say so. */
function unknown(group: string): Response {
  if (!isBuiltinGroup(group)) return pageNotFound()
  throw pathNotFound()
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
