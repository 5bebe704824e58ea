/**
 * The rules of an aggregated ClusterRole from those that its selectors name: what a controller of Kubernetes writes into the
 * role. A mirror finds them written; an authority, which has no controllers, works them out.
 */
import type { LabelRequirement } from '../../kube/labelmatch.ts'
import { LabelSelector } from '../../kube/selector.ts'
import { type PolicyRule, readRule } from './rules.ts'

/** A ClusterRole, as far as aggregation looks at it. */
export type AggregableRole = {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly rules: readonly PolicyRule[]
  /** Undefined: it is not aggregated. */
  readonly selectors: readonly LabelSelector[] | undefined
}

type Tree = Readonly<Record<string, unknown>>

export function readAggregable(bytes: Buffer): AggregableRole {
  const { metadata, rules, aggregationRule } = JSON.parse(bytes.toString('utf8')) as {
    metadata: { name: string; labels?: Record<string, string> }
    rules?: readonly Tree[] | null
    aggregationRule?: { clusterRoleSelectors?: readonly Tree[] | null } | null
  }
  return {
    name: metadata.name,
    labels: new Map(Object.entries(metadata.labels ?? {})),
    rules: (rules ?? []).map(readRule),
    selectors: aggregationRule ? readSelectors(aggregationRule.clusterRoleSelectors ?? []) : undefined,
  }
}

/** What a role has to hold is what is printed: lists that are empty are left out. */
export function printRules(rules: readonly PolicyRule[]): object[] {
  const some = (texts: readonly string[]) => (texts.length === 0 ? undefined : texts)
  return rules.map(({ verbs, groups, resources, names, urls }) => ({
    verbs,
    apiGroups: some(groups),
    resources: some(resources),
    resourceNames: some(names),
    nonResourceURLs: some(urls),
  }))
}

/** In the order of selectors, then of names, each rule once; the role's own do not count. */
export function aggregatedRules(role: AggregableRole, all: Iterable<AggregableRole>): PolicyRule[] {
  const others = [...all].filter(({ name }) => name !== role.name).sort((a, b) => (a.name < b.name ? -1 : 1))
  const rules = new Map<string, PolicyRule>()
  for (const selector of role.selectors ?? []) {
    for (const other of others) {
      if (!selector.matches(other.labels)) continue
      for (const rule of other.rules) {
        const text = JSON.stringify(rule)
        if (!rules.has(text)) rules.set(text, rule)
      }
    }
  }
  return [...rules.values()]
}

const operators = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: 'absent' } as const

/** A role with one that cannot be read is left as it is. */
function readSelectors(selectors: readonly Tree[]): LabelSelector[] | undefined {
  const isRead = selectors.every(({ matchExpressions }) =>
    ((matchExpressions ?? []) as readonly { operator: string }[]).every(({ operator }) => operator in operators),
  )
  return isRead ? selectors.map(readSelector) : undefined
}

/** One that says nothing selects everything. */
function readSelector(selector: Tree): LabelSelector {
  const labels = Object.entries((selector.matchLabels ?? {}) as Readonly<Record<string, string>>)
  const expressions = (selector.matchExpressions ?? []) as readonly {
    key: string
    operator: keyof typeof operators
    values?: readonly string[]
  }[]
  const requirements: LabelRequirement[] = [
    ...labels.map(([key, value]): LabelRequirement => ({ key, operator: 'in', values: [value] })),
    ...expressions.map(({ key, operator, values = [] }) => {
      return { key, operator: operators[operator], values: [...new Set(values)].sort() }
    }),
  ]
  return new LabelSelector(requirements)
}
