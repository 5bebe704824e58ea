/**
 * A digest of everything that an interest holds, kept current with each change: two copies are equal if their roots are, and
 * where they are not, `walk.ts` and `answer.ts` find the keys that differ. An object stands at a position by its key; a node of
 * the tree is the positions that begin with some bits, and its sum is that of its objects' hashes over key, uid, version and content,
 * modulo 2^48. Any part of the tree can be asked for, so that both sides need not hold the same number of objects.
 *
 * Hashes are SHA-256 behind a secret that hub and edges share: sums of a hash that authors of objects could compute would let
 * them choose names whose objects cancel each other, and names that all stand at one place (L15).
 */
import { hash } from 'node:crypto'

/**
 * An object as far as a digest tells it from others. `content` is a checksum (CRC-32) of its bytes: a cluster that was put back gives
 * out versions again, so that the same version of the same object can be two things, and an API server of another release
 * may spell one otherwise. Without it only versions are compared.
 */
export type DigestEntry = {
  readonly key: string
  readonly uid: string
  readonly version: number
  readonly content?: number
}

/** What a node holds of an object: exact integers below 2^48. */
export type DigestSlot = { readonly key: string; readonly position: number; readonly sum: number }

export const positionBits = 48
const modulus = 2 ** positionBits
const hexDigits = positionBits / 4

/** Objects in one leaf on average before there are twice as many leaves: a lookup passes that many. */
const leafEntriesMax = 8
/** A million leaves; beyond, lookups become slower. */
const leafBitsMax = 20
const firstSlots = 16

export class DigestTree {
  readonly #secret: string
  #leafBits = 0
  /** Of every node: the root at 1, the children of n at 2n and 2n + 1, leaves last. */
  #totals = new Float64Array(2)
  /** The first slot of each leaf, and the next one behind each slot; 0 is none. */
  #heads = new Int32Array(1)
  #next = new Int32Array(firstSlots)
  #positions = new Float64Array(firstSlots)
  #sums = new Float64Array(firstSlots)
  #keys: (string | undefined)[] = [undefined]
  #free = 0
  #size = 0

  constructor(secret: Buffer) {
    this.#secret = secret.toString('base64')
  }

  get size(): number {
    return this.#size
  }

  /** 0 for an empty one. */
  get root(): number {
    return this.#totals[1] as number
  }

  put({ key, uid, version, content = 0 }: DigestEntry): void {
    const position = this.#hash(`key ${key}`)
    const sum = this.#hash(`${uid} ${version} ${content} ${key}`)
    const known = this.#find(position, key)
    if (known === 0) this.#insert(key, position, sum)
    else {
      this.#add(position, sum - (this.#sums[known] as number))
      this.#sums[known] = sum
    }
  }

  remove(key: string): void {
    const position = this.#hash(`key ${key}`)
    const slot = this.#find(position, key)
    if (slot === 0) return
    this.#add(position, -(this.#sums[slot] as number))
    const leaf = this.#leafOf(position)
    const after = this.#next[slot] as number
    let before = this.#heads[leaf] as number
    if (before === slot) this.#heads[leaf] = after
    else {
      while (this.#next[before] !== slot) before = this.#next[before] as number
      this.#next[before] = after
    }
    this.#keys[slot] = undefined
    this.#next[slot] = this.#free
    this.#free = slot
    this.#size--
  }

  /** The sums of the 2^fan children of the node with the first `bits` bits `prefix`. */
  children(prefix: number, bits: number, fan: number): Float64Array {
    const first = prefix * 2 ** fan
    if (bits + fan <= this.#leafBits) {
      const at = 2 ** (bits + fan) + first
      return this.#totals.slice(at, at + 2 ** fan)
    }
    const sums = new Float64Array(2 ** fan)
    for (const { position, sum } of this.entries(prefix, bits)) {
      const child = Math.floor(position / 2 ** (positionBits - bits - fan)) - first
      sums[child] = ((sums[child] as number) + sum) % modulus
    }
    return sums
  }

  /** What stands in a node. */
  *entries(prefix: number, bits: number): Generator<DigestSlot> {
    const below = positionBits - bits
    const leavesOfNode = 2 ** Math.max(0, this.#leafBits - bits)
    const first = Math.floor(prefix * 2 ** (this.#leafBits - bits))
    for (let leaf = first; leaf < first + leavesOfNode; leaf++) {
      for (let slot = this.#heads[leaf] as number; slot !== 0; slot = this.#next[slot] as number) {
        const position = this.#positions[slot] as number
        if (Math.floor(position / 2 ** below) === prefix)
          yield { key: this.#keys[slot] as string, position, sum: this.#sums[slot] as number }
      }
    }
  }

  #hash(text: string): number {
    return Number.parseInt(hash('sha256', `${this.#secret} ${text}`, 'hex').slice(0, hexDigits), 16)
  }

  #leafOf(position: number): number {
    return Math.floor(position / 2 ** (positionBits - this.#leafBits))
  }

  #find(position: number, key: string): number {
    let slot = this.#heads[this.#leafOf(position)] as number
    while (slot !== 0 && this.#keys[slot] !== key) slot = this.#next[slot] as number
    return slot
  }

  #insert(key: string, position: number, sum: number): void {
    let slot = this.#free
    if (slot === 0) {
      slot = this.#keys.length
      if (slot === this.#next.length) this.#enlarge()
    } else this.#free = this.#next[slot] as number
    this.#keys[slot] = key
    this.#positions[slot] = position
    this.#sums[slot] = sum
    this.#link(slot)
    this.#size++
    if (this.#size > leafEntriesMax * this.#heads.length && this.#leafBits < leafBitsMax) this.#split()
  }

  #link(slot: number): void {
    const position = this.#positions[slot] as number
    const leaf = this.#leafOf(position)
    this.#next[slot] = this.#heads[leaf] as number
    this.#heads[leaf] = slot
    this.#add(position, this.#sums[slot] as number)
  }

  /** From the leaf up to the root. */
  #add(position: number, difference: number): void {
    for (let node = this.#heads.length + this.#leafOf(position); node > 0; node >>= 1)
      this.#totals[node] = ((this.#totals[node] as number) + difference + modulus) % modulus
  }

  #enlarge(): void {
    const slots = Math.ceil(this.#next.length * 1.5)
    const copy = <A extends Float64Array | Int32Array>(from: A, to: A): A => {
      to.set(from)
      return to
    }
    this.#next = copy(this.#next, new Int32Array(slots))
    this.#positions = copy(this.#positions, new Float64Array(slots))
    this.#sums = copy(this.#sums, new Float64Array(slots))
  }

  /** Twice as many leaves; all are filled anew, which a tree that grows pays once for each doubling. */
  #split(): void {
    this.#leafBits++
    this.#heads = new Int32Array(2 ** this.#leafBits)
    this.#totals = new Float64Array(2 ** (this.#leafBits + 1))
    for (let slot = 1; slot < this.#keys.length; slot++) if (this.#keys[slot] !== undefined) this.#link(slot)
  }
}
