/** Roles and bindings as in a cluster of many teams: 5,000 bindings, most of them in namespaces, to accounts and to groups. */

import type { RbacResource } from '../src/access/rbac/rbac.ts'

export const bindingCount = 5_000
export const teamCount = 200
export const groupCount = 400
const clusterRoles = 300
const clusterBindings = 1_000

export const roleResources = ['pods', 'services', 'configmaps', 'deployments', 'jobs', 'leases', 'events', 'ingresses']
export const roleVerbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']

export type RoleObject = {
  readonly resource: RbacResource
  /** '' of what is in none. */
  readonly namespace: string
  readonly name: string
  readonly content: object
}

export const teamName = (at: number) => `team-${at % teamCount}`

export function* makeRoles(): Generator<RoleObject> {
  for (let at = 0; at < clusterRoles; at++) {
    yield { resource: 'clusterroles', namespace: '', name: `role-${at}`, content: { rules: rules(at, 10) } }
  }
  for (let at = 0; at < clusterBindings; at++) {
    const subjects = [{ kind: 'Group', name: `group-${at % groupCount}` }]
    const content = { roleRef: { kind: 'ClusterRole', name: `role-${at % clusterRoles}` }, subjects }
    yield { resource: 'clusterrolebindings', namespace: '', name: `binding-${at}`, content }
  }
  for (let at = 0; at < bindingCount - clusterBindings; at++) {
    const namespace = teamName(at)
    const name = `role-${at}`
    const isOwn = at % 2 === 0
    if (isOwn) yield { resource: 'roles', namespace, name, content: { rules: rules(at, 3) } }
    const roleRef = isOwn ? { kind: 'Role', name } : { kind: 'ClusterRole', name: `role-${at % clusterRoles}` }
    const subjects = [
      { kind: 'ServiceAccount', name: `account-${at % 7}`, namespace },
      { kind: 'Group', name: `group-${(at * 7) % groupCount}` },
    ]
    yield { resource: 'rolebindings', namespace, name: `binding-${at}`, content: { roleRef, subjects } }
  }
}

function rules(from: number, count: number): object[] {
  return Array.from({ length: count }, (_, more) => {
    const at = from + more
    return {
      verbs: roleVerbs.slice(at % 3, 3 + (at % 5)),
      apiGroups: [at % 2 === 0 ? '' : 'apps'],
      resources: [roleResources[at % 8], roleResources[(at + 3) % 8]],
    }
  })
}
