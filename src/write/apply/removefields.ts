/** An object without some of its fields. */

import type { Json, JsonObject } from '../../kube/json/json.ts'
import type { FieldSet } from './fieldset.ts'
import { type FieldType, formsOf, type ListType, leadingForm, type MapType, memberType } from './fieldtype.ts'
import { itemElement } from './listitem.ts'
import { fieldElement } from './pathelement.ts'

/** A container that loses its last part becomes null; it is gone only if it is in the set itself. */
export function removeFields(value: Json, fields: FieldSet, type: FieldType): Json {
  switch (leadingForm(formsOf(type, value))) {
    case 'map':
      return value instanceof Map ? removeMembers(value, fields, type.map!) : null
    case 'list':
      return Array.isArray(value) ? removeItems(value, fields, type.list!) : null
    case 'scalar':
      return value
  }
}

function removeMembers(map: JsonObject, fields: FieldSet, type: MapType): Json {
  if (type.atomic) return null
  const left: JsonObject = new Map()
  for (const [name, member] of map) {
    const declared = type.fields.get(name)
    const node = fields.node(declared?.element ?? fieldElement(name))
    if (node?.member === true) continue
    const below = node?.children
    left.set(name, below === undefined ? member : removeFields(member, below, declared?.type ?? memberType(type, name)))
  }
  return left.size === 0 ? null : left
}

function removeItems(list: readonly Json[], fields: FieldSet, type: ListType): Json {
  if (type.atomic) return null
  const left: Json[] = []
  for (const item of list) {
    const element = itemElement(type, item)
    const node = typeof element === 'string' ? undefined : fields.node(element)
    if (node?.member === true) continue
    left.push(node?.children === undefined ? item : removeFields(item, node.children, type.element))
  }
  return left.length === 0 ? null : left
}
