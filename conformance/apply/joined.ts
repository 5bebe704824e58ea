/** Two bodies made one. */
import type { Fields } from './scenario.ts'

/** Objects are joined, lists of named elements too; anything else is the later one's. */
export function deepMerge(left: unknown, right: unknown): unknown {
  if (Array.isArray(left) && Array.isArray(right) && isNamed(left) && isNamed(right)) {
    const joined = left.map((element) => {
      const same = right.find(({ name }) => name === element.name)
      return same === undefined ? element : deepMerge(element, same)
    })
    return [...joined, ...right.filter(({ name }) => !left.some((element) => element.name === name))]
  }
  if (!isFields(left) || !isFields(right)) return right
  const joined: Record<string, unknown> = { ...left }
  for (const [key, value] of Object.entries(right)) joined[key] = key in left ? deepMerge(left[key], value) : value
  return joined
}

type Named = Fields & { readonly name: string }

function isNamed(list: readonly unknown[]): list is readonly Named[] {
  return list.every((element) => isFields(element) && typeof element.name === 'string')
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
