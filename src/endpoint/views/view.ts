/**
 * What a class of callers sees of one resource otherwise than as it is: a pure function of an object, to other bytes of the
 * same object or to nothing. It stands between the copy and selectors: an event and a list are seen first and selected then,
 * so that nothing is selected by what its caller does not see. A caller of no class meets none of this: plain bytes cost
 * what they did.
 */
import type { Form } from '../../cache/event.ts'
import type { Filter } from '../../cache/filter.ts'
import { type Item, makeItem } from '../../cache/item.ts'
import { noFields } from '../../kube/object.ts'
import type { Scope } from '../../kube/scope.ts'

/** How one resource is seen. */
export type Rewriting = {
  /** Whether it is about any object of a namespace ('' for all of them), or of that name (undefined for any). */
  concerns(namespace: string, name: string | undefined): boolean
  /** Other bytes in the form of list items, the same where nothing is to be changed, undefined for what is hidden. */
  see(item: Item): Buffer | undefined
}

export class ClassView {
  readonly #sight: Rewriting
  /** Each version of an object is made once, and the frames of it are shared by all watches of the class. */
  readonly #seen = new WeakMap<Item, Item | undefined>()
  readonly #forms = new WeakMap<Form, Form>()

  constructor(sight: Rewriting) {
    this.#sight = sight
  }

  concerns({ namespace, fields }: Pick<Scope, 'namespace' | 'fields'>): boolean {
    return this.#sight.concerns(namespace, fields.required('metadata.name'))
  }

  /** undefined: hidden. */
  see(item: Item): Item | undefined {
    if (item.isDamaged || !this.#sight.concerns(item.namespace, item.name)) return item
    if (this.#seen.has(item)) return this.#seen.get(item)
    const bytes = this.#sight.see(item)
    // What is seen otherwise has no selectable fields but its name; those of others would be read by the plan of their cache.
    const seen = bytes === undefined || bytes === item.bytes ? bytes && item : makeItem(bytes, item.version, noFields)
    this.#seen.set(item, seen)
    return seen
  }

  /** Without terms: an index knows objects as they are. */
  filter(filter: Filter): Filter {
    const matches = (item: Item) => {
      const seen = this.see(item)
      return seen !== undefined && filter.matches(seen)
    }
    return { ...filter, terms: [], selects: true, matches }
  }

  /** One for each form, as long as that lives: by it events know which frames they have made already. */
  form(form: Form): Form {
    let seen = this.#forms.get(form)
    if (seen === undefined) {
      seen = new SeenForm(form, this)
      this.#forms.set(form, seen)
    }
    return seen
  }
}

/** Only what a filter of the view lets through comes here. */
class SeenForm implements Form {
  readonly #form: Form
  readonly #view: ClassView

  constructor(form: Form, view: ClassView) {
    this.#form = form
    this.#view = view
  }

  get isLaborious(): boolean {
    return this.#form.isLaborious === true
  }

  frame(...[type, item]: Parameters<Form['frame']>): Buffer {
    return this.#form.frame(type, this.#view.see(item) ?? item)
  }

  bookmark(...told: Parameters<Form['bookmark']>): Buffer {
    return this.#form.bookmark(...told)
  }

  dropped(): void {
    this.#form.dropped?.()
  }
}
