/**
 * A client's headers as it sent them, for passing them on. Node joins the values of a header that comes more than
 * once, or keeps the first: two groups to be impersonated would go up as one with another name.
 */
import type { Headers } from '../../upstream/upstream.ts'
import type { Request } from '../endpoint.ts'

/** By lower-case name; what came more than once has all its values, in their order. */
export function sentHeaders({ headers, rawHeaders = [] }: Pick<Request, 'headers' | 'rawHeaders'>): Headers {
  // Mostly nothing repeats: then there are as many names as lines.
  if (rawHeaders.length <= 2 * Object.keys(headers).length) return headers
  const values = new Map<string, string[]>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const value = rawHeaders[at + 1] as string
    const before = values.get(name)
    if (before === undefined) values.set(name, [value])
    else before.push(value)
  }
  // What was taken out or put in on the way stays so.
  const repeated = [...values].filter(([name, all]) => all.length > 1 && headers[name] !== undefined)
  return { ...headers, ...Object.fromEntries(repeated) }
}
