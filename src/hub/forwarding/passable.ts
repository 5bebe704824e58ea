/**
 * What of an edge's request goes to the API server. An edge of ours writes it as HTTP does; one that is not could write anything, and
 * the hub's credential stands behind it: a header that is spelled in another way must not pass for one that the hub keeps out.
 */
import type { Headers } from '../../upstream/upstream.ts'

type Asked = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const pathForm = /^\/[\x21-\x7e]*$/
const nameForm = /^[a-z0-9!#$%&'*+.^_`|~-]+$/
/** A line break would begin another header. */
const valueForm = /^[\t\x20-\x7e\x80-\xff]*$/
const lengthForm = /^\d{1,15}$/

/** The headers by lower-case name, or a sentence that says why it is not passed on. */
export function passable({ method, path, headers }: Asked): { readonly headers: Headers } | string {
  if (!methods.has(method)) return 'the hub does not pass on requests with this method'
  if (!pathForm.test(path)) return 'the path of the request is none'
  const passed = new Map<string, string[]>()
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase()
    // It names others that go no further than one hop: those by which the hub says whose request it is would be among them.
    if (name === 'connection') continue
    if (!nameForm.test(name) || name === '__proto__') return 'a header of the request has a name that is none'
    const values = [value].flat()
    if (!values.every((one) => valueForm.test(one)))
      return `the header "${name}" of the request has a value that is none`
    passed.set(name, [...(passed.get(name) ?? []), ...values])
  }
  const framing = ['transfer-encoding', 'expect'].find((name) => passed.has(name))
  if (framing !== undefined) return `the header "${framing}" is not passed on: over a link the end of a body is told`
  const lengths = passed.get('content-length') ?? []
  if (lengths.length > 1 || !lengths.every((length) => lengthForm.test(length)))
    return 'the header "content-length" of the request is no single number'
  return {
    headers: Object.fromEntries([...passed].map(([name, values]) => [name, values.length === 1 ? values[0] : values])),
  }
}

const impersonating = /^impersonate-/

/** Without those that say whose request it is. */
export function unimpersonating(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !impersonating.test(name)))
}

export function impersonates(headers: Headers): boolean {
  return Object.keys(headers).some((name) => impersonating.test(name))
}

/**
 * As the node of the link's certificate, in the words of kube-apiserver; it adds what every authenticated caller has. `namesGroup`:
 * it does not add the group of nodes (`impersonation.ts`).
 */
export function asNode(headers: Headers, node: string, namesGroup: boolean): Headers {
  return {
    ...unimpersonating(headers),
    'impersonate-user': `system:node:${node}`,
    ...(namesGroup ? { 'impersonate-group': 'system:nodes' } : {}),
  }
}

/** By which edges verify tokens of service accounts: no node has a right to ask for them, and they are no secret. */
const publicPaths: ReadonlySet<string> = new Set(['/openid/v1/jwks', '/.well-known/openid-configuration'])

/** Whether a node's request is passed on with the hub's own credential. */
export function isPublic({ method, path }: Pick<Asked, 'method' | 'path'>): boolean {
  return method === 'GET' && publicPaths.has(path)
}
