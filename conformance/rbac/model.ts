/**
 * Every answer that kube-apiserver may give: it walks its bindings in any order, so that where several allow, any of them may
 * be the reason. Written from the objects alone, binding by binding, without an index.
 */

import type { AccessWish } from '../../src/access/rbac/rules.ts'
import type { Caller } from '../../src/kube/caller.ts'
import type { BindingBody, Held, RuleBody, SubjectBody } from './copy.ts'

export type Possible = {
  /** Empty: it is not allowed. */
  readonly reasons: ReadonlySet<string>
  /** What a denial names, in any order. */
  readonly faults: ReadonlySet<string>
}

export function possible(held: Held, caller: Caller, wish: AccessWish): Possible {
  if (caller.groups.includes('system:masters')) return { reasons: new Set(['']), faults: new Set() }
  const faults = new Set<string>()
  const scopes = wish.namespace === '' || wish.resource === '' ? [''] : ['', wish.namespace]
  for (const scope of scopes) {
    const reasons = new Set<string>()
    for (const binding of held.bindings.values()) {
      if ((binding.metadata.namespace ?? '') !== scope) continue
      const subject = (binding.subjects ?? []).find((one) => means(one, caller, scope))
      if (subject === undefined) continue
      const role = held.roleOf(binding)
      const { kind, name } = binding.roleRef
      if (role === undefined) faults.add(`${kind.toLowerCase()}.rbac.authorization.k8s.io "${name}" not found`)
      else if ((role.rules ?? []).some((rule) => ruleAllows(rule, wish))) reasons.add(reason(binding, subject, scope))
    }
    if (reasons.size > 0) return { reasons, faults }
  }
  return { reasons: new Set(), faults }
}

function means({ kind, name, namespace }: SubjectBody, caller: Caller, scope: string): boolean {
  if (kind === 'User') return caller.name === name
  if (kind === 'Group') return caller.groups.includes(name)
  return caller.name === `system:serviceaccount:${namespace ?? scope}:${name}`
}

function ruleAllows(rule: RuleBody, wish: AccessWish): boolean {
  const has = (list: readonly string[] | undefined, ...any: string[]) => any.some((one) => list?.includes(one))
  if (!has(rule.verbs, '*', wish.verb)) return false
  if (wish.resource === '') {
    return (rule.nonResourceURLs ?? []).some(
      (url) => url === wish.path || (url.endsWith('*') && wish.path.startsWith(url.replace(/\*+$/, ''))),
    )
  }
  const forms =
    wish.subresource === '' ? [wish.resource] : [`${wish.resource}/${wish.subresource}`, `*/${wish.subresource}`]
  if (!has(rule.apiGroups, '*', wish.group) || !has(rule.resources, '*', ...forms)) return false
  return (rule.resourceNames ?? []).length === 0 || has(rule.resourceNames, wish.name)
}

function reason(binding: BindingBody, subject: SubjectBody, scope: string): string {
  const { name } = binding.metadata
  const { kind, name: role } = binding.roleRef
  const whose = subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace ?? scope}` : subject.name
  const what = scope === '' ? `ClusterRoleBinding "${name}"` : `RoleBinding "${name}/${scope}"`
  return `RBAC: allowed by ${what} of ${kind} "${role}" to ${subject.kind} ${JSON.stringify(whose)}`
}

/** The faults that a denial names. */
export function faultsIn(reasonOfDenial: string): Set<string> {
  const text = reasonOfDenial.replace(/^RBAC: /, '')
  if (text === '') return new Set()
  return new Set(text.startsWith('[') ? text.slice(1, -1).split(', ') : [text])
}
