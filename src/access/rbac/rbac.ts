/**
 * What roles and bindings allow: kube-apiserver's RBAC authorizer over a mirrored copy of its four resources. Pure: objects
 * come in one by one, as bytes, and a change of one touches that one alone. Bindings are found by scope and by what a caller
 * has (its name, its groups), so a question costs the bindings of its caller and not those of the cluster; a role is looked
 * at once, however many bindings lead to it.
 *
 * Where several bindings allow the same, kube-apiserver names any of them in its reason, since it walks a map; here it is the
 * one that came first. Aggregated roles count by their `rules`, which a controller fills (`aggregation.ts` for where there is none).
 */
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { type BoundSubject, describe, readBinding } from './bindings.ts'
import { type AccessWish, allows, type PolicyRule, SharedRules, type SpelledWish, spellWish } from './rules.ts'

export type RbacResource = 'roles' | 'rolebindings' | 'clusterroles' | 'clusterrolebindings'

/** What an authorizer says of a wish. Not allowed means that it has no opinion: another one may allow it. */
export type Opinion = { readonly allowed: boolean; readonly reason: string }

/** A role that exists or that a binding names. */
type BoundRole = {
  readonly key: string
  /** Undefined: it is not there. */
  rules: readonly PolicyRule[] | undefined
  bindings: number
  /** The question it was last looked at for. */
  seenBy: number
}

type BoundRights = {
  /** `namespace/name`, or the name. */
  readonly key: string
  readonly roleKind: string
  readonly roleName: string
  readonly role: BoundRole
  readonly subjects: readonly BoundSubject[]
}

/** A binding as far as it is one caller's. */
export type ApplyingBinding = {
  readonly key: string
  readonly roleKind: string
  readonly roleName: string
  readonly subjects: readonly BoundSubject[]
  readonly roleKey: string
  /** Undefined: the role is not there. */
  readonly rules: readonly PolicyRule[] | undefined
}

/** The bindings of one namespace, or of the whole cluster, by what a caller has. */
type ScopedBindings = Readonly<Record<BoundSubject['kind'], Map<string, BoundRights[]>>>

/** The API server asks no authorizer about its members. */
export const privileged = 'system:masters'
const allowedAlways: Opinion = { allowed: true, reason: '' }
const noOpinion: Opinion = { allowed: false, reason: '' }

export class Rbac {
  /** By `namespace/name`, cluster roles by their name: neither contains a slash. */
  readonly #roles = new Map<string, BoundRole>()
  readonly #bindings = new Map<string, BoundRights>()
  /** By namespace; '' is the whole cluster. */
  readonly #scopes = new Map<string, ScopedBindings>()
  readonly #rules = new SharedRules()
  #questions = 0

  get bindings(): number {
    return this.#bindings.size
  }

  /** `key` is `namespace/name`, or the name of what is in no namespace. */
  put(resource: RbacResource, key: string, bytes: Buffer): void {
    const object = JSON.parse(bytes.toString('utf8')) as Readonly<Record<string, unknown>>
    if (resource === 'roles' || resource === 'clusterroles') this.#role(key).rules = this.#rules.read(object.rules)
    else this.#bind(key, object)
  }

  delete(resource: RbacResource, key: string): void {
    if (resource === 'rolebindings' || resource === 'clusterrolebindings') {
      this.#unbind(key)
      return
    }
    const role = this.#roles.get(key)
    if (role === undefined) return
    role.rules = undefined
    this.#release(role)
  }

  /** Deletes all of a resource. */
  clear(resource: RbacResource): void {
    const isNamespaced = resource === 'roles' || resource === 'rolebindings'
    const all = resource === 'roles' || resource === 'clusterroles' ? this.#roles : this.#bindings
    for (const key of [...all.keys()]) if (key.includes('/') === isNamespaced) this.delete(resource, key)
  }

  judge(caller: Caller, wish: AccessWish): Opinion {
    if (caller.groups.includes(privileged)) return allowedAlways
    const asked = spellWish(wish)
    const missing: string[] = []
    this.#questions++
    let found = this.#allowing(this.#scopes.get(''), caller, asked, missing)
    if (found === undefined && wish.namespace !== '' && wish.resource !== '') {
      found = this.#allowing(this.#scopes.get(wish.namespace), caller, asked, missing)
    }
    if (found !== undefined) return { allowed: true, reason: `RBAC: allowed by ${sourceOf(found, caller)}` }
    return missing.length === 0 ? noOpinion : { allowed: false, reason: `RBAC: ${together(inOrder(missing))}` }
  }

  /** Every rule that applies to the caller in that namespace, and what keeps others from being known. */
  rulesOf(
    caller: Caller,
    namespace: string,
  ): { readonly rules: readonly PolicyRule[]; readonly faults: readonly string[] } {
    const rules: PolicyRule[] = []
    const missing: string[] = []
    for (const scope of new Set(['', namespace])) {
      for (const binding of distinct(bindingsOf(this.#scopes.get(scope), caller))) {
        if (binding.role.rules === undefined) missing.push(whyMissing(binding))
        else rules.push(...binding.role.rules)
      }
    }
    return { rules, faults: inOrder(missing) }
  }

  /** Every binding that applies to the caller, in any namespace, in the order in which questions come by them. */
  *applying(caller: Caller): Generator<ApplyingBinding> {
    for (const scope of this.#scopes.values())
      for (const { key, roleKind, roleName, role, subjects } of distinct(bindingsOf(scope, caller))) {
        const theirs = subjects.filter((subject) => isCaller(subject, caller))
        yield { key, roleKind, roleName, subjects: theirs, roleKey: role.key, rules: role.rules }
      }
  }

  /** Those of one role, as a binding in that namespace names it; undefined: it is not there. */
  rulesIn(kind: string, namespace: string, name: string): readonly PolicyRule[] | undefined {
    return this.#roles.get(roleKey(kind, namespace, name))?.rules
  }

  #allowing(
    scope: ScopedBindings | undefined,
    caller: Caller,
    wish: SpelledWish,
    missing: string[],
  ): BoundRights | undefined {
    if (scope === undefined) return undefined
    const named =
      this.#first(scope.User.get(caller.name), wish, missing) ??
      this.#first(scope.ServiceAccount.get(caller.name), wish, missing)
    if (named !== undefined) return named
    for (const group of caller.groups) {
      const found = this.#first(scope.Group.get(group), wish, missing)
      if (found !== undefined) return found
    }
    return undefined
  }

  #first(bindings: readonly BoundRights[] | undefined, wish: SpelledWish, missing: string[]): BoundRights | undefined {
    if (bindings === undefined) return undefined
    for (const binding of bindings) {
      const { role } = binding
      if (role.seenBy === this.#questions) continue
      role.seenBy = this.#questions
      if (role.rules === undefined) missing.push(whyMissing(binding))
      else for (const rule of role.rules) if (allows(rule, wish)) return binding
    }
    return undefined
  }

  #bind(key: string, object: Readonly<Record<string, unknown>>): void {
    this.#unbind(key)
    const namespace = namespaceOf(key)
    const { roleKind, roleName, subjects } = readBinding(object, namespace)
    const role = this.#role(roleKey(roleKind, namespace, roleName))
    role.bindings++
    const binding: BoundRights = { key, roleKind, roleName, role, subjects }
    this.#bindings.set(key, binding)
    const scope = this.#scopes.get(namespace) ?? { User: new Map(), Group: new Map(), ServiceAccount: new Map() }
    this.#scopes.set(namespace, scope)
    for (const { kind, id } of subjects) {
      const already = scope[kind].get(id) ?? []
      // Not pushed: an array that grows takes room for many more, and most have two or three.
      if (already.at(-1) !== binding) scope[kind].set(id, already.concat(binding))
    }
  }

  #unbind(key: string): void {
    const binding = this.#bindings.get(key)
    if (binding === undefined) return
    this.#bindings.delete(key)
    binding.role.bindings--
    this.#release(binding.role)
    const namespace = namespaceOf(key)
    const scope = this.#scopes.get(namespace) as ScopedBindings
    for (const { kind, id } of binding.subjects) {
      const left = scope[kind].get(id)?.filter((one) => one !== binding) ?? []
      if (left.length > 0) scope[kind].set(id, left)
      else scope[kind].delete(id)
    }
    if (scope.User.size + scope.Group.size + scope.ServiceAccount.size === 0) this.#scopes.delete(namespace)
  }

  #role(key: string): BoundRole {
    const present = this.#roles.get(key)
    if (present !== undefined) return present
    const role: BoundRole = { key, rules: undefined, bindings: 0, seenBy: 0 }
    this.#roles.set(key, role)
    return role
  }

  #release(role: BoundRole): void {
    if (role.rules === undefined && role.bindings === 0) this.#roles.delete(role.key)
  }
}

/** Those of its name, its account and its groups; one that names several of these comes several times. */
function* bindingsOf(scope: ScopedBindings | undefined, caller: Caller): Generator<BoundRights> {
  if (scope === undefined) return
  yield* scope.User.get(caller.name) ?? []
  yield* scope.ServiceAccount.get(caller.name) ?? []
  for (const group of caller.groups) yield* scope.Group.get(group) ?? []
}

function distinct(bindings: Iterable<BoundRights>): Set<BoundRights> {
  return new Set(bindings)
}

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')))
}

/** A kind that does not exist gets a key that no role has. */
function roleKey(kind: string, namespace: string, name: string): string {
  if (kind === 'ClusterRole') return name
  return kind === 'Role' ? `${namespace}/${name}` : `/${kind}/${name}`
}

function whyMissing({ roleKind, roleName }: BoundRights): string {
  if (roleKind !== 'Role' && roleKind !== 'ClusterRole') return `unsupported role reference kind: ${quoted(roleKind)}`
  return `${roleKind.toLowerCase()}.rbac.authorization.k8s.io ${quoted(roleName)} not found`
}

/** Each once; the API server has them in any order. */
function inOrder(faults: readonly string[]): string[] {
  return [...new Set(faults)].sort()
}

/** As Go prints several errors as one. */
export function together(faults: readonly string[]): string {
  return faults.length === 1 ? (faults[0] as string) : `[${faults.join(', ')}]`
}

/** By the first subject of the binding that the caller is. */
function sourceOf({ key, roleKind, roleName, subjects }: BoundRights, caller: Caller): string {
  const namespace = namespaceOf(key)
  const binding = namespace === '' ? key : `${key.slice(namespace.length + 1)}/${namespace}`
  const kind = namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding'
  const subject = subjects.find((one) => isCaller(one, caller)) as BoundSubject
  return `${kind} ${quoted(binding)} of ${roleKind} ${quoted(roleName)} to ${describe(subject)}`
}

function isCaller({ kind, id }: BoundSubject, caller: Caller): boolean {
  return kind === 'Group' ? caller.groups.includes(id) : caller.name === id
}
