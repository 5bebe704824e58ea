/**
 * Resources that Kubernetes, or the definition of a custom one, still serves and asks its clients to leave: each answer
 * about them carries a warning.
 */

import type { ApiRequest } from '../../kube/request.ts'
import { warningHeader } from '../answer/respond.ts'
import type { Response } from '../endpoint.ts'

/** Both are of the core group; every other deprecated built-in is of an API that is not served. */
const warnings = new Map([
  ['componentstatuses', 'v1 ComponentStatus is deprecated in v1.19+'],
  ['endpoints', 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice'],
])

export interface Deprecating {
  find(group: string, version: string, plural: string): { readonly deprecation?: string | undefined } | undefined
}

export function warnOfDeprecation(api: ApiRequest | undefined, response: Response, catalog: Deprecating): void {
  // A caller that is not let in learns nothing about the resource.
  if (api === undefined || !api.isResource || response.status === 401) return
  const { group, version, resource } = api
  const warning = group === '' ? warnings.get(resource) : catalog.find(group, version, resource)?.deprecation
  if (warning === undefined) return
  const others = response.headers.warning ?? []
  response.headers.warning = [warningHeader(warning), ...(typeof others === 'string' ? [others] : others)]
}
