/**
 * Items in another form than their JSON: made when it is first asked for and kept for the next reader. All forms of a
 * process share one limit, and those that were not asked for lately go first. Items have no field for it, so that where
 * only JSON is asked for nothing is paid.
 */
import type { Item } from './item.ts'

/** How one form is made of an item; each maker has forms of its own. */
export type Maker = (item: Item) => Buffer

/** What a kept form weighs besides its bytes, measured: its buffer, its entry, its places in table, registry and ring. */
const entryBytes = 512

type CachedForm = {
  readonly maker: Maker
  /** undefined once it was forgotten. */
  bytes: Buffer | undefined
  /** Asked for since the hand last came by. */
  used: boolean
  /** Where it stands in the ring. */
  at: number
  /** The same item's form by another maker: two versions of a resource share their items. */
  next: CachedForm | undefined
}

export class Forms {
  readonly #bytesMax: number
  readonly #entries = new WeakMap<Item, CachedForm>()
  /** Forms of items that are gone are forgotten with them, or they would fill the room. */
  readonly #gone = new FinalizationRegistry((entry: CachedForm) => {
    if (entry.bytes !== undefined) this.#forget(entry)
  })
  readonly #ring: CachedForm[] = []
  #hand = 0
  #bytes = 0

  constructor({ bytesMax }: { readonly bytesMax: number }) {
    this.#bytesMax = bytesMax
  }

  /** What all kept forms weigh. */
  get bytes(): number {
    return this.#bytes
  }

  get(item: Item, maker: Maker): Buffer {
    return this.peek(item, maker) ?? this.#keep(item, maker, maker(item))
  }

  /** The form if it is there already. */
  peek(item: Item, maker: Maker): Buffer | undefined {
    for (let entry = this.#entries.get(item); entry !== undefined; entry = entry.next) {
      if (entry.maker !== maker || entry.bytes === undefined) continue
      entry.used = true
      return entry.bytes
    }
    return undefined
  }

  #keep(item: Item, maker: Maker, bytes: Buffer): Buffer {
    if (bytes.length + entryBytes > this.#bytesMax) return bytes
    const entry: CachedForm = { maker, bytes, used: false, at: this.#ring.length, next: this.#othersOf(item) }
    this.#entries.set(item, entry)
    this.#gone.register(item, entry)
    this.#ring.push(entry)
    this.#bytes += bytes.length + entryBytes
    while (this.#bytes > this.#bytesMax) this.#sweep()
    return bytes
  }

  /** The item's other forms, without those that were forgotten meanwhile. */
  #othersOf(item: Item): CachedForm | undefined {
    let others: CachedForm | undefined
    let next: CachedForm | undefined
    for (let entry = this.#entries.get(item); entry !== undefined; entry = next) {
      next = entry.next
      if (entry.bytes === undefined) continue
      entry.next = others
      others = entry
    }
    return others
  }

  /** One step of the hand: what was asked for since the last round stays for another. */
  #sweep(): void {
    if (this.#hand >= this.#ring.length) this.#hand = 0
    const entry = this.#ring[this.#hand] as CachedForm
    if (entry.used) entry.used = false
    else this.#forget(entry)
    this.#hand++
  }

  #forget(entry: CachedForm): void {
    this.#bytes -= (entry.bytes as Buffer).length + entryBytes
    entry.bytes = undefined
    const last = this.#ring.pop() as CachedForm
    if (last === entry) return
    this.#ring[entry.at] = last
    last.at = entry.at
  }
}

/**
 * The messages of ten thousand pods of 5 KB, whose JSON weighs as much again, and of what is watched beside them: more than
 * a node and its operators read. Beyond that they are made anew.
 */
const formBytesMax = 64 * 1024 * 1024

/** Those of the whole process, whatever it serves. */
export const forms = new Forms({ bytesMax: formBytesMax })
