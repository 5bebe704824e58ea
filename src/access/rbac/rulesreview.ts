/** What a SelfSubjectRulesReview answers: the rules of a caller in kube-apiserver's form. */
import { type Rbac, together } from './rbac.ts'
import type { PolicyRule } from './rules.ts'

type ResourceRule = {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
}

export type RulesReviewStatus = {
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly {
    readonly verbs: readonly string[]
    readonly nonResourceURLs: readonly string[]
  }[]
  readonly incomplete: boolean
  readonly evaluationError?: string
}

/** What kube-apiserver's authorizer of nodes says of rules: it has none that could be listed. */
const nodeFault = 'node authorizer does not support user rule resolution'

/** Role by role as bindings lead there, unmerged: kube-apiserver does not compact them, and has bindings in any order. */
export function rulesStatus({ rules, faults }: ReturnType<Rbac['rulesOf']>, isNode = false): RulesReviewStatus {
  const all = isNode ? [nodeFault, ...faults] : faults
  return {
    resourceRules: rules.filter(({ resources }) => resources.length > 0).map(resourceRule),
    nonResourceRules: rules
      .filter(({ urls }) => urls.length > 0)
      .map(({ verbs, urls }) => ({ verbs, nonResourceURLs: urls })),
    incomplete: isNode,
    ...(all.length === 0 ? {} : { evaluationError: together(all) }),
  }
}

function resourceRule({ verbs, groups, resources, names }: PolicyRule): ResourceRule {
  return { verbs, apiGroups: groups, resources, ...(names.length === 0 ? {} : { resourceNames: names }) }
}
