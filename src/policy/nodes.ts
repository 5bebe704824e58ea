/**
 * Which edges a policy is for: by the names of their nodes, by labels of their Nodes, or both, which have to fit then. By labels
 * only those count that a kubelet cannot give its own Node: a thief of an edge could otherwise choose its policies.
 */
import type { LabelRequirement, MatchedLabels } from '../kube/labelmatch.ts'
import { labelKeyFaults, labelValueFaults } from '../kube/labels.ts'
import { LabelSelector } from '../kube/selector.ts'
import { matches } from './patterns.ts'
import { isTree, type SpecReading } from './specreading.ts'

/** `unreadable`: it may be meant for any. Without names and selector it is for all. */
export type NodeChoice = {
  readonly names: readonly string[] | undefined
  readonly selector: LabelSelector | undefined
  readonly isUnreadable: boolean
}

/** `labels`: those of its Node; `unknown` where there is no such Node, or Nodes could not be read. */
export type PolicedNode = { readonly name: string; readonly labels: MatchedLabels | 'unknown' }

/** `perhaps`: what it forbids counts, what it allows does not. */
export function concerns({ names, selector, isUnreadable }: NodeChoice, node: PolicedNode): 'yes' | 'no' | 'perhaps' {
  if (isUnreadable) return 'perhaps'
  if (names !== undefined && !names.some((pattern) => matches(pattern, node.name))) return 'no'
  if (selector === undefined) return 'yes'
  if (node.labels === 'unknown') return 'perhaps'
  return selector.matches(node.labels) ? 'yes' : 'no'
}

export function readNodes(value: unknown, reading: SpecReading): NodeChoice {
  const before = reading.faults.length
  if (value !== undefined && !isTree(value)) reading.fault('nodes', 'has no fields')
  const { names, selector } = isTree(value) ? value : {}
  // What is left of a misspelled field must not mean every edge.
  if (isTree(value) && names === undefined && selector === undefined)
    reading.fault('nodes', 'has neither names nor selector: leave it out for every edge')
  const read = {
    names: reading.patterns(names, 'nodes.names'),
    selector: selector === undefined ? undefined : readSelector(selector, reading),
  }
  return { ...read, isUnreadable: reading.faults.length > before }
}

const operators = { In: 'in', NotIn: 'notin', Exists: 'exists', DoesNotExist: 'absent' } as const

function readSelector(value: unknown, reading: SpecReading): LabelSelector | undefined {
  const place = 'nodes.selector'
  if (!isTree(value)) return reading.fault(place, 'has no fields')
  const { matchLabels = {}, matchExpressions } = value
  if (!isTree(matchLabels)) return reading.fault(`${place}.matchLabels`, 'has no labels')
  const equal = Object.entries(matchLabels).map(([key, label]): LabelRequirement | undefined => {
    if (typeof label !== 'string') return reading.fault(`${place}.matchLabels.${key}`, 'is no text')
    return { key, operator: 'in', values: [label] }
  })
  const others = reading.entries(matchExpressions, `${place}.matchExpressions`).map(([at, expression]) => {
    const { key, operator, values = [] } = expression
    const here = `${place}.matchExpressions[${at}]`
    if (typeof key !== 'string') return reading.fault(`${here}.key`, 'is no text')
    if (typeof operator !== 'string' || !Object.hasOwn(operators, operator))
      return reading.fault(`${here}.operator`, 'is none of In, NotIn, Exists, DoesNotExist')
    if (!Array.isArray(values) || !values.every((one) => typeof one === 'string'))
      return reading.fault(`${here}.values`, 'is no list of texts')
    const isSet = operator === 'In' || operator === 'NotIn'
    if (isSet !== values.length > 0) return reading.fault(`${here}.values`, `does not go with ${operator}`)
    const meant = operators[operator as keyof typeof operators]
    return { key, operator: meant, values: [...new Set(values as string[])].sort() }
  })
  const requirements = [...equal, ...others].filter((one) => one !== undefined)
  for (const { key, values } of requirements) {
    const wrong = [...labelKeyFaults(key), ...values.flatMap(labelValueFaults)][0]
    if (wrong !== undefined) reading.fault(`${place}: ${key}`, wrong)
    else if (!isKept(key)) reading.fault(`${place}: ${key}`, ownLabel)
  }
  return new LabelSelector(requirements)
}

/** NodeRestriction lets no kubelet set these on its own Node. */
const kept = ['node-restriction.kubernetes.io/', 'node-role.kubernetes.io/']

function isKept(key: string): boolean {
  return kept.some((prefix) => key.startsWith(prefix))
}

const ownLabel =
  'is a label that a node may give itself: use one of node-restriction.kubernetes.io/ or node-role.kubernetes.io/, which it may not'
