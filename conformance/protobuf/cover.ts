/** Which fields of which messages were seen, and which were not: a proof of every field says what it did not look at. */
import type { Field, Message } from '../../src/kube/protobuf/facts.ts'
import * as facts from '../../src/kube/protobuf/facts.ts'

export class Coverage {
  readonly #seen = new Map<Message, Set<string>>()

  /** Every field that this object, as JSON, has; of empty ones, too. */
  see(message: Message, object: unknown): void {
    if (typeof object !== 'object' || object === null) return
    const members = object as Record<string, unknown>
    for (const field of message.fields) {
      if (field.shape === facts.INLINE) this.see(field.message, members)
      else if (field.json in members) {
        this.#of(message).add(field.json)
        this.#inside(field, members[field.json])
      }
    }
  }

  /** Of these messages and all that they contain: how many fields there are, and those that nobody saw. */
  report(messages: readonly Message[]): { fields: number; messages: number; unseen: string[] } {
    const all = new Set<Message>()
    const add = (message: Message) => {
      if (all.has(message)) return
      all.add(message)
      for (const field of message.fields) if (field.kind >= facts.MESSAGE && isWalked(field)) add(field.message)
    }
    for (const message of messages) add(message)
    const unseen: string[] = []
    let fields = 0
    for (const message of all) {
      for (const field of message.fields) {
        if (field.shape === facts.INLINE) continue
        fields++
        if (!this.#of(message).has(field.json)) unseen.push(`${message.name}.${field.json}`)
      }
    }
    return { fields, messages: all.size, unseen }
  }

  #of(message: Message): Set<string> {
    const known = this.#seen.get(message) ?? new Set<string>()
    this.#seen.set(message, known)
    return known
  }

  #inside(field: Field, value: unknown): void {
    if (!isWalked(field)) return
    const values =
      field.shape === facts.MANY
        ? (value as unknown[] | null)
        : field.shape === facts.MAP
          ? Object.values((value ?? {}) as object)
          : [value]
    for (const one of values ?? []) this.see(field.message, one)
  }
}

/** Messages with JSON of their own making have no members. */
function isWalked({ kind, shape }: Field): boolean {
  return kind === facts.MESSAGE || shape === facts.INLINE
}
