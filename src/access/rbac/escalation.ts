/**
 * No caller gives away what it does not have: the writer of a role has to hold every right in it, or be allowed to `escalate`;
 * the writer of a binding has to hold every right of its role, or be allowed to `bind` it. In kube-apiserver's words.
 */
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { equalJson, isObject, type JsonObject, printJson, text } from '../../kube/json/json.ts'
import { failure, forbidden, notFound } from '../../kube/status.ts'
import { privileged, type Rbac, together } from './rbac.ts'
import { coversPath, type PolicyRule, readRule } from './rules.ts'

const group = 'rbac.authorization.k8s.io'

/** What is written, and its writer, as the request names them. */
export type RoleWrite = {
  readonly resource: { readonly group: string; readonly resource: string }
  readonly namespace: string
  /** '' where the object alone has it. */
  readonly name: string
  readonly caller: Caller
}

type Plain = Readonly<Record<string, unknown>>

const fullAuthority: readonly PolicyRule[] = [
  { verbs: ['*'], groups: ['*'], resources: ['*'], names: [], urls: [] },
  { verbs: ['*'], groups: [], resources: [], names: [], urls: ['*'] },
]

/** Throws the refusal of a write of a role or binding as `next`; `old` is what it takes the place of. */
export function refuseEscalation(rbac: Rbac, write: RoleWrite, next: JsonObject, old: JsonObject | undefined): void {
  const { resource, caller } = write
  if (resource.group !== group || caller.groups.includes(privileged)) return
  if (old !== undefined && equalJson(withoutOwners(next), withoutOwners(old))) return
  const isBinding = resource.resource.endsWith('bindings')
  const object = plain(next)
  if (isBinding) refuseBinding(rbac, write, object, text(next, 'metadata', 'name'))
  else refuseRole(rbac, write, object, { name: text(next, 'metadata', 'name'), old: old && plain(old) })
}

function refuseRole(
  rbac: Rbac,
  write: RoleWrite,
  role: Plain,
  { name, old }: { name: string; old: Plain | undefined },
): void {
  const { resource, namespace, caller } = write
  const asking = { verb: 'escalate', group, resource: resource.resource, subresource: '', path: '' }
  if (rbac.judge(caller, { ...asking, namespace, name: write.name }).allowed) return
  const missing = lacking(rbac, write, rulesIn(role))
  if (missing !== undefined) throw forbidden(resource, name, missing)
  if (!isAggregated(role) && !isAggregated(old)) return
  if (lacking(rbac, write, fullAuthority) === undefined) return
  throw forbidden(resource, name, 'must have cluster-admin privileges to use the aggregationRule')
}

function refuseBinding(rbac: Rbac, write: RoleWrite, binding: Plain, name: string): void {
  const { resource, namespace, caller } = write
  const { kind = '', name: role = '', apiGroup } = (binding.roleRef ?? {}) as Readonly<Record<string, string>>
  if (kind === 'Role' || kind === 'ClusterRole') {
    const asking = { verb: 'bind', group: apiGroup || group, resource: `${kind.toLowerCase()}s`, subresource: '' }
    if (rbac.judge(caller, { ...asking, namespace, name: role, path: '' }).allowed) return
  } else throw failure(500, '', `unsupported role reference kind: ${quoted(kind)}`)
  const rules = rbac.rulesIn(kind, namespace, role)
  if (rules === undefined) throw notFound(resource, role)
  const missing = lacking(rbac, write, rules)
  if (missing !== undefined) throw forbidden(resource, name, missing)
}

/** What of these rules the caller does not hold, said as kube-apiserver says it; undefined: it holds them all. */
function lacking(
  rbac: Rbac,
  { caller, namespace }: Pick<RoleWrite, 'caller' | 'namespace'>,
  wanted: readonly PolicyRule[],
): string | undefined {
  const { rules, faults } = rbac.rulesOf(caller, namespace)
  const missing = wanted
    .flatMap((rule) => [...singleRules(rule)])
    .filter((one) => !rules.some((held) => covers(held, one)))
  if (missing.length === 0) return undefined
  const who = `user ${quoted(caller.name)} (groups=${list(caller.groups)})`
  const lines = [...new Set(compacted(missing).map(described))].sort()
  const unresolved = faults.length === 0 ? '' : `; resolution errors: [${together(faults)}]`
  return `${who} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}${unresolved}`
}

/** Each with one verb, one group and one resource, and at most one name; or one verb and one path. */
function* singleRules({ verbs, groups, resources, names, urls }: PolicyRule): Generator<PolicyRule> {
  for (const one of groups) {
    for (const resource of resources) {
      for (const verb of verbs) {
        const rule = { verbs: [verb], groups: [one], resources: [resource], urls: [] }
        if (names.length === 0) yield { ...rule, names: [] }
        for (const name of names) yield { ...rule, names: [name] }
      }
    }
  }
  for (const url of urls)
    for (const verb of verbs) yield { verbs: [verb], groups: [], resources: [], names: [], urls: [url] }
}

/** Of a single rule. */
function covers(held: PolicyRule, { verbs, groups, resources, names, urls }: PolicyRule): boolean {
  const hasAll = (all: readonly string[], some: readonly string[]) =>
    all.includes('*') || some.every((one) => all.includes(one))
  return (
    hasAll(held.verbs, verbs) &&
    hasAll(held.groups, groups) &&
    (held.resources.includes('*') || resources.every((one) => hasResource(held.resources, one))) &&
    (held.names.length === 0 || (names.length > 0 && names.every((one) => held.names.includes(one)))) &&
    urls.every((one) => held.urls.some((url) => coversPath(url, one)))
  )
}

function hasResource(held: readonly string[], resource: string): boolean {
  if (held.includes(resource)) return true
  const slash = resource.indexOf('/')
  return slash >= 0 && held.includes(`*${resource.slice(slash)}`)
}

/** Those that differ by their verb alone are one. */
function compacted(rules: readonly PolicyRule[]): PolicyRule[] {
  const others: PolicyRule[] = []
  const simple = new Map<string, PolicyRule>()
  for (const rule of rules) {
    if (rule.urls.length > 0) {
      others.push(rule)
      continue
    }
    const key = JSON.stringify([rule.groups, rule.resources, rule.names])
    const held = simple.get(key)
    simple.set(key, held === undefined ? rule : { ...held, verbs: [...held.verbs, ...rule.verbs] })
  }
  return [...others, ...simple.values()]
}

function described({ groups, resources, urls, names, verbs }: PolicyRule): string {
  const parts = [
    ['APIGroups', groups],
    ['Resources', resources],
    ['NonResourceURLs', urls],
    ['ResourceNames', names],
    ['Verbs', verbs],
  ] as const
  return `{${parts.flatMap(([name, texts]) => (texts.length === 0 ? [] : [`${name}:${list(texts)}`])).join(', ')}}`
}

function list(texts: readonly string[]): string {
  return `[${texts.map(quoted).join(' ')}]`
}

function rulesIn({ rules }: Plain): PolicyRule[] {
  return Array.isArray(rules) ? rules.map((one) => readRule(one as Plain | null)) : []
}

function isAggregated(role: Plain | undefined): boolean {
  const { clusterRoleSelectors } = (role?.aggregationRule ?? {}) as { clusterRoleSelectors?: unknown }
  return Array.isArray(clusterRoleSelectors) && clusterRoleSelectors.length > 0
}

/** The garbage collector changes these alone, and gives nothing away with it. */
function withoutOwners(tree: JsonObject): JsonObject {
  const meta = tree.get('metadata')
  if (!isObject(meta)) return tree
  const kept = new Map(meta)
  for (const name of ['ownerReferences', 'finalizers', 'managedFields']) kept.delete(name)
  return new Map(tree).set('metadata', kept)
}

function plain(tree: JsonObject): Plain {
  return JSON.parse(printJson(tree)) as Plain
}
