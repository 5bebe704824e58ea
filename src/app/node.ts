/**
 * What this node needs, held whether a client has asked for it or not: its Node and pods, what every kubelet and kube-proxy
 * reads, and what the pods name, as they come and go. In the scopes in which a kubelet asks, so that its watches find them.
 */
import { Bell } from '../base/bell.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Item } from '../cache/item.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { type Json, parseJson } from '../kube/json/json.ts'
import { attachesNothing, mountsToken, type Reference, referencesOf } from '../kube/references.ts'
import { objectKey } from '../kube/resource.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { type Interest, interestOf, scopeOfName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { MirroredInterest } from '../mirror/mirrored.ts'

/** Each is a stream upstream, as it is for a kubelet: 250 pods, the most one is told to run, with four names each. */
const standardNamesMax = 1_000
/** Pods often change together. */
const togetherMs = 200

/** An interest of this node, and what for. */
type Needed = { readonly interest: Interest; readonly for: 'node' | 'pods' | 'services' }

/** What is read of an object once. */
type ObjectRead = {
  readonly references: readonly Reference[]
  readonly mountsToken: boolean
  readonly attachesNothing: boolean
}

const everywhere = { version: 'v1', namespace: '' }
const wide = [
  { group: '', resource: 'services', for: 'services' },
  { group: 'discovery.k8s.io', resource: 'endpointslices', for: 'services' },
  { group: '', resource: 'namespaces', for: 'node' },
  { group: 'node.k8s.io', resource: 'runtimeclasses', for: 'node' },
  { group: 'storage.k8s.io', resource: 'csidrivers', for: 'node' },
] as const
/** What leads to more: a pod to its claims, a claim to its volume, a volume to its Secrets. */
const leading = ['pods', 'persistentvolumeclaims', 'persistentvolumes']
const drivers = interestOf({ ...everywhere, group: 'storage.k8s.io', resource: 'csidrivers' })

type Parts = {
  readonly interests: Interests
  readonly catalog: CloudCatalog
  /** Undefined: this edge is no node's in particular. */
  readonly node: string | undefined
  /** Names of which more are not held. */
  readonly namesMax?: number | undefined
  readonly clock: Clock
  readonly log: Log
}

export class NodeNeeds {
  readonly #parts: Parts
  readonly #bell: Bell
  readonly #pods: Interest
  readonly #read = new WeakMap<Item, ObjectRead>()
  readonly #listeners = new Set<() => void>()
  #isTooMany = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#bell = new Bell(parts.clock)
    const fields = parseFieldSelector(`spec.nodeName=${parts.node ?? ''}`)
    this.#pods = interestOf({ ...everywhere, group: '', resource: 'pods', fields })
    for (const resource of [...leading.map((one) => `v1/${one}`), drivers.name]) {
      parts.interests.onResource(resource, (cache) => {
        if (resource === 'v1/pods' && cache.interest !== this.#pods.name) return
        cache.observe(() => this.#bell.ring())
        this.#bell.ring()
      })
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { catalog, clock, node } = this.#parts
    if (node === undefined) return this.#release(new Set())
    const stop = catalog.observe(() => this.#bell.ring())
    while (!signal.aborted) {
      this.#hold()
      await sleep(clock, togetherMs, signal)
      await this.#bell.wait(signal)
    }
    stop()
  }

  /** Everything that the node needs, as far as its pods are known now; beyond the limit it is not held. */
  get needed(): readonly Needed[] {
    const { node } = this.#parts
    if (node === undefined) return []
    const named = this.#namedBy(this.#podsHeld?.cache?.all() ?? [])
    return [...this.#always(node), ...named.map((one) => ({ interest: byName(one), for: 'pods' }) as const)]
  }

  /** The same, by name. */
  get names(): string[] {
    return this.needed.map(({ interest }) => interest.name)
  }

  /** Hears that it may be other than before; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The pods here that the kubelet needs a token for. */
  get tokenPods(): readonly Item[] {
    const pods = this.#podsHeld?.cache?.all() ?? []
    return pods.filter((pod) => this.#readOf('pods', pod).mountsToken)
  }

  get #podsHeld(): MirroredInterest | undefined {
    return this.#parts.interests.named(this.#pods.name)
  }

  #hold(): void {
    const { namesMax = standardNamesMax, log } = this.#parts
    const pods = this.#podsHeld
    const { needed } = this
    const always = needed.filter((one) => one.for !== 'pods').length
    const isTooMany = needed.length - always > namesMax
    if (isTooMany && !this.#isTooMany) log.warn('node.tooMany', { names: needed.length - always, held: namesMax })
    this.#isTooMany = isTooMany
    for (const { interest } of needed.slice(0, always + namesMax)) this.#begin(interest)
    for (const listener of this.#listeners) listener()
    // Before the pods are known, or while some may be missing, nothing is known to be needed no more.
    if (pods?.readable?.isDamaged !== false) return
    this.#release(new Set(needed.map(({ interest }) => interest.name)))
  }

  #always(node: string): Needed[] {
    const own = [
      { ...everywhere, group: '', resource: 'nodes' },
      { ...everywhere, group: 'storage.k8s.io', resource: 'csinodes' },
    ].map((one) => interestOf(scopeOfName(one, node)))
    return [
      ...[this.#pods, ...own].map((interest) => ({ interest, for: 'node' }) as const),
      ...wide.map((one) => ({ interest: interestOf({ ...everywhere, ...one }), for: one.for })),
    ]
  }

  #begin(interest: Interest): void {
    const { interests, catalog } = this.#parts
    const known = catalog.find(interest.group, interest.version, interest.resource)
    if (known !== undefined) interests.begin(interest, known, { standing: true })
  }

  /** What pods name, and what that names, as far as it is here. */
  #namedBy(pods: readonly Item[]): Reference[] {
    const found = new Map<string, Reference>()
    const add = (resource: string, item: Item) => {
      for (const reference of this.#readOf(resource, item).references) {
        const key = objectKey(reference.namespace, reference.name)
        const id = `${reference.resource} ${key}`
        if (found.has(id) || this.#isUnattached(reference)) continue
        found.set(id, reference)
        const named = leading.includes(reference.resource) ? this.#find(reference, key) : undefined
        if (named !== undefined) add(reference.resource, named)
      }
    }
    for (const pod of pods) add('pods', pod)
    return [...found.values()]
  }

  #readOf(resource: string, item: Item): ObjectRead {
    const known = this.#read.get(item)
    if (known !== undefined) return known
    const object = treeOf(item.bytes)
    const read = {
      references: referencesOf(resource, object, this.#parts.node ?? ''),
      mountsToken: mountsToken(object),
      attachesNothing: attachesNothing(object),
    }
    this.#read.set(item, read)
    return read
  }

  /** An attachment that there is not, as far as its driver is known. */
  #isUnattached({ driver }: Reference): boolean {
    const known =
      driver === undefined ? undefined : this.#parts.interests.holding(drivers, driver)?.readable?.get(driver)
    return known !== undefined && this.#readOf('csidrivers', known).attachesNothing
  }

  #find(reference: Reference, key: string): Item | undefined {
    return this.#parts.interests.holding(byName(reference), key)?.readable?.get(key)
  }

  /** What was held for pods that are gone. Nothing else that stands has a field selector: options give none. */
  #release(held: ReadonlySet<string>): void {
    const { interests } = this.#parts
    for (const mirrored of interests.all) {
      const { interest, record } = mirrored
      if (record.standing && !interest.fields.empty && !held.has(interest.name)) interests.release(mirrored)
    }
  }
}

function byName({ group, resource, namespace, name }: Reference): Interest {
  return interestOf(scopeOfName({ group, version: 'v1', resource, namespace }, name))
}

/** What is taken in was looked at as far as reading needs: a part of it that is no JSON names nothing. */
function treeOf(bytes: Buffer): Json {
  try {
    return parseJson(bytes)
  } catch {
    return null
  }
}
