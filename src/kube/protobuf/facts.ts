/**
 * Which messages there are and what their fields are, from messages.txt (written by conformance/facts/protobuf.ts). The file
 * is read when protobuf is first asked for, and a line of it is taken apart when its message is first met.
 *
 * Its first lines name a group version and its kinds, each with the number of its message (`*`: kinds of every group
 * version). After an empty line come the messages, 0 first: a name (`!`: with JSON of its own making, `[`: a list of
 * strings) and its fields in the order of JSON, each `json:number:type` and, where it is not the JSON name with a capital,
 * `:Go name`. A type is `*` (a pointer), `[` (repeated) or `{` (a map by strings), then s(tring), b(ool), i(nt32), l (int64),
 * f(loat64), y (bytes) or the number of a message, then `~` (its members stand among those of the outer message), `?`
 * (left out of JSON when empty), `0` (left out when zero).
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** How a value is written in either form. */
export const STRING = 0
export const BOOL = 1
export const INT32 = 2
export const INT64 = 3
export const FLOAT64 = 4
export const BYTES = 5
/** From here on values are messages. */
export const MESSAGE = 6
export const TIME = 7
export const MICRO_TIME = 8
export const QUANTITY = 9
export const INT_OR_STRING = 10
/** JSON kept as bytes: RawExtension, FieldsV1, JSON. */
export const RAW = 11
/** A list of strings that is a message, so that there may be a map of them. */
export const STRINGS = 12
export const SCHEMA_OR_ARRAY = 13
export const SCHEMA_OR_BOOL = 14
export const SCHEMA_OR_STRINGS = 15

/** How often a value may be there. */
export const ONE = 0
export const POINTER = 1
export const MANY = 2
export const MAP = 3
/** A message whose members stand among those of the outer one in JSON. */
export const INLINE = 4

const scalars: Record<string, number> = { s: STRING, b: BOOL, i: INT32, l: INT64, f: FLOAT64, y: BYTES }
const owns: Record<string, number> = {
  '!Time': TIME,
  '!MicroTime': MICRO_TIME,
  '!Quantity': QUANTITY,
  '!IntOrString': INT_OR_STRING,
  '!RawExtension': RAW,
  '!FieldsV1': RAW,
  '!JSON': RAW,
  '!JSONSchemaPropsOrArray': SCHEMA_OR_ARRAY,
  '!JSONSchemaPropsOrBool': SCHEMA_OR_BOOL,
  '!JSONSchemaPropsOrStringArray': SCHEMA_OR_STRINGS,
}
const shapes: Record<string, number> = { '*': POINTER, '[': MANY, '{': MAP }

export class Field {
  readonly json: string
  /** `"json":` */
  readonly key: Buffer
  readonly goName: string
  readonly number: number
  readonly kind: number
  readonly shape: number
  readonly omitEmpty: boolean
  readonly omitZero: boolean
  /** Number and wire type as they are written. */
  readonly tag: number
  /** Where its value is noted in the frame of its message, in values. */
  readonly slot: number
  readonly #facts: Facts
  readonly #message: number
  #resolved: Message | undefined

  constructor(facts: Facts, text: string, slot: number) {
    const [json = '', number, type = '', goName] = text.split(':')
    const [, shape = '', letter = '', flags = ''] = /^([*[{]?)([a-z]|\d+)(.*)$/.exec(type) ?? []
    this.json = json
    this.key = Buffer.from(`"${json}":`)
    this.goName = goName ?? json.charAt(0).toUpperCase() + json.slice(1)
    this.number = Number(number)
    this.kind = scalars[letter] ?? facts.kindOf(Number(letter))
    this.shape = flags.includes('~') ? INLINE : (shapes[shape] ?? ONE)
    this.omitEmpty = flags.includes('?')
    this.omitZero = flags.includes('0')
    this.tag = this.number * 8 + wireType(this.kind)
    this.slot = slot
    this.#facts = facts
    this.#message = letter in scalars ? -1 : Number(letter)
  }

  /** Of a field whose value is a message. */
  get message(): Message {
    this.#resolved ??= this.#facts.message(this.#message)
    return this.#resolved
  }
}

/** What a member of a JSON object stands for, and where its value is noted. */
type Member = { readonly field: Field; readonly slot: number }

export class Message {
  /** As faults name it. */
  readonly name: string
  /** In the order of JSON. */
  readonly fields: readonly Field[]
  readonly byNumber: readonly Field[]
  readonly numbered: readonly (Field | undefined)[]
  /** How many values its frame holds, those of inlined messages included. */
  readonly slots: number
  /** What it looks like with nothing in it, once an encoder had to find out. */
  empty: Buffer | undefined
  emptyJson: Buffer | undefined
  readonly #members: readonly (Member | undefined)[]

  constructor(facts: Facts, line: string) {
    const [name = '', ...texts] = line.split(' ')
    const bare = name.replace(/^[![]/, '')
    this.name = bare === 'Time' || bare === 'MicroTime' ? 'Timestamp' : bare
    const fields: Field[] = []
    let slots = 0
    for (const text of texts) {
      const field = new Field(facts, text, slots)
      fields.push(field)
      slots += field.shape === INLINE ? field.message.slots : 1
    }
    this.fields = fields
    this.slots = slots
    this.byNumber = fields.toSorted((a, b) => a.number - b.number)
    const numbered = new Array<Field | undefined>((this.byNumber.at(-1)?.number ?? 0) + 1).fill(undefined)
    for (const field of fields) numbered[field.number] = field
    this.numbered = numbered
    this.#members = hashed(membersOf(fields, 0))
  }

  /** What the name between `from` and `to` means; `hash` is that of `hashOf`. */
  member(bytes: Buffer, from: number, to: number, hash: number): Member | undefined {
    const mask = this.#members.length - 1
    for (let i = hash & mask; ; i = (i + 1) & mask) {
      const member = this.#members[i]
      if (member === undefined || isNamed(member.field.key, bytes, from, to)) return member
    }
  }
}

/** One step of the hash by which members are found, for a scan that passes over the name anyway. */
export const hashStart = 7
export function hashStep(hash: number, byte: number): number {
  return (Math.imul(hash, 31) + byte) | 0
}

export function hashOf(name: Buffer): number {
  let hash = hashStart
  for (const byte of name) hash = hashStep(hash, byte)
  return hash
}

/** By group version and kind; undefined: it has no protobuf form. */
export function messageOf(apiVersion: string, kind: string): Message | undefined {
  loaded ??= new Facts(readFileSync(join(import.meta.dirname, 'messages.txt'), 'latin1'))
  return loaded.find(apiVersion, kind)
}

let loaded: Facts | undefined

/** A group version's kinds as the file has them, and those that were asked for. */
type Version = { readonly kinds: string; readonly found: Map<string, Message> }

class Facts {
  readonly #versions = new Map<string, Version>()
  /** The kinds of every group version. */
  #everywhere = ''
  readonly #lines: readonly string[]
  readonly #messages: (Message | undefined)[]

  constructor(text: string) {
    const [kinds = '', messages = ''] = text.split('\n\n')
    for (const line of kinds.split('\n')) {
      const space = line.indexOf(' ')
      const apiVersion = line.slice(0, space)
      if (apiVersion === '*') this.#everywhere = line.slice(space)
      else this.#versions.set(apiVersion, { kinds: line.slice(space), found: new Map() })
    }
    this.#lines = messages.trimEnd().split('\n')
    this.#messages = new Array(this.#lines.length).fill(undefined)
  }

  find(apiVersion: string, kind: string): Message | undefined {
    const version = this.#versions.get(apiVersion)
    const known = version?.found.get(kind)
    if (version === undefined || known !== undefined) return known
    const index = numberOf(version.kinds, kind) ?? numberOf(this.#everywhere, kind)
    if (index === undefined) return undefined
    const message = this.message(index)
    version.found.set(kind, message)
    return message
  }

  message(index: number): Message {
    const known = this.#messages[index]
    if (known !== undefined) return known
    const message = new Message(this, this.#lines[index] ?? '')
    this.#messages[index] = message
    return message
  }

  kindOf(index: number): number {
    const line = this.#lines[index] ?? ''
    if (line.startsWith('[')) return STRINGS
    return owns[line.split(' ', 1)[0] ?? ''] ?? MESSAGE
  }
}

function numberOf(kinds: string, kind: string): number | undefined {
  const wanted = ` ${kind}=`
  const at = /^\w+$/.test(kind) ? kinds.indexOf(wanted) : -1
  return at < 0 ? undefined : Number.parseInt(kinds.slice(at + wanted.length), 10)
}

function wireType(kind: number): number {
  if (kind === BOOL || kind === INT32 || kind === INT64) return 0
  return kind === FLOAT64 ? 1 : 2
}

function membersOf(fields: readonly Field[], start: number): Member[] {
  return fields.flatMap((field) => {
    const slot = start + field.slot
    return field.shape === INLINE ? membersOf(field.message.fields, slot) : [{ field, slot }]
  })
}

/** A table at most half full, so that a search ends at a gap soon. */
function hashed(members: readonly Member[]): (Member | undefined)[] {
  const size = 2 << Math.ceil(Math.log2(members.length + 1))
  const table = new Array<Member | undefined>(size).fill(undefined)
  for (const member of members) {
    let i = hashOf(Buffer.from(member.field.json)) & (size - 1)
    while (table[i] !== undefined) i = (i + 1) & (size - 1)
    table[i] = member
  }
  return table
}

/** The name stands between quotes, and a colon after it. */
function isNamed(key: Buffer, bytes: Buffer, from: number, to: number): boolean {
  if (to - from !== key.length - 3) return false
  for (let i = from, k = 1; i < to; i++, k++) if (bytes[i] !== key[k]) return false
  return true
}
