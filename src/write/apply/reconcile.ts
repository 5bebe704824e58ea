/**
 * Field sets and a schema that has changed since they were written: what is atomic now is owned as a whole by each
 * owner of a part of it. (What was atomic once is taken as if it had never been.) Also which named fields a set implies.
 */

import { type FieldNode, FieldSet } from './fieldset.ts'
import { type FieldType, formsOf, leadingForm, type MapType } from './fieldtype.ts'
import type { Path, PathElement } from './pathelement.ts'

/** Sets that fit a type, because neither of them ever changes. */
const fitting = new WeakMap<FieldSet, FieldType>()

/** The given set itself where nothing has to change. */
export function reconcileFields(fields: FieldSet, type: FieldType): FieldSet {
  if (fitting.get(fields) === type) return fields
  const walk = new Walk()
  walk.type(fields, false, type)
  if (walk.wholes.length === 0) {
    fitting.set(fields, type)
    return fields
  }
  const changed = FieldSet.of(...walk.wholes)
  return fields.without(changed).union(changed)
}

/** Finds what is atomic now and is owned in parts. */
class Walk {
  readonly wholes: Path[] = []
  readonly #path: PathElement[] = []

  /** `whole`: the set has the value itself and nothing below it. */
  type(fields: FieldSet | undefined, whole: boolean, type: FieldType): void {
    switch (leadingForm(formsOf(type, undefined))) {
      case 'map': {
        const map = type.map!
        if (isFree(map)) return
        if (whole || !map.atomic) this.#below(fields, (step) => typeBelow(map, step))
        else if (fields !== undefined) this.wholes.push([...this.#path])
        return
      }
      case 'list': {
        const { atomic, element } = type.list!
        if (whole || !atomic) this.#below(fields, () => element)
        else this.wholes.push([...this.#path])
        return
      }
      case 'scalar':
    }
  }

  #below(fields: FieldSet | undefined, typeOf: (step: PathElement) => FieldType | undefined): void {
    if (fields === undefined) return
    for (const { element, member, children } of fields.nodes()) {
      const type = typeOf(element)
      if (type === undefined) continue
      this.#path.push(element)
      this.type(children, member && children === undefined, type)
      this.#path.pop()
    }
  }
}

function typeBelow({ fields, element }: MapType, step: PathElement): FieldType | undefined {
  return (step.kind === 'field' ? fields.get(step.name)?.type : undefined) ?? element
}

/** Of what is not declared at all nothing is known, so nothing can have changed. */
function isFree({ fields, element }: MapType): boolean {
  if (fields.size > 0 || element === undefined) return false
  return element.name === undefined ? element.scalar === 'untyped' : element.name === '__untyped_deduced_'
}

/** With `a.b.c` also `a.b` and `a`, as far as the steps are declared fields: those exist through what they hold. */
export function withNamedFields(fields: FieldSet, type: FieldType | undefined): FieldSet {
  const nodes: FieldNode[] = []
  for (const { element, member, children } of fields.nodes()) {
    const declared = element.kind === 'field' ? type?.map?.fields.get(element.name) : undefined
    if (children === undefined) {
      nodes.push({ element, member, children })
      continue
    }
    let inner: FieldType | undefined
    if (element.kind === 'field') inner = declared?.type ?? type?.map?.element
    else if (element.kind === 'key') inner = type?.list?.element
    nodes.push({ element, member: member || declared !== undefined, children: withNamedFields(children, inner) })
  }
  return FieldSet.from(nodes)
}
