/** Subresources that lead through the server into a node, a pod or a service: this server stands before none of them. */

import type { ApiRequest } from '../../kube/request.ts'
import { objectKey, type Resource } from '../../kube/resource.ts'
import { failure, notFound, type StatusError } from '../../kube/status.ts'

/** The refusal of such a request; that there is nothing to connect to is the better answer where it is true. */
export function notConnected(resource: Resource, api: ApiRequest, has: (key: string) => boolean): StatusError {
  if (!has(objectKey(resource.namespaced ? api.namespace : '', api.name))) return notFound(resource, api.name)
  const what = `${resource.resource}/${api.subresource}`
  return failure(501, 'NotImplemented', `${what}: this server does not connect to nodes, pods or services`)
}
