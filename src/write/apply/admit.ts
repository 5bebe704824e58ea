/** Whether a value is one its type admits: the check an applied configuration has to pass before it is merged. */

import { goType, goValue } from '../../kube/json/goformat.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { isNumber, type Json } from '../../kube/json/json.ts'
import { below, type Fault, fault, faultsMax, TypeFault } from './faults.ts'
import {
  deducedType,
  type FieldType,
  formsOf,
  type ListType,
  leadingForm,
  type MapType,
  type Scalar,
} from './fieldtype.ts'
import { itemElement, itemFault } from './listitem.ts'
import { fieldElement, type PathElement, printPath } from './pathelement.ts'

/** An applied configuration. Throws TypeFault. */
export function admit(value: Json, type: FieldType): void {
  refuse(check(value, type, false))
}

/** A stored object: items of a set or map may stand twice in it, and a later server may have left unknown fields. */
export function admitStored(value: Json, type: FieldType): void {
  refuse(check(value, type, true))
}

function refuse(faults: readonly Fault[]): void {
  if (faults.length > 0) throw new TypeFault(faults)
}

function check(value: Json, type: FieldType, stored: boolean): readonly Fault[] {
  switch (leadingForm(formsOf(type, value))) {
    case 'map':
      return checkMap(value, type.map!, stored)
    case 'scalar':
      return checkScalar(value, type.scalar!)
    case 'list':
      return checkList(value, type.list!, stored)
  }
}

/** What most values have: nothing is made for them. */
const none: readonly Fault[] = []

function checkMap(value: Json, map: MapType, stored: boolean): readonly Fault[] {
  if (value === null) return none
  if (!(value instanceof Map)) return fault(`expected map, got ${shown(value)}`)
  let faults = none
  for (const [name, member] of value) {
    const type = map.fields.get(name)?.type ?? map.element ?? (stored ? deducedType : undefined)
    const inner = type === undefined ? fault('field not declared in schema') : check(member, type, stored)
    if (inner.length > 0) faults = [...faults, ...below(fieldElement(name), inner)]
    if (type === undefined || faults.length >= faultsMax) break
  }
  return faults
}

function checkList(value: Json, list: ListType, stored: boolean): readonly Fault[] {
  if (value === null) return none
  if (!Array.isArray(value)) return fault(`expected list, got ${shown(value)}`)
  let faults = none
  const seen = list.atomic || stored ? undefined : new Set<string>()
  for (let index = 0; index < value.length; index++) {
    const item = value[index]!
    const wrong = list.atomic ? undefined : itemFault(list, item)
    if (wrong !== undefined) return [...faults, ...fault(`element ${index}: ${wrong}`)]
    if (seen !== undefined) {
      const element = elementAt(list, item, index)
      if (seen.has(element.text)) faults = [...faults, ...fault(`duplicate entries for key ${printPath([element])}`)]
      seen.add(element.text)
    }
    const inner = check(item, list.element, stored)
    if (inner.length > 0) faults = [...faults, ...below(elementAt(list, item, index), inner)]
    if (faults.length >= faultsMax) break
  }
  return faults
}

function elementAt(list: ListType, item: Json, index: number): PathElement {
  const element = list.atomic ? '' : itemElement(list, item)
  return typeof element === 'string' ? { kind: 'index', text: `i:${index}`, index } : element
}

function checkScalar(value: Json, scalar: Scalar): readonly Fault[] {
  const message = scalarFault(value, scalar)
  return message === undefined ? none : fault(message)
}

/** What is wrong with a scalar of this type. */
export function scalarFault(value: Json | undefined, scalar: Scalar): string | undefined {
  if (value === null || value === undefined) return undefined
  switch (scalar) {
    case 'numeric':
      return isNumber(value) ? undefined : `expected numeric (int or float), got ${goType(value)}`
    case 'string':
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${literal(value)}}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${shown(value)}`
    case 'untyped':
      return typeof value !== 'object' || isNumber(value) ? undefined : `expected any scalar, got ${shown(value)}`
  }
}

/** What `%v` makes of the library's wrapper around a value. */
function shown(value: Json): string {
  return `&{${goValue(value)}}`
}

/** What `%#v` makes of a value: a literal of Go. */
function literal(value: Json): string {
  if (value === null) return 'interface {}(nil)'
  if (typeof value === 'string') return quoted(value)
  if (value instanceof Map) {
    return `${goType(value)}{${[...value].map(([key, member]) => `${quoted(key)}:${literal(member)}`).join(', ')}}`
  }
  if (Array.isArray(value)) return `${goType(value)}{${value.map(literal).join(', ')}}`
  return goValue(value)
}
