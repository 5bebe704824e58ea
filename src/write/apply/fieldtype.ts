/**
 * What ownership and merging need to know of a value's type: whether it is a scalar, a list or a map (an undeclared one
 * may be any of them), and whether its parts are owned one by one or only together.
 */

import type { Json } from '../../kube/json/json.ts'
import type { PathElement } from './pathelement.ts'

export type Scalar = 'numeric' | 'string' | 'boolean' | 'untyped'

/** Types refer to each other in circles and are shared; one that is complete is never changed. */
export type FieldType = {
  /** The component it was declared as; what is declared in place has none. */
  readonly name?: string
  readonly scalar?: Scalar
  readonly list?: ListType
  readonly map?: MapType
}

export type ListType = {
  readonly element: FieldType
  /** Owned as a whole. */
  readonly atomic: boolean
  /** What identifies an item of a list that is not atomic; without keys it is a set of scalars. */
  readonly keys: readonly string[]
  /** The same in the order in which they are printed, and the part of the text that each begins. */
  readonly sortedKeys: readonly string[]
  readonly keyHeads: readonly string[]
}

export type MapType = {
  readonly fields: ReadonlyMap<string, MemberType>
  /** The type of members that are not declared; undefined: there are none. */
  readonly element: FieldType | undefined
  /** Owned as a whole. */
  readonly atomic: boolean
}

export type MemberType = {
  readonly type: FieldType
  readonly element: PathElement
  readonly default: Json | undefined
}

type Open<T> = { -readonly [key in keyof T]: T[key] }

/** What no schema declares, below an undeclared list: whatever it is, it is owned as a whole. */
const untyped: Open<FieldType> = { name: '__untyped_atomic_', scalar: 'untyped' }
untyped.list = { element: untyped, atomic: true, keys: [], sortedKeys: [], keyHeads: [] }
untyped.map = { fields: new Map(), element: untyped, atomic: true }

/** What no schema declares: members of objects are owned one by one, lists as a whole. */
const deduced: Open<FieldType> = { name: '__untyped_deduced_', scalar: 'untyped', list: untyped.list }
deduced.map = { fields: new Map(), element: deduced, atomic: false }

export const untypedType: FieldType = untyped
export const deducedType: FieldType = deduced

const SCALAR = 1
const LIST = 2
const MAP = 4

/** Which of its forms a type has for this value: the value's own if it has that one, otherwise all it has. */
export function formsOf({ scalar, list, map }: FieldType, value: Json | undefined): number {
  if (value !== undefined && value !== null) {
    if (value instanceof Map) {
      if (map !== undefined) return MAP
    } else if (Array.isArray(value)) {
      if (list !== undefined) return LIST
    } else if (scalar !== undefined) return SCALAR
  }
  return (scalar === undefined ? 0 : SCALAR) | (list === undefined ? 0 : LIST) | (map === undefined ? 0 : MAP)
}

/** Which one of the forms a value is treated as: it is a map if it may be one, then a scalar, then a list. */
export function leadingForm(forms: number): 'scalar' | 'list' | 'map' {
  if ((forms & MAP) !== 0) return 'map'
  return (forms & SCALAR) !== 0 ? 'scalar' : 'list'
}

/** A declared member's own type, the common one, or for what an older or newer server knew, anything. */
export function memberType({ fields, element }: MapType, name: string): FieldType {
  return fields.get(name)?.type ?? element ?? deducedType
}
