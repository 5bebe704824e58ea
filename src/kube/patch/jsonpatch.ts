/**
 * JSON Patch (RFC 6902) with the manners of the library kube-apiserver uses, where they differ from the RFC: a `replace`
 * of a missing member adds it, a `copy` of one yields null, indices may count from the end, text before the first slash
 * is ignored. A failing operation fails the whole patch.
 */
import { cloneJson, isNumber, type Json, type JsonObject, printJson, Spelled } from '../json/json.ts'
import { badRequest, failure, type StatusError } from '../status.ts'
import { LONG_ITEMS, LongList } from './longlist.ts'

/** kube-apiserver's own limit: each operation may cost as much as the whole object. */
export const OPERATIONS_MAX = 10_000

/** Bytes all `copy` operations of one patch may add; as large as a request body, so that copying is no amplifier. */
export const COPY_BYTES_MAX = 3 * 1024 * 1024

/** Changes and returns `target`; after a failure it is to be thrown away. */
export function applyJsonPatch(target: JsonObject, patch: Json): JsonObject {
  const operations = decode(patch)
  if (operations.length > OPERATIONS_MAX) {
    const message = `The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${operations.length}`
    throw failure(413, 'RequestEntityTooLarge', `Request entity too large: ${message}`)
  }
  const document = new PatchedDocument(target)
  for (const operation of operations) document.apply(operation)
  document.settle()
  if (!(document.root instanceof Map)) throw unprocessable('the patched document is no object')
  return document.root
}

/** 422 with the text that says nothing; what is wrong goes with it as its cause, for logs. */
export function unprocessable(why: string): StatusError {
  const error = failure(422, 'Invalid', 'the server rejected our request due to an error in our request', {})
  error.cause = new Error(why)
  return error
}

function decode(patch: Json): JsonObject[] {
  if (patch === null) return []
  if (!Array.isArray(patch)) throw undecodable(patch, 'value of type []handlers.jsonPatchOp')
  return patch.map((operation) => {
    if (operation === null) return new Map<string, Json>()
    if (!(operation instanceof Map)) throw undecodable(operation, 'value of type handlers.jsonPatchOp')
    for (const name of ['op', 'path', 'from']) {
      const value = operation.get(name) ?? ''
      if (typeof value !== 'string') throw undecodable(value, `struct field jsonPatchOp.${name} of type string`)
    }
    return operation
  })
}

function undecodable(value: Json, wanted: string): StatusError {
  const kind =
    value instanceof Map ? 'object' : Array.isArray(value) ? 'array' : isNumber(value) ? 'number' : typeof value
  return badRequest(
    `error decoding patch: json: cannot unmarshal ${kind === 'boolean' ? 'bool' : kind} into Go ${wanted}`,
  )
}

type Place = { readonly container: JsonObject | Json[]; readonly key: string }

class PatchedDocument {
  root: Json
  #copied = 0
  /** What is in the long lists whose items came and went; the arrays themselves are out of date until they are settled. */
  readonly #long = new Map<Json[], LongList>()

  constructor(root: JsonObject) {
    this.root = root
  }

  apply(operation: JsonObject): void {
    const kind = operation.get('op') ?? 'unknown'
    switch (kind) {
      case 'add':
        this.#add(operation, cloneJson(operation.get('value') ?? null))
        break
      case 'remove':
        this.#remove(this.#place(operation, 'path'))
        break
      case 'replace':
        this.#replace(operation)
        break
      case 'move':
        this.#move(operation)
        break
      case 'copy':
        this.#copy(operation)
        break
      case 'test':
        this.#test(operation)
        break
      default:
        throw unprocessable(`Unexpected kind: ${String(kind)}`)
    }
  }

  #add(operation: JsonObject, value: Json): void {
    const { container, key } = this.#place(operation, 'path')
    if (container instanceof Map) container.set(key, value)
    else {
      const length = this.#lengthOf(container)
      const index = key === '-' ? length : indexOf(key, length + 1)
      const long = this.#longOf(container)
      if (long !== undefined) long.insert(index, value)
      else container.splice(index, 0, value)
    }
  }

  #replace(operation: JsonObject): void {
    const value = cloneJson(operation.get('value') ?? null)
    if (operation.get('path') === '') {
      if (!(value instanceof Map) && !Array.isArray(value)) {
        throw unprocessable('replace operation value must be object or array')
      }
      this.root = value
      return
    }
    const { container, key } = this.#place(operation, 'path')
    if (container instanceof Map) container.set(key, value)
    else {
      const index = indexOf(key, this.#lengthOf(container))
      const long = this.#long.get(container)
      if (long !== undefined) long.set(index, value)
      else container[index] = value
    }
  }

  #move(operation: JsonObject): void {
    const from = this.#place(operation, 'from')
    const value = this.#valueAt(from)
    this.#remove(from)
    this.#add(operation, value ?? null)
  }

  #copy(operation: JsonObject): void {
    const value = this.#valueAt(this.#place(operation, 'from')) ?? null
    this.#settleIn(value)
    this.#copied += Buffer.byteLength(printJson(value))
    if (this.#copied > COPY_BYTES_MAX) {
      const sizes = `the accumulated size increase of copy is ${this.#copied}, exceeding the limit ${COPY_BYTES_MAX}`
      throw unprocessable(`Unable to complete the copy, ${sizes}`)
    }
    this.#add(operation, cloneJson(value))
  }

  #test(operation: JsonObject): void {
    const path = operation.get('path')
    const current = path === '' ? this.root : this.#valueAt(this.#place(operation, 'path'))
    this.#settleIn(current ?? null)
    if (!identical(current ?? null, operation.get('value') ?? null)) {
      throw unprocessable(`testing value ${String(path)} failed: test failed`)
    }
  }

  /** The container a pointer ends in and the last key; everything before that key must exist. */
  #place(operation: JsonObject, which: 'path' | 'from'): Place {
    const pointer = operation.get(which)
    if (typeof pointer !== 'string') throw unprocessable(`operation missing ${which} field: missing value`)
    const parts = pointer.split('/').map((part) => part.replace(/~[01]/g, (code) => (code === '~1' ? '/' : '~')))
    if (parts.length < 2) throw missing(pointer)
    let container: Json | undefined = this.root
    for (let index = 1; index < parts.length - 1; index++) {
      if (!isContainer(container)) throw missing(pointer)
      container = this.#valueAt({ container, key: parts[index]! })
    }
    if (!isContainer(container)) throw missing(pointer)
    return { container, key: parts[parts.length - 1]! }
  }

  #valueAt({ container, key }: Place): Json | undefined {
    if (container instanceof Map) return container.get(key)
    const index = indexOf(key, this.#lengthOf(container))
    const long = this.#long.get(container)
    return long === undefined ? container[index] : long.at(index)
  }

  #remove({ container, key }: Place): void {
    if (container instanceof Map) {
      if (!container.delete(key)) throw unprocessable(`Unable to remove nonexistent key: ${key}: missing value`)
      return
    }
    const index = indexOf(key, this.#lengthOf(container))
    const long = this.#longOf(container)
    if (long !== undefined) long.remove(index)
    else container.splice(index, 1)
  }

  #lengthOf(list: Json[]): number {
    return this.#long.get(list)?.length ?? list.length
  }

  /** Of a list of which an item is about to come or go; undefined where it is short. */
  #longOf(list: Json[]): LongList | undefined {
    let long = this.#long.get(list)
    if (long === undefined && list.length >= LONG_ITEMS) {
      long = new LongList(list)
      this.#long.set(list, long)
    }
    return long
  }

  /** Every list is an array of what is in it. */
  settle(): void {
    for (const [list, long] of this.#long) long.settle(list)
    this.#long.clear()
  }

  /** The same below a value that is wanted as a whole, which costs as much as it has items anyway. */
  #settleIn(value: Json): void {
    if (this.#long.size === 0) return
    if (value instanceof Map) for (const member of value.values()) this.#settleIn(member)
    if (!Array.isArray(value)) return
    this.#long.get(value)?.settle(value)
    this.#long.delete(value)
    for (const item of value) this.#settleIn(item)
  }
}

function isContainer(value: Json | undefined): value is JsonObject | Json[] {
  return value instanceof Map || Array.isArray(value)
}

function missing(pointer: string): StatusError {
  return unprocessable(`doc is missing path: "${pointer}": missing value`)
}

/** An index below `limit`; a negative one counts from the end. */
function indexOf(key: string, limit: number): number {
  if (!/^[+-]?\d+$/.test(key)) throw unprocessable(`value was not a proper array index: '${key}'`)
  const index = Number(key)
  if (index >= limit || index < -limit) throw unprocessable(`Unable to access invalid index: ${key}`)
  return index < 0 ? index + limit : index
}

/** As `test` compares: the order of members does not matter, the spelling of a number does. */
function identical(a: Json, b: Json): boolean {
  if (a === b) return true
  if (a instanceof Map) {
    if (!(b instanceof Map) || a.size !== b.size) return false
    return [...a].every(([key, value]) => b.has(key) && identical(value, b.get(key)!))
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((element, index) => identical(element, b[index]!))
  }
  return a instanceof Spelled && b instanceof Spelled && a.source === b.source
}
