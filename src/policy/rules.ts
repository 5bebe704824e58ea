/** All policies together, asked about one edge: the first rule in the order of the policies' names is the one that is named. */
import type { Caller } from '../kube/caller.ts'
import { concerns, type PolicedNode } from './nodes.ts'
import { matches, matchesIdentity } from './patterns.ts'
import type { EdgeRules, PolicedCollection, PolicedInterest, PolicyVerdict } from './policy.ts'
import { type CollectionRule, masters, type ReadPolicy, type SpokenFor } from './reading.ts'

/** What is for one edge: `isWhole`, or only what it forbids. */
export type AppliedPolicy = { readonly policy: ReadPolicy; readonly isWhole: boolean }

export function applied(policies: Iterable<ReadPolicy>, node: PolicedNode): AppliedPolicy[] {
  const found: AppliedPolicy[] = []
  for (const policy of policies) {
    const meant = concerns(policy.nodes, node)
    if (meant !== 'no') found.push({ policy, isWhole: meant === 'yes' })
  }
  return found.sort((a, b) => (a.policy.name < b.policy.name ? -1 : 1))
}

export function rulesBy(those: readonly AppliedPolicy[]): EdgeRules {
  const all = those.map(({ policy }) => policy)
  const whole = those.filter(({ isWhole }) => isWhole).map(({ policy }) => policy)
  const lowest = <Of extends 'rates' | 'offline', Key extends string & keyof ReadPolicy[Of]>(of: Of, key: Key) => {
    const numbers = all.map((policy) => policy[of][key] as number | undefined).filter((one) => one !== undefined)
    return numbers.length === 0 ? {} : ({ [key]: Math.min(...numbers) } as { [name in Key]: number })
  }
  return {
    trusts: whole.some(({ trusts }) => trusts),
    rates: { ...lowest('rates', 'edgePerSecond'), ...lowest('rates', 'callerPerSecond') },
    offline: { ...lowest('offline', 'tokenAgeMs'), ...lowest('offline', 'serveAgeMs') },

    speaksFor(caller) {
      if (caller.groups.includes(masters)) return no(`${masters} is spoken for by nobody: its members use a token`)
      return first(whole, 'speakFor', (entry) => speaks(entry, caller)) ?? no('no policy lets this edge speak for it')
    },

    holds(asking) {
      return first(whole, 'interests', (rule) => covers(rule, asking)) ?? no('no policy lets this edge hold it')
    },

    isNeverMirrored(of) {
      return first(all, 'neverMirrored', (rule) => touches(rule, of)) ?? no('no policy keeps it from being mirrored')
    },
  }
}

type RuleLists = Pick<ReadPolicy, 'speakFor' | 'interests' | 'neverMirrored'>

function first<Of extends keyof RuleLists>(
  policies: readonly ReadPolicy[],
  of: Of,
  says: (rule: RuleLists[Of][number]) => boolean,
): PolicyVerdict | undefined {
  for (const policy of policies) {
    const rule = policy[of].find(says)
    if (rule !== undefined) return { yes: true, by: `policy/${policy.name} spec.${of}[${rule.at}]` }
  }
  return undefined
}

function no(by: string): PolicyVerdict {
  return { yes: false, by }
}

/** The group of every caller with a credential. */
const authenticated = 'system:authenticated'

/** One entry has to allow the user and all groups: what two allow in part is allowed by none. */
function speaks({ users, groups: allowed }: SpokenFor, { name, groups: all }: Caller): boolean {
  const groups = all.filter((group) => group !== authenticated)
  if (!groups.every((group) => allowed.some((pattern) => matchesIdentity(pattern, group)))) return false
  return users === undefined ? groups.length > 0 : users.some((pattern) => matchesIdentity(pattern, name))
}

function isOf({ apiGroups, resources }: CollectionRule, group: string, resource: string): boolean {
  const has = (list: readonly string[], one: string) => list.includes('*') || list.includes(one)
  return has(apiGroups, group) && has(resources, resource)
}

/** Everything that is asked for lies in it. */
function covers(rule: CollectionRule, { group, resource, namespace, name }: PolicedInterest): boolean {
  const within = (patterns: readonly string[] | undefined, one: string) =>
    patterns === undefined || patterns.some((pattern) => pattern === '*' || (one !== '' && matches(pattern, one)))
  return isOf(rule, group, resource) && within(rule.namespaces, namespace) && within(rule.names, name)
}

/** Anything of it lies in what is asked for: all namespaces have the one that is meant among them. */
function touches(rule: CollectionRule, of: PolicedCollection): boolean {
  const { group, resource, namespace, isNamespaced = true } = of
  if (!isOf(rule, group, resource)) return false
  if (rule.namespaces === undefined || rule.namespaces.includes('*')) return true
  return isNamespaced && (namespace === '' || rule.namespaces.some((pattern) => matches(pattern, namespace)))
}
