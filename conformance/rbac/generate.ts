/** Roles, bindings and questions by chance: names that collide, wildcards in every place, subjects of every kind. */

import type { RbacResource } from '../../src/access/rbac/rbac.ts'
import type { AccessWish } from '../../src/access/rbac/rules.ts'
import type { Caller } from '../../src/kube/caller.ts'
import type { Random } from '../apply/random.ts'
import { type BindingBody, type Held, type RoleBody, type RuleBody, rbacGroup, type SubjectBody } from './copy.ts'

export const namespaces = ['rbac-a', 'rbac-b', 'rbac-c']

const users = [
  'ann',
  'bob',
  'Ann',
  'o\'hara "x" <y>',
  'jürgen',
  'system:serviceaccount:rbac-a:robot',
  'system:anonymous',
]
const groups = ['devs', 'ops', 'a:b:c', 'system:authenticated', 'system:serviceaccounts', 'system:unauthenticated']
const accounts = ['robot', 'default', 'builder']
const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'impersonate', 'sing']
const apiGroups = ['', 'apps', 'batch', 'example.com']
const resources = ['pods', 'pods/log', 'deployments', 'deployments/scale', 'secrets', 'nodes', 'songs', 'scale']
const odd = ['*', '*/scale', '*/log', 'pods/*', '*/*', '*/']
const names = ['a', 'b', 'c']
const urls = ['/healthz', '/healthz/etcd', '/metrics', '/logs/x', '/api', '/version/']
const oddUrls = ['*', '/healthz/*', '/logs*', '/**', '/a*i', '/metrics/']
const labels = ['red', 'blue']

/** How many there may be of each: few names, so that what is made, changed and deleted meets itself again. */
const roomFor: Readonly<Record<RbacResource, number>> = {
  clusterroles: 30,
  clusterrolebindings: 25,
  roles: 12,
  rolebindings: 20,
}

export function pickKey(random: Random, resource: RbacResource): string {
  const name = `g${random.below(roomFor[resource])}`
  return resource.startsWith('cluster') ? name : `${random.pick(namespaces)}/${name}`
}

export function makeObject(random: Random, resource: RbacResource, key: string): RoleBody | BindingBody {
  const [first = '', second] = key.split('/')
  const metadata = second === undefined ? { name: first } : { namespace: first, name: second }
  const top = { apiVersion: `${rbacGroup}/v1`, metadata }
  if (resource === 'roles') return { ...top, kind: 'Role', rules: makeRules(random, false) }
  if (resource === 'clusterroles') return makeClusterRole(random, top)
  const isCluster = resource === 'clusterrolebindings'
  const role = isCluster || random.chance(0.5) ? 'clusterroles' : 'roles'
  // The administrator's roles are given away too, and some that are not there.
  const system = random.pick(['view', 'edit', 'system:discovery', 'system:kube-scheduler', 'gone'])
  const name = role === 'clusterroles' && random.chance(0.3) ? system : `g${random.below(roomFor[role] + 3)}`
  const kind = role === 'clusterroles' ? 'ClusterRole' : 'Role'
  return {
    ...top,
    kind: isCluster ? 'ClusterRoleBinding' : 'RoleBinding',
    roleRef: { apiGroup: rbacGroup, kind, name },
    subjects: makeSubjects(random, isCluster),
  }
}

function makeClusterRole(random: Random, top: Pick<RoleBody, 'apiVersion' | 'metadata'>): RoleBody {
  const metadata = random.chance(0.4) ? { ...top.metadata, labels: { color: random.pick(labels) } } : top.metadata
  if (!random.chance(0.1)) return { ...top, metadata, kind: 'ClusterRole', rules: makeRules(random, true) }
  const selector = random.chance(0.5)
    ? { matchLabels: { color: random.pick(labels) } }
    : { matchExpressions: [{ key: 'color', operator: random.pick(['Exists', 'In']), values: ['red'] }] }
  if (selector.matchExpressions?.[0]?.operator === 'Exists') selector.matchExpressions[0].values = []
  return { ...top, kind: 'ClusterRole', rules: [], aggregationRule: { clusterRoleSelectors: [selector] } }
}

function makeRules(random: Random, withUrls: boolean): RuleBody[] {
  if (random.chance(0.05)) return []
  return Array.from({ length: 1 + random.below(4) }, () => {
    const some = random.chance(0.1) ? ['*'] : random.some(verbs, 4)
    if (withUrls && random.chance(0.2)) return { verbs: some, nonResourceURLs: random.some([...urls, ...oddUrls], 2) }
    return {
      verbs: some,
      apiGroups: random.chance(0.15) ? ['*'] : random.some(apiGroups, 2),
      resources: random.some(random.chance(0.25) ? odd : resources, 3),
      ...(random.chance(0.25) ? { resourceNames: random.some(names, 2) } : {}),
    }
  })
}

export function makeSubjects(random: Random, isCluster: boolean): SubjectBody[] {
  if (random.chance(0.05)) return []
  return Array.from({ length: 1 + random.below(3) }, (): SubjectBody => {
    const kind = random.pick(['User', 'Group', 'ServiceAccount'] as const)
    if (kind === 'User') return { kind, apiGroup: rbacGroup, name: random.pick(users) }
    if (kind === 'Group') return { kind, apiGroup: rbacGroup, name: random.pick(groups) }
    const own = !isCluster && random.chance(0.4)
    return { kind, name: random.pick(accounts), ...(own ? {} : { namespace: random.pick(namespaces) }) }
  })
}

export type Question = { readonly caller: Caller; readonly wish: AccessWish }

/** Half of them begin with a binding and a rule that are there, so that there is something to allow; then a part is changed. */
export function makeQuestion(random: Random, held: Held): Question {
  const binding = random.chance(0.7) ? random.pick([...held.bindings.values()]) : undefined
  const caller = makeCaller(random, binding === undefined ? undefined : random.pick(binding.subjects ?? []), binding)
  const role = binding === undefined ? undefined : held.roleOf(binding)
  const rule = random.chance(0.8) ? random.pick(role?.rules ?? []) : undefined
  const wish = makeWish(random, rule, binding?.metadata.namespace)
  if (!random.chance(0.2)) return { caller, wish }
  const other = makeWish(random, undefined, undefined)
  const part = random.pick(['verb', 'namespace', 'name'] as const)
  const isUrl = wish.resource === ''
  return { caller, wish: isUrl && part !== 'verb' ? wish : { ...wish, [part]: other[part] } }
}

function makeCaller(random: Random, subject: SubjectBody | undefined, binding: BindingBody | undefined): Caller {
  const own = random.some(groups, 3)
  const account = `system:serviceaccount:${random.pick(namespaces)}:${random.pick(accounts)}`
  const name = random.chance(0.3) ? account : random.pick([...users, 'stranger'])
  if (random.chance(0.02)) own.push('system:masters')
  const caller = { name, uid: random.chance(0.5) ? 'u-1' : '', groups: random.chance(0.2) ? [] : own }
  if (subject?.kind === 'User') return { ...caller, name: subject.name }
  if (subject?.kind === 'Group') return { ...caller, groups: [...caller.groups, subject.name] }
  if (subject === undefined) return caller
  const namespace = subject.namespace ?? binding?.metadata.namespace ?? ''
  return { ...caller, name: `system:serviceaccount:${namespace}:${subject.name}` }
}

function makeWish(random: Random, rule: RuleBody | undefined, namespace: string | undefined): AccessWish {
  const nothing = { group: '', resource: '', subresource: '', namespace: '', name: '', path: '' }
  const verb = filled(random, rule?.verbs, verbs)
  if (rule === undefined ? random.chance(0.15) : rule.nonResourceURLs !== undefined) {
    const path = filled(random, rule?.nonResourceURLs, urls)
    return { ...nothing, verb, path: path.replace(/\*+$/, random.pick(['', 'x', '/y'])) || '/' }
  }
  const whole = filled(random, rule?.resources, resources).replaceAll('*', random.pick(['pods', 'songs']))
  const [resource = '', subresource = ''] = whole.split('/')
  return {
    ...nothing,
    verb,
    group: filled(random, rule?.apiGroups, apiGroups),
    resource,
    subresource,
    namespace: namespace ?? random.pick(['', ...namespaces, 'kube-system']),
    name: rule?.resourceNames === undefined ? random.pick(['', '', ...names]) : random.pick(rule.resourceNames),
  }
}

/** One that the rule has; where it has them all, one of these. */
function filled(random: Random, has: readonly string[] | undefined, otherwise: readonly string[]): string {
  const one = has === undefined || has.length === 0 ? '*' : random.pick(has)
  return one === '*' ? random.pick(otherwise) : one
}
