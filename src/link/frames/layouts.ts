/**
 * What frames consist of: each layout is said once, and both written and read by it. A record is its fields in order. What
 * follows the last known field was added by a later release and is passed over; a field that a release adds has a value
 * that counts where an older side did not write it (L13).
 */
import { type ByteReader, type ByteWriter, LinkFault, textOf } from './bytes.ts'

export type Layout<Value> = {
  write(to: ByteWriter, value: Value): void
  read(from: ByteReader): Value
  /** Of a field that a later release added: what it is where it is not written. */
  readonly missing?: Value
}

export type ValueOf<L> = L extends Layout<infer Value> ? Value : never

export const count: Layout<number> = {
  write: (to, value) => to.number(value),
  read: (from) => from.number(),
}

export function upTo(max: number): Layout<number> {
  const within = (value: number) => {
    if (value > max) throw tooMany(value, max)
    return value
  }
  return { write: (to, value) => to.number(within(value)), read: (from) => within(from.number()) }
}

/** At most `max` bytes of UTF-8. */
export function text(max: number): Layout<string> {
  return {
    write: (to, value) => writeBytes(to, Buffer.from(value), max),
    read: (from) => textOf(from.bytes(max)),
  }
}

export function bytes(max: number): Layout<Buffer> {
  return {
    write: (to, value) => writeBytes(to, value, max),
    read: (from) => from.bytes(max),
  }
}

function writeBytes(to: ByteWriter, value: Buffer, max: number): void {
  if (value.length > max) throw tooMany(value.length, max)
  to.bytes(value)
}

/** One of these words, written as its place among them. Releases add words at the end; one that is not known is `other`. */
export function oneOf<const Word extends string>(words: readonly Word[], other: Word): Layout<Word> {
  return {
    write: (to, value) => to.number(words.indexOf(value)),
    read: (from) => words[from.number()] ?? other,
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the fields of a record are of any types, each of its own.
type FieldLayouts = { readonly [name: string]: Layout<any> }
type RecordOf<Of> = { readonly [Name in keyof Of]: ValueOf<Of[Name]> }

// biome-ignore lint/suspicious/noExplicitAny: as above.
type FieldLayout = readonly [name: string, layout: Layout<any>]

function isMissing([name, { missing }]: FieldLayout, value: { readonly [name: string]: unknown }): boolean {
  return missing !== undefined && value[name] === missing
}

export function record<const Of extends FieldLayouts>(fields: Of): Layout<RecordOf<Of>> {
  const entries = Object.entries(fields)
  return {
    write: (to, value) => {
      // What would be read all the same is not written, so that a field costs sides that do not use it nothing.
      let end = entries.length
      while (end > 0 && isMissing(entries[end - 1] as FieldLayout, value)) end--
      for (const [name, layout] of entries.slice(0, end)) layout.write(to, value[name])
    },
    read: (from) => {
      const value: Record<string, unknown> = {}
      for (const [name, layout] of entries) value[name] = layout.read(from)
      return value as RecordOf<Of>
    },
  }
}

/** A field that a later release added: `missing` is what an older one means, which does not write it. */
export function later<Value>(layout: Layout<Value>, missing: Value): Layout<Value> {
  return { write: layout.write, read: (from) => (from.isAtEnd ? missing : layout.read(from)), missing }
}

type ListLimits = {
  readonly entriesMax: number
  /** Of one entry. */
  readonly bytesMax: number
}

/** Each entry behind its length, so that a later release can add to it. */
export function list<Value>(of: Layout<Value>, { entriesMax, bytesMax }: ListLimits): Layout<readonly Value[]> {
  return {
    write: (to, values) => {
      if (values.length > entriesMax) throw tooMany(values.length, entriesMax)
      to.number(values.length)
      for (const value of values) to.sized(() => of.write(to, value))
    },
    read: (from) => {
      const length = from.number()
      if (length > entriesMax) throw tooMany(length, entriesMax)
      const values: Value[] = []
      // The count is believed one by one: a false one runs into the end.
      for (let at = 0; at < length; at++) values.push(of.read(from.part(bytesMax)))
      return values
    },
  }
}

/**
 * Texts, each shortened by what it begins with in common with the one before it: the names of a node's interests are much
 * alike. Only inside a list that is made for it, so that every list begins without one before.
 */
export function alike(max: number): Layout<string> {
  let before: Buffer = Buffer.alloc(0)
  return {
    write: (to, value) => {
      const own = Buffer.from(value)
      if (own.length > max) throw tooMany(own.length, max)
      let same = 0
      while (same < own.length && same < before.length && own[same] === before[same]) same++
      to.number(same)
      to.bytes(own.subarray(same))
      before = own
    },
    read: (from) => {
      const same = from.number()
      if (same > before.length) throw new LinkFault('a name has more in common than there was')
      const rest = from.bytes(max)
      if (same + rest.length > max) throw tooMany(same + rest.length, max)
      before = Buffer.concat([before.subarray(0, same), rest])
      return textOf(before)
    },
  }
}

/** A layout that remembers: made anew each time it is used. */
export function each<Value>(make: () => Layout<Value>): Layout<Value> {
  return { write: (to, value) => make().write(to, value), read: (from) => make().read(from) }
}

function tooMany(found: number, max: number): LinkFault {
  return new LinkFault(`${found} where at most ${max} are allowed`)
}
