/** What an edge of the fleet holds of one interest, as thriftily as it can be done truthfully: bytes are shared by the whole fleet. */

import { DigestTree } from '../../src/link/digest/digest.ts'
import type { InterestHeld } from '../../src/link/session/edgeinterest.ts'
import { digestEntry, type LinkObject, type ReceivedChange, type StagedChange } from '../../src/link/session/session.ts'
import type { InterestEffect, InterestListener, LinkedInterest, LiveLink } from '../../src/upstream/linked/livelink.ts'

/** One version of each object is held once, however many edges have it. */
class SharedObjects {
  readonly #newest = new Map<string, LinkObject>()

  take({ key, version, bytes }: Extract<StagedChange, { type: 'put' }>, resource: string): LinkObject {
    const known = this.#newest.get(`${resource} ${key}`)
    if (known !== undefined && known.version === version && known.bytes.equals(bytes)) return known
    const { uid } = (JSON.parse(bytes.toString()) as { metadata: { uid: string } }).metadata
    const object = { key, uid, version, bytes: Buffer.from(bytes) }
    this.#newest.set(`${resource} ${key}`, object)
    return object
  }
}

const shared = new SharedObjects()

/** What the fleet counts over all its copies. */
export const fleetCounts = { events: 0, commits: 0, snapshots: 0, differences: 0, replays: 0, healed: 0, refused: 0 }

export class FleetCopy implements InterestListener {
  readonly #name: string
  readonly #resource: string
  #objects = new Map<string, LinkObject>()
  #staged: StagedChange[] = []
  #version = 0
  #epoch = 0
  #isSynced = false
  #link: LiveLink | undefined
  #linked: LinkedInterest | undefined

  constructor(name: string) {
    this.#name = name
    this.#resource = name.split(/[@?]/, 1)[0] ?? ''
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  follow(link: LiveLink): void {
    this.#link = link
    this.#linked = link.subscribe(this.#name, this.#held('resume'), this)
  }

  held(key: string): Buffer | undefined {
    return this.#objects.get(key)?.bytes
  }

  told(effect: InterestEffect): void {
    if (effect.effect === 'begins') {
      if (!effect.resumes) this.#staged = []
      if (effect.start === 'replay') fleetCounts.replays++
    } else if (effect.effect === 'stage') {
      const copied = (one: StagedChange) => (one.type === 'put' ? { ...one, bytes: Buffer.from(one.bytes) } : one)
      this.#staged.push(...effect.changes.map(copied))
    } else if (effect.effect === 'synced') this.#synced(effect.version)
    else if (effect.effect === 'compare') this.#linked?.walk(effect.comparison, this.#tree())
    else if (effect.effect === 'whole') this.#whole(effect)
    else if (effect.effect === 'check') {
      if (this.#tree().root === effect.root) this.#synced(effect.version)
      else this.#heal()
    } else if (effect.effect === 'astray') this.#heal()
    else if (effect.effect === 'refused') this.#refused(effect)
  }

  changed(changes: readonly ReceivedChange[], taken: () => void): void {
    fleetCounts.events += changes.length
    fleetCounts.commits++
    this.#apply(changes)
    this.#version = changes.at(-1)?.version ?? this.#version
    taken()
  }

  broken(): void {
    this.#isSynced = false
    this.#linked = undefined
  }

  #whole({ of, gone, version, root }: Extract<InterestEffect, { effect: 'whole' }>): void {
    fleetCounts[of === 'snapshot' ? 'snapshots' : 'differences']++
    if (of === 'snapshot') this.#objects = new Map()
    for (const key of gone) this.#objects.delete(key)
    this.#apply(this.#staged)
    this.#staged = []
    if (this.#tree().root === root) this.#synced(version)
    else this.#heal()
  }

  #apply(changes: readonly StagedChange[]): void {
    for (const change of changes)
      if (change.type === 'remove') this.#objects.delete(change.key)
      else this.#objects.set(change.key, shared.take(change, this.#resource))
  }

  /** As an edge does: asked again when the hub says. */
  #refused({ sentence, retryAfterMs }: Extract<InterestEffect, { effect: 'refused' }>): void {
    if (fleetCounts.refused++ === 0) console.error(`  ${this.#name} was refused: ${sentence}`)
    const [link, linked] = [this.#link, this.#linked]
    setTimeout(() => {
      if (link !== undefined && linked !== undefined && linked === this.#linked) this.follow(link)
    }, retryAfterMs)
  }

  #synced(version: number): void {
    this.#version = version
    this.#epoch = this.#link?.epoch ?? 0
    this.#isSynced = true
  }

  #heal(): void {
    fleetCounts.healed++
    this.#linked?.restart(this.#held('compare'))
  }

  #held(wish: InterestHeld['wish']): InterestHeld {
    return { epoch: this.#epoch, version: this.#version, wish }
  }

  #tree(): DigestTree {
    const tree = new DigestTree(this.#link?.welcome?.digestKey ?? Buffer.alloc(0))
    for (const object of this.#objects.values()) tree.put(digestEntry(object))
    return tree
  }
}
