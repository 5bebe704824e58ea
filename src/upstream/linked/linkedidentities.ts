/**
 * What a collection holds at the hub, for a comparison at leisure: by digests of what is followed, as an interest of its own, so
 * that equal copies cost a kilobyte, and the edge needs no right to list anything. It comes as one part.
 */
import { crc32 } from 'node:zlib'
import { noFields, scanObject, uidAt } from '../../kube/object.ts'
import { DigestTree } from '../../link/digest/digest.ts'
import { Busy, type Identities, type ObjectIdentity } from '../follow/follow.ts'
import { Unreachable } from '../upstream.ts'
import type { LinkedCopy } from './linkedcopy.ts'
import type { InterestEffect, InterestListener, LinkedInterest, LiveLink } from './livelink.ts'
import { refusalOf } from './refusalof.ts'

type Parts = {
  readonly link: LiveLink
  readonly name: string
  /** What is held: it may go on changing. */
  readonly copy: LinkedCopy
}

/** About what a comparison costs that finds nothing (docs/link.md). */
const comparisonBytes = 1_000
const unequalRetryMs = 60_000

export async function identitiesOf(
  parts: Parts,
  of: { readonly part: string } | { readonly key: string },
  signal: AbortSignal,
): Promise<Identities> {
  const found = await new IdentityComparison(parts).found(signal)
  if (!('key' in of)) return found
  return { ...found, entries: found.entries.filter(({ key }) => key === of.key) }
}

class IdentityComparison implements InterestListener {
  readonly #parts: Parts
  readonly #entries = new Map<string, ObjectIdentity>()
  #staged: { readonly key: string; readonly entry: ObjectIdentity | undefined; readonly content: number }[] = []
  #tree: DigestTree
  #bytes = comparisonBytes
  #interest: LinkedInterest | undefined
  #resolve: (found: Identities) => void = () => {}
  #reject: (error: unknown) => void = () => {}

  constructor(parts: Parts) {
    this.#parts = parts
    this.#tree = new DigestTree(this.#secret)
  }

  async found(signal: AbortSignal): Promise<Identities> {
    const { link, name } = this.#parts
    const stop = () => this.#reject(new Unreachable('stopped', false))
    signal.addEventListener('abort', stop)
    try {
      return await new Promise<Identities>((resolve, reject) => {
        this.#resolve = resolve
        this.#reject = reject
        if (signal.aborted) stop()
        else this.#interest = link.subscribe(name, { epoch: link.epoch, version: 0, wish: 'compare' }, this)
      })
    } finally {
      signal.removeEventListener('abort', stop)
      this.#interest?.leave()
    }
  }

  get #secret(): Buffer {
    return this.#parts.link.welcome?.digestKey ?? Buffer.alloc(0)
  }

  held(): undefined {
    return undefined
  }

  changed(_changes: unknown, taken: () => void): void {
    taken()
  }

  broken(why: string): void {
    this.#reject(new Unreachable(why, true))
  }

  told(effect: InterestEffect): void {
    try {
      this.#take(effect)
    } catch (error) {
      this.#reject(error)
    }
  }

  #take(effect: InterestEffect): void {
    switch (effect.effect) {
      case 'begins':
        this.#staged = []
        break
      case 'compare':
        this.#stand()
        this.#interest?.walk(effect.comparison, this.#tree)
        break
      case 'stage':
        this.#stage(effect)
        break
      case 'whole':
        this.#whole(effect)
        break
      case 'refused':
        throw refusalOf(effect)
      default:
        break
    }
  }

  /** As it stands now: what is followed goes on. */
  #stand(): void {
    this.#tree = this.#parts.copy.tree(this.#secret)
    this.#entries.clear()
    for (const { key, uid, version } of this.#parts.copy.all()) this.#entries.set(key, { key, uid, version })
  }

  #stage({ changes }: Extract<InterestEffect, { effect: 'stage' }>): void {
    for (const change of changes) {
      const { key, version } = change
      if (change.type === 'remove') this.#staged.push({ key, entry: undefined, content: 0 })
      else {
        const { bytes } = change
        this.#bytes += bytes.length
        const uid = uidAt(bytes, scanObject(bytes, noFields).uidStart)
        this.#staged.push({ key, entry: { key, uid, version }, content: crc32(bytes) })
      }
    }
  }

  #whole({ of, version, root, gone }: Extract<InterestEffect, { effect: 'whole' }>): void {
    if (of === 'snapshot') {
      this.#tree = new DigestTree(this.#secret)
      this.#entries.clear()
    }
    for (const key of gone) this.#set(key, undefined, 0)
    for (const { key, entry, content } of this.#staged) this.#set(key, entry, content)
    if (this.#tree.root !== root) throw new Busy('what was compared is not what the hub has', unequalRetryMs)
    const entries = [...this.#entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
    this.#resolve({ version, entries, next: '', bytes: this.#bytes })
  }

  #set(key: string, entry: ObjectIdentity | undefined, content: number): void {
    if (entry === undefined) {
      this.#entries.delete(key)
      this.#tree.remove(key)
    } else {
      this.#entries.set(key, entry)
      this.#tree.put({ ...entry, content })
    }
  }
}
