/**
 * JSON that keeps what JavaScript's own would lose: the order of keys (number-like ones too), the spelling of numbers
 * (int64 beyond 2^53, 1.0), and which keys stood twice. Used where an object must be changed; reading paths move bytes.
 */

import { Spelled, sameNumber } from './number.ts'
import { type Json, type JsonObject, JsonReader } from './reader.ts'

export { Spelled } from './number.ts'
export { type Json, JsonError, type JsonObject } from './reader.ts'

export type ParseOptions = {
  /** Called for every repeated key with its path, like `spec.containers[0].image`; the last value wins. */
  readonly duplicates?: (path: string) => void
}

/** Throws JsonError in the words of Go's encoding/json, which clients of kube-apiserver know. */
export function parseJson(source: Buffer | string, options: ParseOptions = {}): Json {
  return new JsonReader(typeof source === 'string' ? source : source.toString('utf8'), options.duplicates).document()
}

/** Compact, keys in their order, strings escaped as Go's encoding/json does, so that bytes equal kube-apiserver's. */
export function printJson(value: Json): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') return String(value)
  if (value === null) return 'null'
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (value instanceof Map) {
    let out = '{'
    for (const [key, member] of value) {
      if (out !== '{') out += ','
      out += `${quote(key)}:${printJson(member)}`
    }
    return `${out}}`
  }
  if (value instanceof Spelled) return value.source
  let out = '['
  for (let index = 0; index < value.length; index++) {
    if (index > 0) out += ','
    out += printJson(value[index]!)
  }
  return `${out}]`
}

/**
 * All but what Go's encoder copies as it is: control characters, `"`, `\`, `<`, `>`, `&`, two separators, and surrogates,
 * because a lone one is not a character.
 */
const SPECIAL = /[^ !#-%'-;=?-[\]-\u2027\u202a-\ud7ff\ue000-\uffff]/
const HTML_AND_SEPARATORS = /[<>&\u2028\u2029]/g
const LONE_SURROGATE = /(?<![\ud800-\udbff])[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])/

function quote(text: string): string {
  if (!SPECIAL.test(text)) return `"${text}"`
  const quoted = JSON.stringify(text).replace(HTML_AND_SEPARATORS, unicodeEscape)
  return LONE_SURROGATE.test(text) ? quoted.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\\ufffd') : quoted
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map
}

/** The member at the end of a path of keys, or undefined where the path leaves the objects. */
export function field(value: Json | undefined, ...path: string[]): Json | undefined {
  let at = value
  for (const key of path) {
    if (!(at instanceof Map)) return undefined
    at = at.get(key)
  }
  return at
}

/** The string at the end of a path; '' when it is absent or not a string. */
export function text(value: Json | undefined, ...path: string[]): string {
  const found = field(value, ...path)
  return typeof found === 'string' ? found : ''
}

export function cloneJson<T extends Json>(value: T): T
export function cloneJson(value: Json): Json {
  if (value instanceof Map) {
    const copy: JsonObject = new Map()
    for (const [key, member] of value) copy.set(key, cloneJson(member))
    return copy
  }
  return Array.isArray(value) ? value.map((element) => cloneJson(element)) : value
}

/** Equal in meaning: the order of keys does not matter, nor how a number is spelled. */
export function equalJson(a: Json, b: Json): boolean {
  if (a === b) return true
  if (a instanceof Map) {
    if (!(b instanceof Map) || a.size !== b.size) return false
    for (const [key, member] of a) {
      const other = b.get(key)
      if (other === undefined || !equalJson(member, other)) return false
    }
    return true
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((element, index) => equalJson(element, b[index]!))
  }
  return isNumber(a) && isNumber(b) && sameNumber(a, b)
}

export function isNumber(value: Json | undefined): value is number | Spelled {
  return typeof value === 'number' || value instanceof Spelled
}

/** Ordinary JavaScript values; objects without a prototype, so that no key can reach one. Big numbers lose precision. */
export function toPlain(value: Json): unknown {
  if (value instanceof Map) {
    const plain: Record<string, unknown> = Object.create(null)
    for (const [key, member] of value) plain[key] = toPlain(member)
    return plain
  }
  if (value instanceof Spelled) return Number(value.source)
  return Array.isArray(value) ? value.map(toPlain) : value
}

/** From ordinary values (bigint too); members that are undefined are left out, as JSON.stringify does. */
export function fromPlain(value: unknown): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) return null
      return Object.is(value, -0) ? 0 : value
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : new Spelled(String(value))
    case 'object':
      break
    default:
      return null
  }
  if (value === null || value instanceof Spelled) return value
  if (Array.isArray(value)) return value.map(fromPlain)
  const object: JsonObject = new Map()
  for (const [key, member] of value instanceof Map ? value : Object.entries(value)) {
    if (member !== undefined) object.set(String(key), fromPlain(member))
  }
  return object
}
