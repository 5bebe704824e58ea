/**
 * Whether an object's labels meet a selector's requirements. A caller may write thousands of these, and they are tried on
 * each of thousands of objects: many are gathered by key first, so that an object costs a look at each of its labels.
 */
import { parseInt64 } from './json/gotext.ts'

/** `=`, `==` are `in` with one value, `!=` is `notin` with one: the wish is the same. */
export type LabelOperator = 'in' | 'notin' | 'exists' | 'absent' | 'gt' | 'lt'

/** `values` are sorted and distinct. */
export type LabelRequirement = {
  readonly key: string
  readonly operator: LabelOperator
  readonly values: readonly string[]
}

export type MatchedLabels =
  | {
      readonly size: number
      get(label: string): string | undefined
      has(label: string): boolean
      [Symbol.iterator](): Iterator<readonly [label: string, value: string]>
    }
  | undefined

type Test = (labels: MatchedLabels) => boolean

/** Up to so many requirements, or values of one, are quicker tried one after the other than looked up. */
export const fewTerms = 8

export function compiled(requirements: readonly LabelRequirement[]): Test {
  if (requirements.length > fewTerms) {
    // When the first object is tried: a selector may only be compared with others.
    let all: Test | undefined
    return (labels) => {
      all ??= gathered(requirements)
      return all(labels)
    }
  }
  const tests = requirements.map(test)
  const [first] = tests
  if (first === undefined) return () => true
  if (tests.length === 1) return first
  return (labels) => {
    for (const one of tests) if (!one(labels)) return false
    return true
  }
}

function test({ key, operator, values }: LabelRequirement): Test {
  const [only] = values
  switch (operator) {
    case 'in': {
      if (values.length === 1) return (labels) => labels?.get(key) === only
      const isIn = oneOf(values)
      return (labels) => {
        const value = labels?.get(key)
        return value !== undefined && isIn(value)
      }
    }
    case 'notin': {
      if (values.length === 1) return (labels) => labels?.get(key) !== only
      const isIn = oneOf(values)
      return (labels) => {
        const value = labels?.get(key)
        return value === undefined || !isIn(value)
      }
    }
    case 'exists':
      return (labels) => labels?.has(key) ?? false
    case 'absent':
      return (labels) => !(labels?.has(key) ?? false)
    case 'gt':
    case 'lt': {
      const bound = integer(only)
      return (labels) => {
        const value = integer(labels?.get(key))
        if (value === undefined || bound === undefined) return false
        return operator === 'gt' ? value > bound : value < bound
      }
    }
  }
}

function oneOf(values: readonly string[]): (value: string) => boolean {
  if (values.length <= fewTerms) return (value) => values.includes(value)
  const set = new Set(values)
  return (value) => set.has(value)
}

/** All that is asked of one label. */
type Wish = {
  /** An object without the label does not match. */
  needed: boolean
  unwanted: boolean
  allowed: ReadonlySet<string> | undefined
  refused: Set<string> | undefined
  above: bigint | undefined
  below: bigint | undefined
}

function gathered(requirements: readonly LabelRequirement[]): Test {
  const wishes = new Map<string, Wish>()
  for (const requirement of requirements) {
    const { key } = requirement
    let wish = wishes.get(key)
    if (wish === undefined) {
      wish = {
        needed: false,
        unwanted: false,
        allowed: undefined,
        refused: undefined,
        above: undefined,
        below: undefined,
      }
      wishes.set(key, wish)
    }
    take(wish, requirement)
  }
  let needed = 0
  for (const wish of wishes.values()) if (wish.needed) needed++
  return (labels) => {
    if (labels === undefined || labels.size < needed) return needed === 0
    let met = 0
    for (const [label, value] of labels) {
      const wish = wishes.get(label)
      if (wish === undefined) continue
      if (!allows(wish, value)) return false
      if (wish.needed) met++
    }
    return met === needed
  }
}

function take(wish: Wish, { operator, values }: LabelRequirement): void {
  if (operator === 'absent') wish.unwanted = true
  else if (operator === 'notin') {
    wish.refused ??= new Set()
    for (const value of values) wish.refused.add(value)
  } else {
    wish.needed = true
    if (operator === 'exists') return
    if (operator === 'in') {
      const { allowed } = wish
      wish.allowed = new Set(allowed === undefined ? values : values.filter((value) => allowed.has(value)))
      return
    }
    const bound = integer(values[0])
    if (bound === undefined) wish.unwanted = true
    else if (operator === 'gt') wish.above = wish.above === undefined || bound > wish.above ? bound : wish.above
    else wish.below = wish.below === undefined || bound < wish.below ? bound : wish.below
  }
}

function allows({ unwanted, allowed, refused, above, below }: Wish, value: string): boolean {
  if (unwanted || allowed?.has(value) === false || refused?.has(value) === true) return false
  if (above === undefined && below === undefined) return true
  const number = integer(value)
  if (number === undefined) return false
  return (above === undefined || number > above) && (below === undefined || number < below)
}

export function integer(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  const parsed = parseInt64(text)
  return 'value' in parsed ? parsed.value : undefined
}
