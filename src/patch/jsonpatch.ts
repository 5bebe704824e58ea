/**
 * JSON Patch (RFC 6902) with the manners of the library kube-apiserver uses, where they differ from the RFC: a `replace`
 * of a missing member adds it, a `copy` of one yields null, indices may count from the end, text before the first slash
 * is ignored. A failing operation fails the whole patch.
 */
import { cloneJson, isNumber, type Json, type JsonObject, printJson, Spelled } from '../json/json.ts'
import { badRequest, failure, type StatusError } from '../kube/status.ts'

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
        remove(this.#place(operation, 'path'))
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
    else if (key === '-') container.push(value)
    else container.splice(indexOf(key, container.length + 1), 0, value)
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
    else container[indexOf(key, container.length)] = value
  }

  #move(operation: JsonObject): void {
    const from = this.#place(operation, 'from')
    const value = valueAt(from)
    remove(from)
    this.#add(operation, value ?? null)
  }

  #copy(operation: JsonObject): void {
    const value = valueAt(this.#place(operation, 'from')) ?? null
    this.#copied += Buffer.byteLength(printJson(value))
    if (this.#copied > COPY_BYTES_MAX) {
      const sizes = `the accumulated size increase of copy is ${this.#copied}, exceeding the limit ${COPY_BYTES_MAX}`
      throw unprocessable(`Unable to complete the copy, ${sizes}`)
    }
    this.#add(operation, cloneJson(value))
  }

  #test(operation: JsonObject): void {
    const path = operation.get('path')
    const current = path === '' ? this.root : valueAt(this.#place(operation, 'path'))
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
      container = valueAt({ container, key: parts[index]! })
    }
    if (!isContainer(container)) throw missing(pointer)
    return { container, key: parts[parts.length - 1]! }
  }
}

function isContainer(value: Json | undefined): value is JsonObject | Json[] {
  return value instanceof Map || Array.isArray(value)
}

function missing(pointer: string): StatusError {
  return unprocessable(`doc is missing path: "${pointer}": missing value`)
}

function valueAt({ container, key }: Place): Json | undefined {
  return container instanceof Map ? container.get(key) : container[indexOf(key, container.length)]
}

function remove({ container, key }: Place): void {
  if (!(container instanceof Map)) container.splice(indexOf(key, container.length), 1)
  else if (!container.delete(key)) throw unprocessable(`Unable to remove nonexistent key: ${key}: missing value`)
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
