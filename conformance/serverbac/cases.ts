/** Who is there and what each holds, made on both sides alike; and what they ask for. */
import type { Request } from './sides.ts'

export const rbac = '/apis/rbac.authorization.k8s.io/v1'
const group = 'rbac.authorization.k8s.io'
export const shop = '/api/v1/namespaces/shop'
const authorization = '/apis/authorization.k8s.io/v1'
export const authentication = '/apis/authentication.k8s.io/v1'

const post = (path: string, body: object): Request => ({ method: 'POST', path, body })
const named = (name: string, rest: object = {}) => ({ metadata: { name }, ...rest })
const role = (name: string, ...rules: object[]) => named(name, { rules })
const account = (name: string) => ({ kind: 'ServiceAccount', name, namespace: 'shop' })
const user = (name: string) => ({ kind: 'User', apiGroup: group, name })
const bound = (name: string, kind: string, to: string, ...subjects: object[]) =>
  named(name, { roleRef: { apiGroup: group, kind, name: to }, subjects })

const pods = (...verbs: string[]) => ({ verbs, apiGroups: [''], resources: ['pods'] })
const maps = (...verbs: string[]) => ({ verbs, apiGroups: [''], resources: ['configmaps'] })
const roles = (...verbs: string[]) => ({ verbs, apiGroups: [group], resources: ['roles', 'rolebindings'] })
const clusterRoles = (...verbs: string[]) => ({
  ...{ verbs, apiGroups: [group] },
  resources: ['clusterroles', 'clusterrolebindings'],
})

/** Service accounts in `shop`, each a caller by its token. */
export const accounts = ['reader', 'writer', 'granter', 'binder', 'escalator', 'nobody'] as const

/** In this order: what a binding names is there before it. */
export const setup: readonly Request[] = [
  post('/api/v1/namespaces', named('shop')),
  post('/api/v1/namespaces', named('other')),
  ...accounts.map((name) => post(`${shop}/serviceaccounts`, named(name))),
  post(`${shop}/configmaps`, named('prices', { data: { bread: '2' } })),
  post(`${shop}/secrets`, named('till', { type: 'Opaque' })),
  post('/api/v1/nodes', named('n1')),
  post(`${rbac}/namespaces/shop/roles`, role('reads', maps('get', 'list', 'watch'), pods('get', 'list'))),
  post(`${rbac}/namespaces/shop/roles`, role('one', { ...maps('get', 'update'), resourceNames: ['prices'] })),
  post(`${rbac}/clusterroles`, role('grants', roles('get', 'create', 'update', 'patch'), pods('get', 'list'))),
  post(`${rbac}/clusterroles`, role('grants-all', clusterRoles('get', 'create', 'update', 'patch'), pods('get'))),
  post(
    `${rbac}/clusterroles`,
    role('binds', roles('get', 'create', 'bind'), { ...clusterRoles('bind'), resourceNames: ['edit'] }),
  ),
  post(`${rbac}/clusterroles`, role('escalates', roles('get', 'create', 'update', 'escalate'))),
  post(
    `${rbac}/clusterroles`,
    role('speaks', { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['ann'] }),
  ),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('reads', 'Role', 'reads', account('reader'))),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('one', 'Role', 'one', account('reader'))),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('edits', 'ClusterRole', 'edit', account('writer'))),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('grants', 'ClusterRole', 'grants', account('granter'))),
  post(`${rbac}/clusterrolebindings`, bound('grants-all', 'ClusterRole', 'grants-all', account('granter'))),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('binds', 'ClusterRole', 'binds', account('binder'))),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('escalates', 'ClusterRole', 'escalates', account('escalator'))),
  post(`${rbac}/clusterrolebindings`, bound('speaks', 'ClusterRole', 'speaks', account('reader'))),
  post(`${rbac}/namespaces/shop/rolebindings`, bound('lost', 'Role', 'gone', user('lost'))),
]

/** What, whether it is compared whole, and who asks for it. */
export type Asking = { readonly what: string; readonly who: readonly string[]; readonly request: Request }

const callers = ['admin', 'anonymous', 'nonsense', ...accounts]
const statusOnly = () => undefined
const get = (path: string, of?: Request['of']): Request => (of === undefined ? { path } : { path, of })

const paths = [
  '/healthz',
  '/livez',
  '/readyz',
  '/version',
  '/',
  '/api',
  '/apis',
  '/metrics',
  '/logs',
  '/openid/v1/jwks',
]
/** Of which the API server has more by itself: an admission plugin, a ConfigMap of its own. */
const more = ['/api/v1/configmaps', '/api/v1/nodes/n1']
const reads = [
  `${shop}/configmaps`,
  `${shop}/configmaps/prices`,
  `${shop}/configmaps/none`,
  `${shop}/secrets/till`,
  '/api/v1/namespaces/other/configmaps',
  `${shop}/pods/x/log`,
  `${rbac}/namespaces/shop/roles/reads`,
  `${rbac}/clusterrolebindings/grants-all`,
  '/apis/apps/v1/namespaces/shop/deployments',
  '/apis/nothing.example.com/v1/things',
]

export const readings: readonly Asking[] = [
  ...[...paths, ...more].map((path) => ({ what: `GET ${path}`, who: callers, request: get(path, statusOnly) })),
  ...reads.map((path) => ({ what: `GET ${path}`, who: callers, request: get(path) })),
]

const roleIn = (name: string, ...rules: object[]) => post(`${rbac}/namespaces/shop/roles`, role(name, ...rules))
const bindingIn = (name: string, kind: string, to: string) =>
  post(`${rbac}/namespaces/shop/rolebindings`, bound(name, kind, to, user('ann')))
const patch = (path: string, type: string, body: object): Request => {
  return { method: 'PATCH', path, body, headers: { 'content-type': `application/${type}` } }
}
const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] }
const typed = (kind: string, object: object) => ({ apiVersion: `${group}/v1`, kind, ...object })

const granting: readonly (readonly [string, Request])[] = [
  ['a role of what is held', roleIn('held', pods('get'))],
  ['a role of more', roleIn('more', pods('get', 'delete', 'watch'), maps('get'))],
  [
    'a role of names',
    roleIn('names', { ...pods('get'), resourceNames: ['a', 'b'] }, { ...maps('get'), resourceNames: ['a'] }),
  ],
  [
    'a role of paths',
    post(`${rbac}/clusterroles`, role('paths', { verbs: ['get', 'post'], nonResourceURLs: ['/x', '/y/*'] })),
  ],
  [
    'a role of everything',
    post(`${rbac}/clusterroles`, role('all', { verbs: ['*'], apiGroups: ['*'], resources: ['*'] })),
  ],
  ['a role that gathers', post(`${rbac}/clusterroles`, named('gathers', { aggregationRule }))],
  ['a cluster role of what is held in a namespace', post(`${rbac}/clusterroles`, role('lists', pods('list')))],
  [
    'a role without a name',
    post(`${rbac}/namespaces/shop/roles`, { metadata: { generateName: 'x-' }, rules: [maps('delete')] }),
  ],
  [
    'a change to more',
    { method: 'PUT', path: `${rbac}/namespaces/shop/roles/reads`, body: role('reads', maps('delete')) },
  ],
  [
    'a role made by a change',
    { method: 'PUT', path: `${rbac}/namespaces/shop/roles/made`, body: role('made', maps('delete')) },
  ],
  ['a label', patch(`${rbac}/namespaces/shop/roles/one`, 'merge-patch+json', { metadata: { labels: { a: 'b' } } })],
  [
    'an apply',
    patch(
      `${rbac}/namespaces/shop/roles/applied?fieldManager=x`,
      'apply-patch+yaml',
      typed('Role', role('applied', maps('delete'))),
    ),
  ],
  ['a binding of what is held', bindingIn('b-held', 'Role', 'held')],
  ['a binding of more', bindingIn('b-reads', 'Role', 'reads')],
  ['a binding of edit', bindingIn('b-edit', 'ClusterRole', 'edit')],
  ['a binding of nothing', bindingIn('b-none', 'Role', 'none')],
  ['a binding of no cluster role', bindingIn('b-cnone', 'ClusterRole', 'none')],
  ['a binding everywhere', post(`${rbac}/clusterrolebindings`, bound('b-view', 'ClusterRole', 'view', user('ann')))],
]

export const writings: readonly Asking[] = [
  { what: 'a ConfigMap', who: accounts, request: post(`${shop}/configmaps`, named('new')) },
  {
    what: 'a change of one ConfigMap',
    who: ['reader', 'writer'],
    request: patch(`${shop}/configmaps/prices`, 'merge-patch+json', { data: { bread: '3' } }),
  },
  {
    what: 'a deletion of many',
    who: ['reader', 'anonymous'],
    request: { method: 'DELETE', path: `${shop}/configmaps` },
  },
  ...granting.map(([what, request]) => ({ what, who: ['granter', 'binder', 'escalator', 'nobody', 'lost'], request })),
]

const attributes = (verb: string, resource: string, more: object = {}) => ({
  verb,
  resource,
  namespace: 'shop',
  ...more,
})
const self = (resourceAttributes: object): Request =>
  post(`${authorization}/selfsubjectaccessreviews`, { spec: { resourceAttributes } })
const ofOther = (spec: object): Request => post(`${authorization}/subjectaccessreviews`, { spec })

/** Bindings have any order to kube-apiserver; its other authorizer says that it cannot tell. */
function rulesIn(body: unknown): unknown {
  const { resourceRules, nonResourceRules } = (body as { status: Record<string, object[]> }).status
  return [resourceRules, nonResourceRules].map((rules = []) => rules.map((one) => JSON.stringify(one)).sort())
}

export const reviewings: readonly Asking[] = [
  { what: 'may I read', who: callers, request: self(attributes('get', 'configmaps')) },
  { what: 'may I write', who: callers, request: self(attributes('update', 'configmaps', { name: 'prices' })) },
  {
    what: 'may another',
    who: ['admin', 'reader', 'anonymous'],
    request: ofOther({ user: 'lost', resourceAttributes: attributes('get', 'pods') }),
  },
  {
    what: 'may an account',
    who: ['admin'],
    request: ofOther({
      user: 'system:serviceaccount:shop:reader',
      groups: ['system:serviceaccounts'],
      resourceAttributes: attributes('get', 'pods'),
    }),
  },
  {
    what: 'may all',
    who: ['admin'],
    request: ofOther({
      user: 'x',
      groups: ['system:authenticated'],
      nonResourceAttributes: { path: '/api', verb: 'get' },
    }),
  },
  {
    what: 'may another here',
    who: ['admin', 'writer'],
    request: post(`${authorization}/namespaces/shop/localsubjectaccessreviews`, {
      spec: { user: 'lost', resourceAttributes: attributes('get', 'pods') },
    }),
  },
  {
    what: 'what may I',
    who: ['reader', 'writer', 'granter', 'nobody', 'lost'],
    request: { ...post(`${authorization}/selfsubjectrulesreviews`, { spec: { namespace: 'shop' } }), of: rulesIn },
  },
  // A certificate's digest is part of who the administrator is.
  {
    what: 'who am I',
    who: [...accounts, 'anonymous', 'lost'],
    request: { ...post(`${authentication}/selfsubjectreviews`, {}) },
  },
]

const speaking = (headers: Record<string, string>): Request => ({ path: `${shop}/configmaps`, headers })

export const impersonations: readonly Asking[] = [
  { what: 'as ann', who: ['admin', 'reader', 'nobody', 'anonymous'], request: speaking({ 'impersonate-user': 'ann' }) },
  { what: 'as bob', who: ['reader'], request: speaking({ 'impersonate-user': 'bob' }) },
  {
    what: 'as ann of a group',
    who: ['admin', 'reader'],
    request: speaking({ 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' }),
  },
  {
    what: 'as an account',
    who: ['admin', 'reader'],
    request: speaking({ 'impersonate-user': 'system:serviceaccount:shop:reader' }),
  },
  {
    what: 'as ann with a uid',
    who: ['admin', 'reader'],
    request: speaking({ 'impersonate-user': 'ann', 'impersonate-uid': '7' }),
  },
  { what: 'as anonymous', who: ['admin'], request: speaking({ 'impersonate-user': 'system:anonymous' }) },
  { what: 'as a group alone', who: ['admin'], request: speaking({ 'impersonate-group': 'devs' }) },
  {
    what: 'who I am as another',
    who: ['admin'],
    request: {
      ...post(`${authentication}/selfsubjectreviews`, {}),
      headers: { 'impersonate-user': 'ann', 'impersonate-group': 'devs', 'impersonate-extra-scopes': 'a' },
    },
  },
]
