/**
 * Which watchers an event concerns, found by index: a watcher stands under its exact key, one of its equality terms, its
 * namespace, or among the watchers that hear everything. An event's cost grows with its receivers, not with all watchers.
 */
import type { FieldPlan } from '../kube/object.ts'
import type { Event } from './event.ts'
import { type Filter, termReader } from './filter.ts'
import type { Item } from './item.ts'

export interface Receiver {
  readonly filter: Filter
  receive(event: Event): void
}

type Group<R> = { readonly read: (item: Item) => string | undefined; readonly byValue: Map<string, Set<R>> }

export class Dispatch<R extends Receiver> {
  readonly #plan: FieldPlan
  readonly #all = new Set<R>()
  /** By left side: `k` the key, `n` the namespace, or a term's. */
  readonly #groups = new Map<string, Group<R>>()
  #size = 0

  constructor(plan: FieldPlan) {
    this.#plan = plan
  }

  get size(): number {
    return this.#size
  }

  add(receiver: R): void {
    this.#size++
    const place = placeOf(receiver.filter)
    if (place === undefined) {
      this.#all.add(receiver)
      return
    }
    let group = this.#groups.get(place.on)
    if (group === undefined) {
      group = { read: this.#reader(place.on), byValue: new Map() }
      this.#groups.set(place.on, group)
    }
    const receivers = group.byValue.get(place.value)
    if (receivers === undefined) group.byValue.set(place.value, new Set([receiver]))
    else receivers.add(receiver)
  }

  delete(receiver: R): void {
    const place = placeOf(receiver.filter)
    if (place === undefined) {
      if (this.#all.delete(receiver)) this.#size--
      return
    }
    const group = this.#groups.get(place.on)
    const receivers = group?.byValue.get(place.value)
    if (group === undefined || receivers === undefined) return
    if (receivers.delete(receiver)) this.#size--
    if (receivers.size === 0) group.byValue.delete(place.value)
    if (group.byValue.size === 0) this.#groups.delete(place.on)
  }

  send(event: Event): void {
    for (const receiver of this.#all) receiver.receive(event)
    for (const [on, group] of this.#groups) {
      // It may have had any label and any field: every watcher that asks for one may have had it.
      if (event.previous?.isDamaged === true && on.includes(':')) {
        for (const receivers of group.byValue.values()) this.#sendTo(receivers, event)
        continue
      }
      const before = event.previous && group.read(event.previous)
      const after = event.item && group.read(event.item)
      if (after !== undefined) this.#sendTo(group.byValue.get(after), event)
      // A watcher that only knew the old value hears that the object left.
      if (before !== undefined && before !== after) this.#sendTo(group.byValue.get(before), event)
    }
  }

  #sendTo(receivers: ReadonlySet<R> | undefined, event: Event): void {
    if (receivers === undefined) return
    for (const receiver of receivers) receiver.receive(event)
  }

  #reader(on: string): (item: Item) => string | undefined {
    if (on === 'k') return (item) => item.key
    if (on === 'n') return (item) => item.namespace
    return termReader(on, this.#plan)
  }
}

function placeOf(filter: Filter): { on: string; value: string } | undefined {
  if (filter.key !== undefined) return { on: 'k', value: filter.key }
  // A field default ('' standing for an absent value) is not found by looking values up.
  const term = filter.terms.find((one) => one.value !== '')
  if (term !== undefined) return term
  if (filter.namespace !== undefined) return { on: 'n', value: filter.namespace }
  return undefined
}
