/** What an authority answers: its own documents, and one file per verb over its own copy. */
import type { Cache } from '../../cache/cache.ts'
import { isConnection, isServed } from '../../kube/addressing.ts'
import { isBuiltinGroup } from '../../kube/builtin.ts'
import { pathNotFound } from '../../kube/status.ts'
import { pageNotFound } from '../answer/respond.ts'
import type { Call } from '../call.ts'
import type { Answering, EndpointParts } from '../composition.ts'
import type { NonResourcePaths, Response, Served } from '../endpoint.ts'
import { notConnected } from './connect.ts'
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
    if (served === undefined || !isServed(served.resource, api)) return unknown(api.group)
    if (isConnection(subresource)) {
      throw notConnected(served.resource, api, (key) => this.#cacheOf(served).get(key) !== undefined)
    }
    switch (api.verb) {
      case 'get':
        return subresource === 'scale'
          ? this.#scale(served, call)
          : getObject(this.#parts, served, this.#cacheOf(served), call)
      case 'list':
        return listObjects(this.#parts, served, this.#cacheOf(served), call)
      case 'watch':
        return watchObjects(this.#parts, served, this.#cacheOf(served), call)
      default:
        return writeObject(this.#parts, served, call)
    }
  }

  #scale(served: Served, call: Call): Promise<Response> {
    const item = this.#cacheOf(served).get(call.keyOf(served.resource))
    return getScale(this.#parts, served, { item, scale: served.definition?.scale }, call)
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
