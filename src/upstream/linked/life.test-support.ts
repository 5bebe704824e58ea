/**
 * One random life of a mirror over links, its steps and what has to hold behind each: two hubs, of which one may be behind, lines that break, an edge that is killed
 * or moves from one hub to the other, hubs that forget, end or are drained, clusters that are put back, and another one in the place of the one there was.
 */
import assert from 'node:assert/strict'
import { silentLog } from '../../base/log.ts'
import { type SeededRandom, seeded } from '../../base/seeded.test-support.ts'
import type { Cache } from '../../cache/cache.ts'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { Client } from '../../mirror/client.test-support.ts'
import type { Candidate } from '../../mirror/cluster.ts'
import { ClusterGate } from '../../mirror/clustergate.ts'
import { MirrorWorld, settle, type Wish } from '../../mirror/world.test-support.ts'
import { openMemory } from '../../store/memory.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'
import type { HubState } from './modelhub.test-support.ts'

const whole: Wish = {}
const wishes: readonly Wish[] = [whole, whole, { namespace: 'a' }, { namespace: 'b', fields: 'metadata.name=3' }]
const followed = 'v1/pods'
/** How long another cluster has to answer before it is believed in. */
const spanMs = 30_000
const short = 2_000
const long = 1 << 30

type Cluster = { readonly server: ApiServer; readonly versions: number[]; state: HubState }

export class LinkedLife {
  readonly random: SeededRandom
  world!: LinkedWorld
  readonly clients: Client[] = []
  readonly #historyBytesMax: number
  readonly #compares: boolean
  readonly #gateStore = openMemory({ historyBytesMax: 0 })
  /** Clusters that the hubs stand before, or did, as they were then. */
  readonly #clusters = new Map<string, Cluster>()
  #mirror!: MirrorWorld
  #gate!: ClusterGate
  /** Before which the hubs stand. */
  #name = 'c1'
  #believed: Candidate | undefined
  /** The newest version of a past that was lost, and how many may have been. */
  #lost = 0
  #pasts = 0
  /** Of a past that was lost while no hub ran the copy may go on until it is found. */
  #isUnnoticed = false
  #noticed = 0
  #isPlain = true
  /** Of copies that were one: past by past. */
  readonly #pastOf = new WeakMap<Cache, number>()
  #copy: Cache | undefined
  /** The version of a client by a bookmark that a crash took from the disk. */
  readonly #unwritten = new WeakMap<Client, number>()
  #step = 0

  constructor(seed: number) {
    this.random = seeded(seed)
    this.#historyBytesMax = this.random(6) === 0 ? short : long
    this.#compares = this.random(2) === 0
  }

  get #server(): ApiServer {
    return this.world.server
  }

  /** Of the present past of the cluster, those that could be put back. */
  get #versions(): number[] {
    return this.#clusters.get(this.#name)?.versions ?? []
  }

  /** The edge has the copy of the cluster that its hub stands before. */
  get #isAtHome(): boolean {
    return this.#mirror.server === this.#server
  }

  get #version(): number {
    return this.#mirror.copy.caches.get(followed)?.version ?? 0
  }

  async live(steps: number): Promise<void> {
    const server = new ApiServer()
    const { clock } = server
    this.#clusters.set('c1', { server, versions: [], state: { cluster: 'c1', epoch: 1, lost: 0 } })
    this.#gate = await ClusterGate.open({ store: this.#gateStore, clock, log: silentLog, spanMs })
    this.#listen()
    this.world = new LinkedWorld({ server, gate: () => this.#gate })
    await settle(20)
    await this.#open(0)
    for (this.#step = 0; this.#step < steps; this.#step++) {
      await this.#act()
      if (this.random(3) === 0) await settle(this.random(10))
      await this.#look()
    }
    await this.#end()
  }

  #listen(): void {
    void this.#gate.another().then((candidate) => {
      this.#believed = candidate
    })
  }

  async #open(lost: number): Promise<void> {
    const store = openMemory({ historyBytesMax: this.#historyBytesMax })
    const { follow } = this.world
    this.#mirror = await MirrorWorld.open({ server: this.#server, store, follow, compares: this.#compares, lost })
    this.#noticed = 0
    this.#mirror.begin({}, { standing: true })
  }

  /** What is of the old cluster goes, and the edge has another mirror. */
  async #adopt(candidate: Candidate): Promise<void> {
    this.#believed = undefined
    const old = this.#mirror
    const lost = Math.max(this.#version, this.#lost)
    old.crash()
    this.world.epochs.clear()
    // By then they may stand before the one that was known again: it is believed in what was seen.
    this.#lost = lost
    this.#pasts++
    await this.#open(lost)
    this.#gate.adopted(candidate, lost)
    this.#listen()
    for (const client of this.clients) {
      client.moveTo(this.#mirror)
      // By a bookmark that a crash took from the disk, of which the next mirror cannot know.
      if (client.version > lost) client.leave()
    }
  }

  async #act(): Promise<void> {
    const { world, random } = this
    const what = random(60)
    const key = `${'abc'[random(3)]}/${random(8)}`
    const steps = `${this.#name} ${this.#step}`
    if (what < 20) this.#versions.push(world.put(key, `${steps} ${'x'.repeat(random(20) === 0 ? 30_000 : 10)}`))
    else if (what < 26) world.remove(key)
    else if (what < 29) world.cut()
    else if (what < 31) world.forget()
    else if (what < 33) world.hub.progress()
    else if (what < 34) this.#restore()
    else if (what < 35) await this.#crash()
    else if (what < 36) world.hub.drain(2_000)
    else if (what < 38) world.move()
    else if (what < 39) world.lag()
    else if (what < 40) world.catchUp()
    else if (what < 41) world.restart()
    else if (what < 42) this.#replace()
    else if (what < 48) for (let times = 0; times < 4; times++) await this.#stepSome()
    else if (what < 50) this.#someClient()?.cut()
    else if (what < 52) this.#come()
    else await this.#pass(random(3_000))
  }

  #someClient(): Client | undefined {
    return this.#version === 0 ? undefined : this.clients[this.random(this.clients.length || 1)]
  }

  /**
   * A version that was given out in the present past too says nothing of the one that a client has it from: an edge takes it for the present one's.
   * So it does one of which the disk knew nothing when that past was found to be lost.
   */
  #isMistaken(client: Client): boolean {
    const now = this.#past()
    const cache = this.#copy
    const past = client.from === undefined ? now : this.#pastOf.get(client.from)
    if (client.watcher !== undefined || client.version === 0 || past === now) return false
    if (cache === undefined || cache.isGone(client.version)) return false
    return cache.isSetBack || this.#unwritten.get(client) === client.version
  }

  async #isTakenForOwn(client: Client): Promise<boolean> {
    const cache = client.watcher === undefined ? this.#copy : client.from
    return cache !== undefined && (await client.isTakenForOwn(cache))
  }

  /** An object that was written at the very version that it had in the lost past: to a watch it is the same. */
  #hasTwin(client: Client): boolean {
    const { server } = this.#mirror
    return [...client.objects].some(([key, text]) => {
      const now = server.get('pods', key)
      if (now === undefined || now.text === text) return false
      const { uid, resourceVersion } = metadataOf(text)
      return uid === now.uid && resourceVersion === String(now.version)
    })
  }

  async #stepSome(): Promise<void> {
    const client = this.#someClient()
    if (client !== undefined) await this.#stepOf(client)
  }

  #come(): void {
    if (this.clients.length >= 4 || this.#version === 0) return
    const wish = wishes[this.random(wishes.length)] as Wish
    const client = new Client(this.#mirror, wish, this.random(3) === 0)
    client.claims = () => this.#checkClaim(client)
    this.clients.push(client)
  }

  /** Where no past was lost each version stands for one state. Of what a list found missing nothing says when it went: it may be gone already. */
  #checkClaim(client: Client): void {
    if (!this.#isPlain) return
    const { server } = this.#mirror
    const then = server.listed('pods', client.wish, client.version)
    for (const [key, text] of then)
      if (
        !client.objects.has(key) &&
        !server
          .listed('pods', client.wish)
          .values()
          .some((now) => metadataOf(now).uid === metadataOf(text).uid)
      )
        then.delete(key)
    assert.deepEqual(sorted(client.objects), [...then], says(client))
  }

  #restore(): void {
    const { world, random } = this
    const versions = this.#versions
    if (versions.length <= 5) return
    const newest = this.#server.version
    this.#isPlain = false
    const how = random(3)
    if (how === 2) {
      world.restoreBumped(versions.splice(0).at(-random(5) - 1) as number)
      return
    }
    this.#pasts++
    this.#lost = Math.max(this.#lost, newest)
    const to = versions.splice(-random(5) - 1)[0] as number
    if (how === 0) world.restore(to)
    else {
      world.restoreUnseen(to)
      this.#isUnnoticed = true
    }
  }

  async #crash(): Promise<void> {
    for (const client of this.clients) client.cut()
    this.#past()
    await this.#mirror.reopen()
    const cache = this.#mirror.copy.caches.get(followed)
    if (cache === undefined || this.#copy === undefined) return
    this.#pastOf.set(cache, this.#pastOf.get(this.#copy) as number)
    this.#copy = cache
    for (const client of this.clients) if (client.version > cache.version) this.#unwritten.set(client, client.version)
  }

  /** A copy that began anew is of another past. */
  #past(): number {
    const cache = this.#mirror.copy.caches.get(followed)
    const before = this.#copy === undefined ? 0 : (this.#pastOf.get(this.#copy) ?? 0)
    if (cache === undefined || cache === this.#copy) return before
    this.#copy = cache
    this.#pastOf.set(cache, before + 1)
    return before + 1
  }

  /**
   * One step of a client, of a part only while the whole is there to feed it: the hubs tell nothing else. One that only chance keeps from hearing that its past
   * was lost, or that this copy never knew what it saw elsewhere, is gone before, and another comes.
   */
  async #stepOf(client: Client): Promise<void> {
    if (client.watcher === undefined && client.wish !== whole && this.#mirror.place('list', whole).kind !== 'local')
      return
    if (this.#isMistaken(client) || (await this.#isTakenForOwn(client)) || this.#hasTwin(client)) client.leave()
    client.step()
  }

  /** Another cluster stands behind the hubs; or the one whose copy the edge has again, as it was. */
  #replace(): void {
    const { world, random } = this
    if (random(2) === 0) return
    const known = [...this.#clusters.values()].find(({ server }) => server === this.#mirror.server)
    if (!this.#isAtHome && known !== undefined) {
      this.#stand(known)
      return
    }
    const name = `c${this.#clusters.size + 1}`
    const { clock } = this.#server
    const server = new ApiServer({ clock, uidsBegin: `${name}-` })
    for (let at = random(10); at > 0; at--) server.put('pods', `a/${at}`, { value: `${name} first` })
    // The first epoch of a cluster is the second in which it began.
    const state = { cluster: name, epoch: random(2) === 0 ? 1 : world.hub.epoch + 1, lost: 0 }
    const cluster: Cluster = { server, versions: [], state }
    this.#clusters.set(name, cluster)
    this.#stand(cluster)
  }

  #stand({ server, state }: Cluster): void {
    const { world } = this
    const before = this.#clusters.get(this.#name)
    if (before !== undefined) before.state = world.hub.state
    this.#server.reachability.set('unreachable')
    server.reachability.set('reachable')
    this.#name = state.cluster
    world.replace(server, state)
  }

  async #pass(ms: number): Promise<void> {
    await this.#mirror.pass(ms)
    if (this.#version > 0) for (const client of this.clients) await this.#stepOf(client)
  }

  async #look(): Promise<void> {
    const { restores } = this.#mirror
    if (this.#isUnnoticed) this.#lost = Math.max(this.#lost, this.#version)
    if (restores > this.#noticed) this.#isUnnoticed = false
    this.#noticed = restores
    this.#checkExpired()
    if (this.#believed !== undefined) await this.#adopt(this.#believed)
  }

  /** None is made to list but by a past that was lost, at a version of that, or where the history of the copy is shorter than its absence. */
  #checkExpired(): void {
    for (const client of this.clients) {
      const told = client.expired.filter(
        ({ fromCloud, isBelowFloor }) => !fromCloud && !(isBelowFloor && this.#historyBytesMax === short),
      )
      const what = `${says(client)} was told 410 at ${told.map(({ version }) => version)}`
      // Once for each, and once where it stood at a version of either past when the new one grew beyond both.
      assert.ok(told.length <= 2 * this.#pasts, `${what}, not ${2 * this.#pasts} times`)
      assert.ok(
        told.every(({ version }) => version <= this.#lost),
        `${what}, beyond what was lost, ${this.#lost}`,
      )
    }
  }

  async #end(): Promise<void> {
    const { world } = this
    world.catchUp()
    const isDone = () =>
      this.#isAtHome &&
      this.#believed === undefined &&
      sorted(this.#held()).join() === [...this.#server.listed('pods')].join() &&
      this.clients.every((client) => client.isRight())
    for (let second = 0; second < 600 && !isDone(); second++) {
      // Two pasts that both stand at one version differ without a sign until the cluster moves on, as clusters do.
      if (this.#server.version <= this.#version) world.put('a/0', `the last ${second}`)
      for (let turns = 0; turns < 4; turns++) await this.#pass(250)
      await this.#look()
    }
    assert.ok(this.#isAtHome, 'the edge has not come to the cluster of its hubs')
    assert.deepEqual(sorted(this.#held()), [...this.#server.listed('pods')], 'the copy is not what the cluster has')
    for (const client of this.clients) client.assertRight()
    assert.equal(this.#mirror.comparison.found, 0, 'differences without a sign')
    for (const client of this.clients) client.cut()
    await this.#mirror.stop()
    world.stop()
  }

  #held(): Map<string, string> {
    const { cloud } = this.#mirror.copy.caches.get(followed) ?? {}
    return new Map([...(cloud?.all() ?? [])].map(({ key, bytes }) => [key, bytes.toString()]))
  }
}

function metadataOf(text: string): { readonly uid: string; readonly resourceVersion: string } {
  return (JSON.parse(text) as { metadata: { uid: string; resourceVersion: string } }).metadata
}

function sorted(objects: ReadonlyMap<string, string>): [string, string][] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1))
}

function says({ wish, version }: Client): string {
  return `the client of ${JSON.stringify(wish)} at ${version}`
}
