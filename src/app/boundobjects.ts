/**
 * What a copy knows of the objects that tokens are bound to. An authority's knows all of them. Of a mirror's, while the API server is there only what its watch keeps in step
 * counts: a deletion is noticed as fast as the mirror has it, and where that is late the API server is asked instead.
 */

import type { BoundKind, BoundObject, BoundObjects } from '../access/authenticate/accounttoken.ts'
import type { AccountTokens } from '../access/authenticate/accounttokens.ts'
import type { Clock } from '../base/clock.ts'
import type { AuthorityCopy } from '../cache/authoritycopy.ts'
import type { Item } from '../cache/item.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { type Json, parseJson, text } from '../kube/json/json.ts'
import { objectKey } from '../kube/resource.ts'
import { interestOf, scopeOfName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import { mirrorLimits } from '../mirror/mirror.ts'
import type { MirroredInterest } from '../mirror/mirrored.ts'
import type { Reachability } from '../upstream/upstream.ts'

const resources: Readonly<Record<BoundKind, string>> = {
  ServiceAccount: 'serviceaccounts',
  Secret: 'secrets',
  Pod: 'pods',
  Node: 'nodes',
}
const core = { group: '', version: 'v1' }

type Parts = {
  readonly interests: Pick<Interests, 'covering' | 'holding' | 'onResource'>
  readonly reachability: Reachability
  readonly clock: Clock
}

/** Each item is looked into once. */
class BoundItems {
  readonly #read = new WeakMap<Item, BoundObject>()

  objectOf(item: Item): BoundObject {
    const known = this.#read.get(item)
    if (known !== undefined) return known
    const { bytes, uid, metadataStart, metadataEnd } = item
    const at = text(treeOf(bytes.subarray(metadataStart, metadataEnd)), 'deletionTimestamp')
    const deletionMs = at === '' ? undefined : Date.parse(at)
    const object = { uid, deletionMs, read: () => treeOf(bytes) }
    this.#read.set(item, object)
    return object
  }
}

export class OwnObjects implements BoundObjects {
  readonly #copy: Pick<AuthorityCopy, 'cache'>
  readonly #items = new BoundItems()

  constructor(copy: Pick<AuthorityCopy, 'cache'>) {
    this.#copy = copy
  }

  find(kind: BoundKind, namespace: string, name: string): BoundObject | 'absent' | 'unknown' {
    const cache = this.#copy.cache(`/${resources[kind]}`)
    const key = objectKey(namespace, name)
    if (cache.isCorrupt(key)) return 'unknown'
    const item = cache.get(key)
    return item === undefined ? 'absent' : this.#items.objectOf(item)
  }
}

export class MirroredObjects implements BoundObjects {
  readonly #parts: Parts
  readonly #items = new BoundItems()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Whatever is gone, or another under its name, is told; of a Secret every change, since its content may count. */
  observe(accounts: AccountTokens): void {
    for (const resource of Object.values(resources)) {
      this.#parts.interests.onResource(`v1/${resource}`, (cache) => {
        accounts.doubt()
        cache.observe(({ item, previous }) => {
          if (previous === undefined) return
          if (resource === 'secrets' || item === undefined || item.uid !== previous.uid) accounts.doubt()
        })
      })
    }
  }

  find(kind: BoundKind, namespace: string, name: string, node?: string): BoundObject | 'absent' | 'unknown' {
    const { interests } = this.#parts
    const key = objectKey(namespace, name)
    const resource = resources[kind]
    const scope = scopeOfName({ ...core, resource, namespace }, name)
    for (const covering of [interests.covering(scope), this.#podsOf(node)]) {
      if (covering === undefined || !this.#counts(covering)) continue
      const { readable: cache } = covering
      const item = cache?.isCorrupt(key) === false ? cache.get(key) : undefined
      if (item !== undefined) return this.#items.objectOf(item)
      if (cache?.isDamaged === false) return 'absent'
    }
    const holding = interests.holding(scope, key)
    const held = holding !== undefined && this.#counts(holding) ? holding.readable?.get(key) : undefined
    return held === undefined ? 'unknown' : this.#items.objectOf(held)
  }

  /** A pod never leaves its node. */
  #podsOf(node: string | undefined): MirroredInterest | undefined {
    if (node === undefined) return undefined
    const fields = parseFieldSelector(`spec.nodeName=${node}`)
    return this.#parts.interests.covering(interestOf({ ...core, resource: 'pods', namespace: '', fields }))
  }

  #counts({ heardAt }: MirroredInterest): boolean {
    const { reachability, clock } = this.#parts
    return reachability.state !== 'reachable' || clock.steady() - heardAt <= mirrorLimits.freshMs
  }
}

/** What was taken in was looked at as far as reading needs. */
function treeOf(bytes: Buffer): Json {
  try {
    return parseJson(bytes)
  } catch {
    return null
  }
}
