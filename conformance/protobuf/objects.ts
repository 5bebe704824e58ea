/**
 * Objects of any built-in kind with as many of their fields as wanted, made from what is known of its message: so that every
 * field of every kind is seen at least once, also those no real object ever has together. A seed tells the values.
 */
import type { Field, Message } from '../../src/kube/protobuf/facts.ts'
import * as facts from '../../src/kube/protobuf/facts.ts'
import { Random } from '../apply/random.ts'

/** `full`: every field, of plain values. The others leave out some, and some of their values are at the edge of what fits. */
export type Manner = 'full' | 'some' | 'odd'

export type Made = { readonly [name: string]: unknown }

/** Messages inside messages of the same kind (schemas in schemas): deeper ones are left out. */
const sameDepthMax = 2
/** Objects of every field are some hundred kilobytes; some messages would be many more without a limit. */
const depthMax = 14

/** Of the server that stores the object: its own values would not be kept. */
const ownMetadata = new Set(['name', 'namespace', 'resourceVersion', 'generateName', 'selfLink', 'managedFields'])

export class Maker {
  readonly #random: Random
  readonly #manner: Manner

  constructor(seed: number, manner: Manner) {
    this.#random = new Random(seed)
    this.#manner = manner
  }

  /** An object of a kind, with the metadata given beside what is made up. */
  object(message: Message, type: { apiVersion: string; kind: string }, metadata: Made): Made {
    const made = this.#message(message, [])
    const invented = (made.metadata ?? {}) as Record<string, unknown>
    for (const name of ownMetadata) delete invented[name]
    return { apiVersion: type.apiVersion, kind: type.kind, ...made, metadata: { ...invented, ...metadata } }
  }

  #message(message: Message, outer: readonly Message[]): Record<string, unknown> {
    const made: Record<string, unknown> = {}
    const inside = [...outer, message]
    for (const field of message.fields) {
      if (!this.#wants(field, inside)) continue
      if (field.shape === facts.INLINE) Object.assign(made, this.#message(field.message, inside))
      else made[field.json] = this.#shaped(field, inside)
    }
    return made
  }

  #wants(field: Field, inside: readonly Message[]): boolean {
    if (field.kind >= facts.MESSAGE) {
      if (inside.length > depthMax) return false
      if (inside.filter((one) => one === field.message).length >= sameDepthMax) return false
      if (isSchema(field) && inside.filter(({ name }) => name === 'JSONSchemaProps').length >= sameDepthMax)
        return false
    }
    if (this.#manner === 'full') return true
    return this.#random.chance(inside.length > 4 ? 0.35 : 0.6)
  }

  #shaped(field: Field, inside: readonly Message[]): unknown {
    const one = () => this.#value(field, inside)
    if (field.shape === facts.MANY) {
      // A required list that is empty comes back as null from protobuf: its JSON would tell more than the message does.
      if (this.#manner === 'odd' && field.omitEmpty && this.#random.chance(0.1)) return []
      return Array.from({ length: field.kind < facts.MESSAGE ? 2 : 1 + (inside.length < 5 ? 1 : 0) }, one)
    }
    if (field.shape === facts.MAP) {
      if (this.#manner === 'odd' && field.omitEmpty && this.#random.chance(0.1)) return {}
      // Not in order: protobuf writes them sorted, and so does JSON.
      return Object.fromEntries(['b-key', 'a.key/x', 'c'].map((key) => [key, one()]))
    }
    return one()
  }

  #value(field: Field, inside: readonly Message[]): unknown {
    const odd = this.#manner === 'odd'
    const random = this.#random
    switch (field.kind) {
      case facts.STRING:
        return this.#text(field.json)
      case facts.BOOL:
        return this.#manner === 'full' || random.chance(0.7)
      case facts.INT32:
        return odd ? random.pick([0, 1, -1, 127, 128, 300, -300, 2_147_483_647, -2_147_483_648]) : 1 + random.below(100)
      case facts.INT64:
        return odd ? random.pick([0, -1, 128, 2 ** 40, -(2 ** 40), Number.MAX_SAFE_INTEGER]) : 1 + random.below(10_000)
      case facts.FLOAT64:
        return odd ? random.pick([0, 0.1, -2.5, 1e21, 1e-7, 123456789]) : 1.5
      case facts.BYTES:
        // Never empty: JSON does not tell no bytes from none at all.
        return Buffer.from(`bytes of ${odd ? this.#text(field.json) : field.json}`).toString('base64')
      case facts.TIME:
        return odd ? random.pick([null, '1970-01-01T00:00:00Z', '2031-02-03T04:05:06Z']) : '2026-02-03T04:05:06Z'
      case facts.MICRO_TIME:
        return odd ? random.pick([null, '2001-01-01T00:00:00.000000Z']) : '2026-02-03T04:05:06.789012Z'
      case facts.QUANTITY:
        return random.pick(odd ? oddQuantities : ['100m', '2', '64Mi', '1500M'])
      case facts.INT_OR_STRING:
        return random.pick(odd ? [0, -1, 65_535, '', '25%', 'ü'] : [8080, '25%', 'http'])
      case facts.RAW:
        return field.message.name === 'FieldsV1'
          ? { 'f:metadata': { 'f:labels': { 'f:x': {} } } }
          : { apiVersion: 'example.com/v1', kind: 'Raw', count: 3, list: [1, 'two', null, 1.5], nested: { deep: true } }
      case facts.STRINGS:
        return ['one', 'two']
      case facts.SCHEMA_OR_ARRAY:
        return random.chance(0.5) ? this.#schema(field, inside) : [this.#schema(field, inside)]
      case facts.SCHEMA_OR_BOOL:
        return random.chance(0.5) ? random.chance(0.5) : this.#schema(field, inside)
      case facts.SCHEMA_OR_STRINGS:
        return random.chance(0.5) ? ['a', 'b'] : this.#schema(field, inside)
      default:
        return this.#message(field.message, inside)
    }
  }

  #schema({ message }: Field, inside: readonly Message[]): unknown {
    const schema = message.fields.find(({ kind }) => kind === facts.MESSAGE)
    return schema === undefined ? {} : this.#message(schema.message, [...inside, message])
  }

  #text(name: string): string {
    if (this.#manner !== 'odd') return `${name}-${this.#random.below(10)}`
    return this.#random.pick([
      '',
      'plain',
      'ü€𝄞',
      '<&>\u2028\u2029',
      'line\nquote"back\\slash\ttab\u0001\u007f',
      'x'.repeat(127),
      'y'.repeat(128),
      'z'.repeat(20_000),
    ])
  }
}

const oddQuantities = ['0', '1', '-1', '1e3', '0.5', '1.5Gi', '100n', '1Ei', '12345678901234567890', '3u', '1E2', '0.1']

function isSchema({ kind }: Field): boolean {
  return kind === facts.SCHEMA_OR_ARRAY || kind === facts.SCHEMA_OR_BOOL || kind === facts.SCHEMA_OR_STRINGS
}
