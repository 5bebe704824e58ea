/**
 * Seals bodies before they are written: AES-256-GCM, each body alone, so that log, index and recovery go on handling bytes
 * as they always do. A sealed body says which key opens it and brings what else that takes, wherever it is moved to:
 *
 *     stamp 4 | key id 4 | salt 16 | count 4 | ciphertext | tag 16
 *
 * No nonce is used twice with a key. The key of a body is derived (HKDF-SHA256) from the operator's and a salt; the nonce
 * is how many bodies were sealed with that salt before. A salt is drawn at random by the one object that seals with it and
 * is never taken from a file. So another start, a torn end that is written again, or a copy of the folder that goes its own
 * way counts under a salt of its own; two of 2^32 salts of 128 bits are the same with a chance of 2^-65.
 * What does repeat both is a machine that is cloned while it runs, with its memory.
 *
 * What a body is stored as (`objectPlace`, `recordPlace`) is authenticated with it: one that was put in the place of
 * another, or of another version of itself, is damaged as if its bits had turned.
 */
import type { KeyObject } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { StoreUnusable } from './store.ts'

/** Loaded where there is a key: the thread of the index has its own copy of it, half a megabyte. */
const crypto = () => process.getBuiltinModule('node:crypto')

const cipher = 'aes-256-gcm'
const keyBytes = 32
/** No text begins like this, and no number of a written one: "\xffaks". */
const stamp = 0x736b61ff
const idAt = 4
const saltAt = 8
const saltBytes = 16
const countAt = saltAt + saltBytes
const textAt = countAt + 4
const tagBytes = 16
/** How much longer a body is when it is sealed. */
export const sealBytes = textAt + tagBytes
/** Bodies under one salt: far below the 2^32 that the count allows. */
const countMax = 2 ** 24
/** Derived keys that are kept at hand for reading: every start that wrote has one or two. */
const derivedMax = 256
/** At the beginning of a segment of nothing but bodies: the stamp, the key's id and a checksum of both. */
export const sealHeadBytes = 12

export function objectPlace(key: string, version: number): string {
  return `object\0${version}\0${key}`
}

export function recordPlace(kind: string, key: string): string {
  return `record\0${kind}\0${key}`
}

/** What is written of a key so that the right one can be told: it says nothing about the key. Never 0. */
function idOf(key: KeyObject): number {
  return Buffer.from(crypto().hkdfSync('sha256', key, Buffer.alloc(0), 'ake key id', 4)).readUInt32LE() || 1
}

/** As people see it. */
function idText(id: number): string {
  return id.toString(16).padStart(8, '0')
}

export class Seal {
  /** Of the key that seals; 0: nothing is sealed. */
  readonly id: number
  readonly #keys = new Map<number, KeyObject>()
  readonly #derived = new Map<string, KeyObject>()
  #salt = Buffer.alloc(0)
  #key: KeyObject | undefined
  #count = 0

  /** The first one seals; the others open what they sealed before. */
  constructor(keys: readonly Uint8Array[] = []) {
    const all = keys.map((key) => crypto().createSecretKey(key))
    for (const key of all) this.#keys.set(idOf(key), key)
    this.id = all[0] === undefined ? 0 : idOf(all[0])
  }

  knows(id: number): boolean {
    return this.#keys.has(id)
  }

  seal(body: Uint8Array, place: string): Buffer {
    if (this.#key === undefined || this.#count === countMax) this.#begin()
    const sealed = Buffer.allocUnsafe(body.length + sealBytes)
    sealed.writeUInt32LE(stamp, 0)
    sealed.writeUInt32LE(this.id, idAt)
    this.#salt.copy(sealed, saltAt)
    sealed.writeUInt32LE(this.#count++, countAt)
    const sealing = crypto().createCipheriv(cipher, this.#key as KeyObject, nonceOf(sealed), {
      authTagLength: tagBytes,
    })
    sealing.setAAD(Buffer.from(place))
    sealing.update(body).copy(sealed, textAt)
    sealing.final()
    sealing.getAuthTag().copy(sealed, textAt + body.length)
    return sealed
  }

  #begin(): void {
    this.#salt = crypto().randomBytes(saltBytes)
    this.#key = derived(this.#keys.get(this.id) as KeyObject, this.#salt)
    this.#count = 0
  }

  /**
   * The body; undefined where these are not the bytes that were sealed for this place. Throws where its key is not there:
   * then nothing is wrong with the bytes.
   */
  open(sealed: Buffer, place: string): Buffer | undefined {
    const key = this.#keyOf(sealed)
    const end = sealed.length - tagBytes
    const opening = crypto().createDecipheriv(cipher, key, nonceOf(sealed), { authTagLength: tagBytes })
    opening.setAAD(Buffer.from(place))
    opening.setAuthTag(sealed.subarray(end))
    const body = opening.update(sealed.subarray(textAt, end))
    try {
      opening.final()
      return body
    } catch {
      return undefined
    }
  }

  #keyOf(sealed: Buffer): KeyObject {
    const name = sealed.toString('latin1', idAt, countAt)
    let key = this.#derived.get(name)
    if (key === undefined) {
      const id = sealed.readUInt32LE(idAt)
      key = derived(this.#keys.get(id) ?? this.refuse(id), sealed.subarray(saltAt, countAt))
      for (const oldest of this.#derived.keys()) {
        if (this.#derived.size < derivedMax) break
        this.#derived.delete(oldest)
      }
      this.#derived.set(name, key)
    }
    return key
  }

  /** What is sealed with this key stays closed. */
  refuse(id: number): never {
    const what = `it is sealed with the key ${idText(id)}`
    throw new StoreUnusable(
      this.id === 0
        ? `${what}, and none was given: give the file of that key with --encryption-key`
        : `${what}, which is not among those given (${[...this.#keys.keys()].map(idText).join(', ')}): add it as a further line of the file of --encryption-key`,
    )
  }
}

function derived(key: KeyObject, salt: Uint8Array): KeyObject {
  return crypto().createSecretKey(Buffer.from(crypto().hkdfSync('sha256', key, salt, 'ake body', keyBytes)))
}

function nonceOf(sealed: Buffer): Buffer {
  const nonce = Buffer.alloc(12)
  sealed.copy(nonce, 8, countAt, textAt)
  return nonce
}

/** Whether a body that lies here is sealed: of bytes that their checksum vouches for. */
export function isSealed(bytes: Buffer, at: number, length: number): boolean {
  return length >= sealBytes && bytes.readUInt32LE(at) === stamp
}

/** Begins whatever is sealed as a whole: in place of what a plain one begins with. */
export function writeStamp(bytes: Buffer, id: number): void {
  bytes.writeUInt32LE(stamp, 0)
  bytes.writeUInt32LE(id, idAt)
}

/** The id of the key that this begins with; 0 where it begins with none. */
export function stampedId(bytes: Buffer): number {
  return bytes.length >= saltAt && bytes.readUInt32LE(0) === stamp ? bytes.readUInt32LE(idAt) : 0
}

export function sealHead(id: number): Buffer {
  if (id === 0) return Buffer.alloc(0)
  const head = Buffer.alloc(sealHeadBytes)
  writeStamp(head, id)
  head.writeUInt32LE(crc32(head.subarray(0, saltAt)), saltAt)
  return head
}

/** 0 also where it is damaged. */
export function parseSealHead(head: Buffer): number {
  if (head.length < sealHeadBytes || crc32(head.subarray(0, saltAt)) !== head.readUInt32LE(saltAt)) return 0
  return stampedId(head)
}
