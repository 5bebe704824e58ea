/** What changed from one object to the next, as sets of fields. */

import { equalJson, type Json } from '../../kube/json/json.ts'
import { scalarFault } from './admit.ts'
import { below, type Fault, fault, faultsMax, TypeFault } from './faults.ts'
import type { FieldSet } from './fieldset.ts'
import { type FieldType, formsOf, type ListType, leadingForm, type MapType, memberType } from './fieldtype.ts'
import { itemElement } from './listitem.ts'
import { fieldElement, type PathElement } from './pathelement.ts'
import { PathWriter } from './pathwriter.ts'

/** No field is in more than one of them. */
export type FieldComparison = { readonly removed: FieldSet; readonly modified: FieldSet; readonly added: FieldSet }

/** Throws TypeFault where the objects are not of the type. */
export function compareValues(before: Json, after: Json, type: FieldType): FieldComparison {
  const walk = new Walk()
  walk.value(before, after, type)
  if (walk.faults.length > 0) throw new TypeFault(walk.faults)
  return { removed: walk.removed.set, modified: walk.modified.set, added: walk.added.set }
}

type Side = Json | undefined

class Walk {
  readonly removed = new PathWriter()
  readonly modified = new PathWriter()
  readonly added = new PathWriter()
  readonly faults: Fault[] = []
  /** The path to the values being compared. */
  readonly #path: PathElement[] = []

  value(before: Side, after: Side, type: FieldType): void {
    if (before === after) return
    const old = formsOf(type, before)
    const now = formsOf(type, after)
    if (after === undefined) this.#form(old, before, after, type)
    else {
      if (before !== undefined && old !== now) this.#form(old, before, after, type)
      this.#form(now, before, after, type)
    }
    if (before === undefined) this.added.insert(this.#path)
    else if (after === undefined) this.removed.insert(this.#path)
  }

  #leave(): void {
    this.#path.pop()
    const steps = this.#path.length
    this.removed.leave(steps)
    this.modified.leave(steps)
    this.added.leave(steps)
  }

  #form(forms: number, before: Side, after: Side, type: FieldType): void {
    switch (leadingForm(forms)) {
      case 'map':
        this.#maps(before, after, type.map!)
        return
      case 'list':
        this.#lists(before, after, type.list!)
        return
      case 'scalar': {
        const old = scalarFault(before, type.scalar!)
        const now = scalarFault(after, type.scalar!)
        if (old !== undefined && now !== undefined) {
          this.#fail(`lhs: ${old}`)
          this.#fail(`rhs: ${now}`)
        } else this.#whole(before, after)
      }
    }
  }

  #fail(message: string): void {
    if (this.faults.length >= faultsMax) return
    this.faults.push(...this.#path.reduceRight<readonly Fault[]>((faults, step) => below(step, faults), fault(message)))
  }

  #whole(before: Side, after: Side): void {
    if (before === undefined || after === undefined || equalJson(before, after)) return
    this.modified.insert(this.#path)
  }

  #maps(before: Side, after: Side, type: MapType): void {
    const left = before instanceof Map && before.size > 0 ? before : undefined
    const right = after instanceof Map && after.size > 0 ? after : undefined
    // Nothing on both sides: null, empty and absent are still not the same.
    if (type.atomic || (left === undefined && right === undefined)) {
      this.#whole(before, after)
      return
    }
    if (left !== undefined) {
      for (const [name, member] of left) this.#member(name, member, right?.get(name), type)
    }
    if (right !== undefined) {
      for (const [name, member] of right) {
        if (left?.has(name) !== true) this.#member(name, undefined, member, type)
      }
    }
  }

  #member(name: string, before: Side, after: Side, type: MapType): void {
    if (before === after) return
    const declared = type.fields.get(name)
    this.#path.push(declared?.element ?? fieldElement(name))
    this.value(before, after, declared?.type ?? memberType(type, name))
    this.#leave()
  }

  #lists(before: Side, after: Side, type: ListType): void {
    const left = Array.isArray(before) && before.length > 0 ? before : undefined
    const right = Array.isArray(after) && after.length > 0 ? after : undefined
    if (type.atomic || (left === undefined && right === undefined)) {
      this.#whole(before, after)
      return
    }
    const items = new Map<string, Items>()
    this.#gather(left ?? [], 'before', type, items)
    this.#gather(right ?? [], 'after', type, items)
    for (const item of items.values()) this.#items(item, type.element)
  }

  #gather(list: readonly Json[], side: 'before' | 'after', type: ListType, items: Map<string, Items>): void {
    for (let index = 0; index < list.length; index++) {
      const item = list[index]!
      const element = itemElement(type, item)
      if (typeof element === 'string') {
        this.#fail(`element ${index}: ${element}`)
        continue
      }
      let known = items.get(element.text)
      if (known === undefined) {
        known = { element, before: undefined, after: undefined, twice: undefined }
        items.set(element.text, known)
      }
      if (known[side] === undefined) known[side] = item
      else {
        known.twice ??= { before: [], after: [] }
        known.twice[side].push(item)
      }
    }
  }

  /** Items that stand more than once are one field, without any below. */
  #items({ element, before, after, twice }: Items, type: FieldType): void {
    this.#path.push(element)
    const wereMany = twice !== undefined && twice.before.length > 0
    const areMany = twice !== undefined && twice.after.length > 0
    if (wereMany && areMany) {
      if (!equalJson([before!, ...twice.before], [after!, ...twice.after])) this.modified.insert(this.#path)
    } else if (wereMany) {
      if (after !== undefined) this.value(undefined, after, type)
      this.removed.insert(this.#path)
    } else if (areMany) {
      if (before !== undefined) this.value(before, undefined, type)
      this.added.insert(this.#path)
    } else this.value(before, after, type)
    this.#leave()
  }
}

/** The first of an item on each side and, rarely, those after it: there may be as many items as a body has room for. */
type Items = {
  readonly element: PathElement
  before: Side
  after: Side
  twice: { readonly before: Json[]; readonly after: Json[] } | undefined
}
