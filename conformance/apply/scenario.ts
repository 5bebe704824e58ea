/**
 * A scenario of server-side apply: requests in order on an object of its own, the same to both servers. In paths and
 * bodies `<n>` is the object's name, `<ns>` the namespace, `<rv>` and `<uid>` are of that server's own last answer.
 */

export type Fields = { readonly [field: string]: unknown }

export type Kind = { readonly apiVersion: string; readonly kind: string }

export type Step = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** A string goes as it is, anything else as JSON. */
  readonly body?: unknown
  /** Instead of a body: that server's own last object with this merged into it, as a client does that reads and writes. */
  readonly edit?: Fields
  /** Its answers are not compared: something else than the scenario's own object is changed. */
  readonly quiet?: boolean
}

export type Scenario = { readonly name: string; readonly steps: readonly Step[] }

export const scenario = (name: string, ...steps: readonly Step[]): Scenario => ({ name, steps })

/** Where objects of a kind are, if they are not in a namespace or their plural is not one more `s`. */
const collections: Readonly<Record<string, string>> = {
  HorizontalPodAutoscaler: '<ns>/horizontalpodautoscalers',
  NetworkPolicy: '<ns>/networkpolicies',
  Ingress: '<ns>/ingresses',
  StorageClass: 'storageclasses',
  Namespace: 'namespaces',
  Node: 'nodes',
  PersistentVolume: 'persistentvolumes',
  CustomResourceDefinition: 'customresourcedefinitions',
}

function collectionOf({ apiVersion, kind }: Kind): string {
  const collection = collections[kind] ?? `<ns>/${kind.toLowerCase()}s`
  const root = apiVersion.includes('/') ? '/apis' : '/api'
  return `${root}/${apiVersion}/${collection.startsWith('<ns>') ? 'namespaces/' : ''}${collection}`
}

export type More = {
  /** `status` or `scale`. */
  readonly sub?: string
  /** Further parameters, such as `dryRun=All`. */
  readonly query?: string
  /** Another object's than the scenario's own. */
  readonly name?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The kind that the path is of, if it is not the body's. */
  readonly at?: Kind
}

/** A manager of '' sends no fieldManager: the server takes the User-Agent's. */
function pathOf(kind: Kind, manager: string, { sub, query, name = '<n>' }: More, onCollection = false): string {
  const parameters = [manager === '' ? '' : `fieldManager=${manager}`, query ?? '']
    .filter((one) => one !== '')
    .join('&')
  const place = `${collectionOf(kind)}${onCollection ? '' : `/${name}`}${sub === undefined ? '' : `/${sub}`}`
  return parameters === '' ? place : `${place}?${parameters}`
}

const media = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

const jsonType = 'application/json'
const typed = (type: string, more: More) => ({ 'user-agent': 'conformance/1', ...more.headers, 'content-type': type })

export const apply = (manager: string, body: Fields & Kind, more: More = {}): Step => ({
  method: 'PATCH',
  path: pathOf(more.at ?? body, manager, more),
  headers: typed(media.apply, more),
  body,
})

export const force = (manager: string, body: Fields & Kind, more: More = {}): Step =>
  apply(manager, body, { ...more, query: `force=true${more.query === undefined ? '' : `&${more.query}`}` })

/** An apply whose body is text: YAML, or no object at all. */
export const applyText = (manager: string, kind: Kind, body: string, more: More = {}): Step => ({
  method: 'PATCH',
  path: pathOf(kind, manager, more),
  headers: typed(media.apply, more),
  body,
})

export const create = (manager: string, body: Fields & Kind, more: More = {}): Step => ({
  method: 'POST',
  path: pathOf(more.at ?? body, manager, more, true),
  headers: typed(jsonType, more),
  body,
})

export const update = (manager: string, body: Fields & Kind, more: More = {}): Step => ({
  method: 'PUT',
  path: pathOf(more.at ?? body, manager, more),
  headers: typed(jsonType, more),
  body,
})

export const edit = (manager: string, kind: Kind, changes: Fields, more: More = {}): Step => ({
  method: 'PUT',
  path: pathOf(kind, manager, more),
  headers: typed(jsonType, more),
  edit: changes,
})

const patched =
  (form: 'json' | 'merge' | 'strategic') =>
  (manager: string, kind: Kind, body: unknown, more: More = {}): Step => ({
    method: 'PATCH',
    path: pathOf(kind, manager, more),
    headers: typed(media[form], more),
    body,
  })

export const merge = patched('merge')
export const json = patched('json')
export const strategic = patched('strategic')

export const read = (kind: Kind, more: More = {}): Step => ({
  method: 'GET',
  path: pathOf(kind, '', more),
  headers: { ...more.headers },
})

export const remove = (kind: Kind, more: More & { readonly body?: Fields } = {}): Step => ({
  method: 'DELETE',
  path: pathOf(kind, '', more),
  headers: typed(jsonType, more),
  ...(more.body === undefined ? {} : { body: more.body }),
})

/** For people: what a failing scenario is told by. */
export function describeStep({ method, path, headers, body, edit: changes }: Step): string {
  const type = headers['content-type']
  const form = method === 'PATCH' ? ` ${Object.entries(media).find(([, one]) => one === type)?.[0] ?? type}` : ''
  const shown = changes === undefined ? body : { 'the last object with': changes }
  return `${method}${form} ${path}${shown === undefined ? '' : ` ${typeof shown === 'string' ? shown : JSON.stringify(shown)}`}`
}
