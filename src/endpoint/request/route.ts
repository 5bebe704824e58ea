/** The way of a request: who asks, what for, which resource, which verb; and the one catch around it. */
import type { Cache } from '../../cache/cache.ts'
import type { Caller } from '../../kube/caller.ts'
import { type ApiRequest, parseRequest } from '../../kube/request.ts'
import type { Resource, Subresource, Verb } from '../../kube/resource.ts'
import { badRequest, methodNotAllowed, notFound, pathNotFound, unauthorized } from '../../kube/status.ts'
import { checkTimeout } from '../../kube/timeout.ts'
import { pageNotFound, refusal } from '../answer/respond.ts'
import type { EndpointParts, NonResourcePaths, Request, Response, Served } from '../endpoint.ts'
import { isConnection, notConnected } from './connect.ts'
import { warnOfDeprecation } from './deprecated.ts'
import { getObject } from './get.ts'
import { listObjects } from './list.ts'
import { getScale } from './scale.ts'
import { watchObjects } from './watch.ts'
import { writeObject } from './write.ts'

/** Answered to everybody, as kube-apiserver's system:public-info-viewer allows. */
const openPaths = ['/healthz', '/livez', '/readyz', '/version']

export class Endpoint {
  readonly #parts: EndpointParts
  readonly #documents: readonly NonResourcePaths[]

  constructor(parts: EndpointParts & { documents: readonly NonResourcePaths[] }) {
    this.#parts = parts
    this.#documents = parts.documents
  }

  async handle(request: Request): Promise<Response> {
    let api: ApiRequest | undefined
    const startedMs = performance.now()
    let response: Response
    try {
      api = parseRequest(request.method, request.url)
      checkTimeout(api)
      authenticate(api, request.caller)
      response = await this.#answer(api, request)
    } catch (error) {
      response = refusal(error, request, this.#parts.log)
    }
    warnOfDeprecation(api, response, this.#parts.registry)
    this.#parts.measures.answered(api, response.status, performance.now() - startedMs)
    return response
  }

  #answer(api: ApiRequest, request: Request): Promise<Response> | Response {
    if (!api.isResource) return this.#document(api, request)
    const { resource, subresource } = api
    const served = this.#parts.registry.find(api.group, api.version, resource)
    if (served === undefined || !isInScope(served.resource, api)) return this.#unknown(api.group)
    const allowed = subresource === '' ? served.resource : subresourceOf(served.resource, api)
    if (api.name !== '' && subresource === '' && !hasNames(served.resource)) throw pathNotFound()
    if (!allowed.verbs.includes(api.verb as Verb) || !isAddressed(api)) throw methodNotAllowed()
    if (api.badSegment !== '') throw badRequest(api.badSegment)
    if (isConnection(subresource)) {
      const { interest } = served.resource
      throw notConnected(served.resource, api, (key) => this.#parts.copy.cache(interest).get(key) !== undefined)
    }
    switch (api.verb) {
      case 'get':
        return subresource === 'scale'
          ? getScale(this.#parts, served, api, request)
          : getObject(this.#parts, served, this.#cacheOf(served), api, request)
      case 'list':
        return listObjects(this.#parts, served, this.#cacheOf(served), api, request)
      case 'watch':
        return watchObjects(this.#parts, served, this.#cacheOf(served), api, request)
      default:
        return writeObject(this.#parts, served, api, request)
    }
  }

  #cacheOf({ resource }: Served): Cache {
    return this.#parts.copy.cache(resource.interest)
  }

  #document(api: ApiRequest, request: Request): Promise<Response> | Response {
    for (const documents of this.#documents) {
      const answer = documents.answer(api, request)
      if (answer !== undefined) return answer
    }
    const [, root, group] = api.path.split('/')
    return root === 'api' ? this.#unknown('') : root === 'apis' ? this.#unknown(group ?? '') : pageNotFound()
  }

  /** Below a built-in group the API itself does not know the path; elsewhere there is nobody to say so. */
  #unknown(group: string): Response {
    if (!this.#parts.registry.isBuiltinGroup(group)) return pageNotFound()
    throw pathNotFound()
  }
}

function authenticate(api: ApiRequest, caller: Caller | undefined): void {
  if (caller !== undefined) return
  const { path } = api
  if (openPaths.some((open) => path === open || (open !== '/version' && path.startsWith(`${open}/`)))) return
  throw unauthorized()
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
