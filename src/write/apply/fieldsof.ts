/** Which fields a value names: every leaf and every item of its lists and maps. */

import type { Json } from '../../kube/json/json.ts'
import type { FieldSet } from './fieldset.ts'
import { type FieldType, formsOf, type ListType, leadingForm, type MapType, memberType } from './fieldtype.ts'
import { itemElement } from './listitem.ts'
import { fieldElement, type PathElement } from './pathelement.ts'
import { PathWriter } from './pathwriter.ts'

export function fieldsOf(value: Json, type: FieldType): FieldSet {
  const walk = new Walk()
  walk.value(value, type)
  return walk.found.set
}

class Walk {
  readonly found = new PathWriter()
  /** The path to the value being looked at. */
  readonly #path: PathElement[] = []

  value(value: Json, type: FieldType): void {
    switch (leadingForm(formsOf(type, value))) {
      case 'map':
        if (type.map!.atomic) this.found.insert(this.#path)
        else if (value instanceof Map) this.#map(value, type.map!)
        return
      case 'list':
        if (type.list!.atomic) this.found.insert(this.#path)
        else if (Array.isArray(value)) this.#list(value, type.list!)
        return
      case 'scalar':
        this.found.insert(this.#path)
    }
  }

  #leave(): void {
    this.#path.pop()
    this.found.leave(this.#path.length)
  }

  #map(map: ReadonlyMap<string, Json>, type: MapType): void {
    for (const [name, member] of map) {
      const declared = type.fields.get(name)
      this.#path.push(declared?.element ?? fieldElement(name))
      this.value(member, declared?.type ?? memberType(type, name))
      // Members of a struct are owned through what they hold, keys of a map by themselves too.
      const hollow = member === null || (member instanceof Map && member.size === 0)
      if (hollow || declared === undefined) this.found.insert(this.#path)
      this.#leave()
    }
  }

  /** Items that stand twice are owned together, without what is in them. */
  #list(list: readonly Json[], type: ListType): void {
    const elements = list.map((item) => itemElement(type, item))
    const times = new Map<string, number>()
    for (const element of elements) {
      if (typeof element !== 'string') times.set(element.text, (times.get(element.text) ?? 0) + 1)
    }
    for (let index = 0; index < elements.length; index++) {
      const element = elements[index]!
      if (typeof element === 'string') continue
      this.#path.push(element)
      if (times.get(element.text) === 1) this.value(list[index]!, type.element)
      this.found.insert(this.#path)
      this.#leave()
    }
  }
}
