/**
 * The roles and bindings of one caller, taken out of all those of a cluster and written down: what a hub tells an edge of a caller, and the
 * edge keeps. Read again they are an authorizer that says of this caller what the whole would say, in the same words. The
 * bindings name no other subject, and roles that no binding of this caller names are not among them.
 */
import { hash } from 'node:crypto'
import type { Caller } from '../../kube/caller.ts'
import { Rbac, type RbacResource } from './rbac.ts'
import type { PolicyRule } from './rules.ts'

/** Of what is written: a caller with more is judged by what the API server said of it alone. 10,000 bindings of one caller are no site's. */
export const subjectRulesBytesMax = 256 * 1024
/** Some 60 bytes each. */
const bindingsMax = 4_000

/** Roles by their key, then bindings: resource, key, kind and name of the role, subjects as kind and name. */
type WrittenRules = {
  readonly roles: readonly (readonly [key: string, rules: readonly WrittenRule[]])[]
  readonly bindings: readonly (readonly [key: string, roleKind: string, roleName: string, ...subjects: string[]])[]
}

type WrittenRule = readonly [verbs: string, groups: string, resources: string, names: string, urls: string]

/** The subject by which rules are kept and asked for: RBAC looks at a caller's name and groups alone. */
export function subjectKey({ name, groups }: Pick<Caller, 'name' | 'groups'>): string {
  return hash('sha256', JSON.stringify([name, ...[...new Set(groups)].sort()]), 'base64url').slice(0, 22)
}

/** The same text for the same rules. Undefined where there are more than are told. */
export function writeSubjectRules(rbac: Rbac, caller: Caller): string | undefined {
  const roles = new Map<string, readonly WrittenRule[]>()
  const bindings: WrittenRules['bindings'][number][] = []
  for (const { key, roleKind, roleName, subjects, roleKey, rules } of rbac.applying(caller)) {
    if (bindings.length >= bindingsMax) return undefined
    const named = subjects.map(({ kind, id }) => `${kind} ${id}`)
    bindings.push([key, roleKind, roleName, ...new Set(named)])
    if (rules !== undefined) roles.set(roleKey, rules.map(written))
  }
  const text = JSON.stringify({ roles: [...roles], bindings } satisfies WrittenRules)
  return Buffer.byteLength(text) > subjectRulesBytesMax ? undefined : text
}

/** Undefined for what makes no sense. */
export function readSubjectRules(text: string): Rbac | undefined {
  try {
    const { roles, bindings } = JSON.parse(text) as WrittenRules
    const rbac = new Rbac()
    const put = (resource: RbacResource, key: string, object: object) =>
      rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
    for (const [key, rules] of roles) put(key.includes('/') ? 'roles' : 'clusterroles', key, { rules: rules.map(read) })
    for (const [key, kind, name, ...subjects] of bindings) {
      const resource = key.includes('/') ? 'rolebindings' : 'clusterrolebindings'
      put(resource, key, { roleRef: { kind, name }, subjects: subjects.map(subjectOf) })
    }
    return rbac
  } catch {
    return undefined
  }
}

const listed = (texts: readonly string[]) => JSON.stringify(texts).slice(1, -1)
const list = (text: string) => JSON.parse(`[${text}]`) as string[]

function written({ verbs, groups, resources, names, urls }: PolicyRule): WrittenRule {
  return [listed(verbs), listed(groups), listed(resources), listed(names), listed(urls)]
}

function read([verbs, apiGroups, resources, resourceNames, nonResourceURLs]: WrittenRule): object {
  return {
    ...{ verbs: list(verbs), apiGroups: list(apiGroups), resources: list(resources) },
    ...{ resourceNames: list(resourceNames), nonResourceURLs: list(nonResourceURLs) },
  }
}

const accountPrefix = 'system:serviceaccount:'

function subjectOf(text: string): object {
  const [kind, id] = [text.slice(0, text.indexOf(' ')), text.slice(text.indexOf(' ') + 1)]
  if (kind !== 'ServiceAccount') return { kind, name: id }
  const [namespace = '', name = ''] = id.slice(accountPrefix.length).split(':')
  return { kind, namespace, name }
}
