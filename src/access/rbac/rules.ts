/** The rules of a role, and whether one of them allows a wish: as kube-apiserver reads them. */

/** What a caller wants to do. Where no resource is addressed (`resource` is ''), `path` says what is. */
export type AccessWish = {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly path: string
}

export type PolicyRule = {
  readonly verbs: readonly string[]
  readonly groups: readonly string[]
  readonly resources: readonly string[]
  /** Empty: of any name. */
  readonly names: readonly string[]
  readonly urls: readonly string[]
}

/** A wish as rules compare it: worked out once, compared with each. */
export type SpelledWish = AccessWish & {
  /** `pods/log`, or the resource alone. */
  readonly whole: string
  /** How a rule names this subresource of any resource; '' where there is none. */
  readonly ofAny: string
}

export function spellWish(wish: AccessWish): SpelledWish {
  const { resource, subresource } = wish
  if (subresource === '') return { ...wish, whole: resource, ofAny: '' }
  return { ...wish, whole: `${resource}/${subresource}`, ofAny: `*/${subresource}` }
}

export function allows(rule: PolicyRule, wish: SpelledWish): boolean {
  if (!hasOrAll(rule.verbs, wish.verb)) return false
  if (wish.resource === '') return rule.urls.some((url) => coversPath(url, wish.path))
  return (
    hasOrAll(rule.groups, wish.group) &&
    hasResource(rule.resources, wish) &&
    (rule.names.length === 0 || rule.names.includes(wish.name))
  )
}

function hasOrAll(list: readonly string[], text: string): boolean {
  for (const one of list) if (one === text || one === '*') return true
  return false
}

/** `pods/*` is no wildcard to Kubernetes: it allows nothing. */
function hasResource(list: readonly string[], { whole, ofAny }: SpelledWish): boolean {
  for (const one of list) if (one === whole || one === '*' || (one === ofAny && ofAny !== '')) return true
  return false
}

/** A star counts at the end alone. */
export function coversPath(url: string, path: string): boolean {
  if (url === path) return true
  return url.endsWith('*') && path.startsWith(url.replace(/\*+$/, ''))
}

/** Charts and operators write the same rules into every namespace: each is kept once. */
const sharedMax = 4_096 // where there are more distinct ones, later roles begin to share anew

export class SharedRules {
  readonly #rules = new Map<string, PolicyRule>()

  /** As they stand in a role; what is no list of texts has none. */
  read(value: unknown): readonly PolicyRule[] {
    return Array.isArray(value) ? value.map((one) => this.#shared(readRule(one))) : []
  }

  #shared(rule: PolicyRule): PolicyRule {
    const text = JSON.stringify(rule)
    const present = this.#rules.get(text)
    if (present !== undefined) return present
    if (this.#rules.size >= sharedMax) this.#rules.clear()
    this.#rules.set(text, rule)
    return rule
  }
}

export function readRule(rule: Readonly<Record<string, unknown>> | null): PolicyRule {
  return {
    verbs: texts(rule?.verbs),
    groups: texts(rule?.apiGroups),
    resources: texts(rule?.resources),
    names: texts(rule?.resourceNames),
    urls: texts(rule?.nonResourceURLs),
  }
}

const none: readonly string[] = []

/** Most lists of a rule are missing: those share one. */
function texts(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) return none
  return value.filter((item): item is string => typeof item === 'string')
}
