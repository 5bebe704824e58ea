/** The `timeout` of a request: kube-apiserver refuses one it cannot read, whatever else is asked. */

import { parseGoDuration } from './json/gotext.ts'
import type { ApiRequest } from './request.ts'
import { badRequest } from './status.ts'

/** Requests that last as long as their client likes; their timeout is not looked at. */
const lasting: ReadonlySet<string> = new Set(['attach', 'exec', 'log', 'portforward', 'proxy'])

/** Throws 400. That a readable one is not kept here harms no client: nothing takes long. */
export function checkTimeout({ query, verb, subresource }: ApiRequest): void {
  const timeout = query.get('timeout') ?? ''
  if (timeout === '' || verb === 'watch' || lasting.has(subresource)) return
  const parsed = parseGoDuration(timeout)
  if ('fault' in parsed) throw badRequest(`invalid timeout specified in the request URL - ${parsed.fault}`)
}
