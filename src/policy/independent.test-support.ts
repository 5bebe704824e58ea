/**
 * The written rule once more, from docs/policies.md and not from the code: a rule is the set of objects it speaks of, within a world small
 * enough to look at each. What is asked for is allowed if all of it lies in one rule, and forbidden if any of it lies in one.
 */

export type RawCollection = {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly namespaces?: readonly string[]
  readonly names?: readonly string[]
}

export type RawPolicy = {
  readonly name: string
  /** Something in it is wrong, which is neither `nodes` nor what it forbids. */
  readonly isBroken: boolean
  /** Its selector is wrong. */
  readonly hasBrokenNodes: boolean
  readonly nodes?: { readonly names?: readonly string[]; readonly labels?: Readonly<Record<string, string>> }
  readonly trust?: boolean
  readonly speakFor: readonly { readonly users?: readonly string[]; readonly groups?: readonly string[] }[]
  readonly interests: readonly RawCollection[]
  readonly neverMirrored: readonly RawCollection[]
  readonly rates: { readonly edgeRequestsPerSecond?: number; readonly callerRequestsPerSecond?: number }
  readonly offline: { readonly tokenAge?: string; readonly serveAge?: string }
}

export type RawNode = { readonly name: string; readonly labels: Readonly<Record<string, string>> }

export type RawQuestion =
  | { readonly about: 'caller'; readonly name: string; readonly groups: readonly string[] }
  | {
      readonly about: 'interest' | 'never'
      readonly group: string
      readonly resource: string
      readonly namespace: string
      readonly name: string
      readonly isNamespaced: boolean
    }

/** Every place where an object can lie; no policy speaks of the last namespace and the last name. */
const places = ['', 'a', 'ab', 'b', 'abc', 'cd', 'unheard-of'].flatMap((namespace) =>
  ['a', 'ab', 'b', 'abc', 'cd', 'unheard-of'].map((name) => ({ namespace, name })),
)

function glob(pattern: string): RegExp {
  return new RegExp(`^${pattern.replace(/[.\\+?^${}()|[\]]/g, '\\$&').replace('*', '.*')}$`, 's')
}

const isOne = (patterns: readonly string[], text: string) => patterns.some((pattern) => glob(pattern).test(text))

/** An object in no namespace is of all of them, and of none that is named. */
function has(rule: RawCollection, place: (typeof places)[number]): boolean {
  const inNamespace =
    rule.namespaces === undefined ||
    (place.namespace === '' ? rule.namespaces.includes('*') : isOne(rule.namespaces, place.namespace))
  return inNamespace && (rule.names === undefined || isOne(rule.names, place.name))
}

function isForNode({ nodes }: RawPolicy, node: RawNode): boolean {
  const isNamed = nodes?.names === undefined || isOne(nodes.names, node.name)
  const isLabelled = Object.entries(nodes?.labels ?? {}).every(([label, value]) => node.labels[label] === value)
  return isNamed && isLabelled
}

const hourMs = 3_600_000

export function independent(policies: readonly RawPolicy[], node: RawNode) {
  const forbidding = policies.filter((one) => one.hasBrokenNodes || isForNode(one, node))
  const allowing = forbidding.filter((one) => !one.isBroken && !one.hasBrokenNodes)
  const lowest = (numbers: readonly (number | undefined)[]) => {
    const given = numbers.filter((one) => one !== undefined)
    return given.length === 0 ? undefined : Math.min(...given)
  }
  const ageMs = (text: string | undefined) => (text === undefined ? undefined : Number(text.replace('h', '')) * hourMs)
  return {
    trusts: allowing.some((one) => one.trust === true),
    edgePerSecond: lowest(forbidding.map(({ rates }) => rates.edgeRequestsPerSecond)),
    callerPerSecond: lowest(forbidding.map(({ rates }) => rates.callerRequestsPerSecond)),
    tokenAgeMs: lowest(forbidding.map(({ offline }) => ageMs(offline.tokenAge))),
    serveAgeMs: lowest(forbidding.map(({ offline }) => ageMs(offline.serveAge))),
    answer(question: RawQuestion): boolean {
      if (question.about === 'caller')
        return allowing.some((one) => one.speakFor.some((entry) => speaks(entry, question)))
      const { about, group, resource, namespace, name, isNamespaced } = question
      const isOf = (rule: RawCollection) =>
        (rule.apiGroups.includes('*') || rule.apiGroups.includes(group)) &&
        (rule.resources.includes('*') || rule.resources.includes(resource))
      const asked = places.filter(
        (place) =>
          (namespace === ''
            ? !isNamespaced || about === 'interest' || place.namespace !== ''
            : place.namespace === namespace) &&
          (isNamespaced || about === 'interest' || place.namespace === '') &&
          (name === '' || place.name === name),
      )
      if (about === 'interest')
        return allowing.some((one) =>
          one.interests.some((rule) => isOf(rule) && asked.every((place) => has(rule, place))),
        )
      return forbidding.some((one) =>
        one.neverMirrored.some((rule) => isOf(rule) && asked.some((place) => has(rule, place))),
      )
    },
  }
}

type SpokenEntry = RawPolicy['speakFor'][number]

function speaks({ users, groups = [] }: SpokenEntry, caller: Extract<RawQuestion, { about: 'caller' }>): boolean {
  if (caller.groups.includes('system:masters')) return false
  const reaches = (pattern: string, text: string) =>
    text.startsWith('system:') && !pattern.startsWith('system:') ? false : glob(pattern).test(text)
  const own = caller.groups.filter((group) => group !== 'system:authenticated')
  const foreign = own.filter((group) => !groups.some((pattern) => reaches(pattern, group)))
  if (foreign.length > 0) return false
  if (users === undefined) return own.length > 0
  return users.some((pattern) => reaches(pattern, caller.name))
}
