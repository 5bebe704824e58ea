/** The way through a spec, whatever stands in it: what is wrong is gathered with its place. */
import { patternFault } from './patterns.ts'

export type SpecTree = Readonly<Record<string, unknown>>

export function isTree(value: unknown): value is SpecTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asTree(value: unknown): SpecTree {
  return isTree(value) ? value : {}
}

export class SpecReading {
  readonly faults: string[] = []

  fault(place: string, what: string): undefined {
    this.faults.push(`spec.${place} ${what}`)
    return undefined
  }

  isTrue(value: unknown, place: string): boolean {
    if (value !== undefined && typeof value !== 'boolean') this.fault(place, 'is neither true nor false')
    return value === true
  }

  /** Entries that are lists of fields; what is none is left out. */
  entries(value: unknown, place: string): (readonly [at: number, entry: SpecTree])[] {
    if (value === undefined) return []
    if (!Array.isArray(value)) {
      this.fault(place, 'is no list')
      return []
    }
    return value.flatMap((entry: unknown, at): (readonly [number, SpecTree])[] => {
      if (isTree(entry)) return [[at, entry]]
      this.fault(`${place}[${at}]`, 'has no fields')
      return []
    })
  }

  /** Undefined where there is none. What is no name is left out. */
  patterns(value: unknown, place: string, may: 'end with a star' | 'be a star' = 'end with a star') {
    if (value === undefined) return undefined
    if (!Array.isArray(value) || value.length === 0) return this.fault(place, 'is no list of names, or an empty one')
    return value.filter((one: unknown, at): one is string => {
      const wrong = typeof one !== 'string' ? 'is no text' : may === 'be a star' ? wordFault(one) : patternFault(one)
      if (wrong !== undefined) this.fault(`${place}[${at}]`, wrong)
      return wrong === undefined
    })
  }
}

/** Of a group or a resource; the group of the core has no name. */
function wordFault(word: string): string | undefined {
  if (word !== '*' && word.includes('*')) return 'may be "*", but not have it among others'
  return word.includes('/') ? 'names a subresource, which nobody mirrors' : undefined
}
