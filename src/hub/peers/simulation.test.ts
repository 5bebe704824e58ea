/**
 * Random lives of two hubs over one API server: edges that come, go, move from one to the other, take nothing for a while or are cut anywhere, hubs that are killed and
 * begin anew, histories that are too short, a cloud that breaks off and compacts, interests that end for want of readers, a cluster that is put back, and one that only seems to be.
 * Wherever an edge claims a version its copy is what the cluster had then, what is held for an edge is bounded, and in the end all have what they want, and nothing is left of links that have ended. AKE_SEED repeats a run that failed, AKE_SEEDS says how many there are.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveEach, lives } from '../../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../../base/seeded.test-support.ts'
import { type SessionLimits, sessionLimits } from '../../link/session/limits.ts'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { settle } from '../../mirror/world.test-support.ts'
import { type EdgeCopy, HubWorld, type TestEdge } from './hub.test-support.ts'

const all = 20
const runs = lives(all)
const stepsPerRun = 80

type Held = {
  readonly key: string
  readonly thing: { readonly node?: string; readonly labels?: Record<string, string> }
}

/** By name, what each selects. */
const wishes: Readonly<Record<string, (held: Held) => boolean>> = {
  'v1/pods': () => true,
  'v1/pods@a': ({ key }) => key.startsWith('a/'),
  'v1/pods@a?&metadata.name=k1': ({ key }) => key === 'a/k1',
  'v1/pods@b?&metadata.name=k0': ({ key }) => key === 'b/k0',
  'v1/pods?app=web&': ({ thing }) => thing.labels?.app === 'web',
  'v1/pods@b?app=web&': ({ key, thing }) => key.startsWith('b/') && thing.labels?.app === 'web',
  'v1/pods?&spec.nodeName=n1': ({ thing }) => thing.node === 'n1',
  'v1/pods?&spec.nodeName!=n1': ({ thing }) => thing.node !== 'n1',
  'v1/configmaps@a': ({ key }) => key.startsWith('a/'),
}
const names = Object.keys(wishes)
const resourceOf = (name: string) => (name.startsWith('v1/pods') ? 'pods' : 'configmaps')

/** What the cluster had at versions of lost pasts, by resource and version, each with the last epoch in which edges may claim it. */
type Pasts = Map<string, { readonly epoch: number; readonly state: State }[]>
type State = ReadonlyMap<string, Held & { readonly version: number }>

const resources = ['pods', 'configmaps']
/** A hub ends what no edge has wanted for five minutes. */
const unusedMs = 320_000
const largest = 20_000
/** Of what a hub holds for an edge beside what waits: a block, requests, frames on their way. */
const slackBytes = 8_000

const smallLimits: SessionLimits = {
  ...sessionLimits,
  ...{
    windowWanted: sessionLimits.windowMin,
    waitingBytesMax: 3_000,
    blockObjectBytes: 600,
    pieceBytes: 200,
    differingMax: 3,
    batchBytes: 400,
  },
}

class HubsLife {
  readonly random: SeededRandom
  readonly #server = new ApiServer()
  readonly #hubs: HubWorld[] = []
  readonly edges: TestEdge[] = []
  readonly #pasts: Pasts = new Map()
  readonly #limits: SessionLimits
  readonly #historyBytesMax: number
  /** Versions before it are not of this past, though they were not given out again. */
  #begun = 1
  /** What the hubs have written down of their cluster. */
  #epoch = 1
  #lost = 0
  /** What went wrong while frames were taken, since the life last looked. */
  readonly #failures: unknown[] = []

  constructor(seed: number) {
    this.random = seeded(seed)
    this.#limits = this.random(3) === 0 ? sessionLimits : smallLimits
    this.#historyBytesMax = this.random(3) === 0 ? 2_000 : 1 << 30
  }

  #some<T>(of: readonly T[]): T {
    return of[this.random(of.length)] as T
  }

  async live(): Promise<void> {
    try {
      await this.#live()
      this.#checkFailures()
    } finally {
      await this.#over()
    }
  }

  async #live(): Promise<void> {
    for (let at = 0; at < 6; at++) this.#write()
    for (let at = 0; at < 2; at++) this.#hubs.push(await this.#open())
    for (const name of ['e0', 'e1', 'e2']) {
      const wanted = new Set([this.#some(names), this.#some(names), this.#some(names)])
      const edge = this.#some(this.#hubs).edge(name, ...wanted)
      edge.claims = (copy) => this.#compare(edge, copy, copy.version)
      edge.failed = (error) => this.#failures.push(error)
      this.edges.push(edge)
    }
    for (let step = 0; step < stepsPerRun; step++) {
      await this.#some(this.#steps)()
      for (const edge of this.edges) edge.tick()
      this.#checkMemory()
      this.#checkFailures()
    }
    await this.#end()
  }

  #checkFailures(): void {
    for (const failure of this.#failures.splice(0)) throw failure
  }

  /** Also where it failed: nothing of it goes on in the next one. */
  async #over(): Promise<void> {
    for (const edge of this.edges) edge.line?.lose()
    for (const hub of this.#hubs) hub.kill()
    await settle(6)
    this.#checkFailures()
  }

  async #open(): Promise<HubWorld> {
    return await HubWorld.open({
      ...{ server: this.#server, historyBytesMax: this.#historyBytesMax, limits: this.#limits },
      ...{ epoch: this.#epoch, lost: this.#lost, restored: (hub) => this.#restored(hub) },
    })
  }

  readonly #steps: readonly (() => void | Promise<void>)[] = [
    () => this.#write(),
    () => this.#write(),
    () => this.#write(),
    () => this.#hub.settle(),
    () => this.#hub.pass(this.random(4) === 0 ? 30_000 : 500),
    () => this.#again(this.#some(this.edges)),
    () => this.#again(this.#some(this.edges)),
    () => this.#some(this.edges).line?.lose(),
    () => {
      const { line } = this.#some(this.edges)
      if (line !== undefined) line.isHeldUp = true
    },
    // It takes nothing while more happens than is held for it.
    async () => {
      const { line } = this.#some(this.edges)
      if (line === undefined || this.random(8) > 0) return
      line.isHeldUp = true
      for (let at = 0; at < 24; at++) {
        this.#write(2)
        if (at % 6 === 5) await this.#hub.pass(50)
        this.#checkMemory()
      }
    },
    () => this.#some(this.edges).line?.release(),
    () => this.#server.cutWatches(),
    () => {
      this.#server.cutWatches()
      for (let at = this.random(4); at > 0; at--) this.#write()
      this.#server.compact()
    },
    () => this.#server.bookmark(),
    () => {
      const edge = this.#some(this.edges)
      edge.line?.lose()
      edge.world = this.#some(this.#hubs)
      edge.connect()
    },
    () => (this.random(2) === 0 ? this.#restart(this.random(this.#hubs.length)) : undefined),
    () => (this.random(3) === 0 ? this.#restore() : undefined),
    // It is never wrong to say so.
    () => (this.random(3) === 0 ? this.#doubt() : undefined),
  ]

  get #hub(): HubWorld {
    return this.#hubs[0] as HubWorld
  }

  /** One in so many is large. */
  #write(largeOneIn = 10): void {
    const [resource, key] = [this.#some(['pods', ...resources]), `${this.#some(['a', 'b'])}/k${this.random(4)}`]
    if (this.random(4) === 0) this.#server.remove(resource, key)
    else {
      const labels = { app: this.#some(['web', 'db']) }
      const value = this.random(largeOneIn) === 0 ? noise(this.random) : 'v'.repeat(40)
      this.#server.put(resource, key, { node: this.#some(['n1', 'n2']), labels, value })
    }
  }

  #again(edge: TestEdge): void {
    assert.notEqual(edge.ended?.reason, 'frame', edge.ended?.sentence ?? '')
    if (edge.line === undefined || edge.line.isOver) edge.connect()
    for (const copy of edge.copies) if (copy.refusal !== undefined) edge.resubscribe(copy)
  }

  /** Another process in its place, that knows what is written down; its edges come to it again. */
  async #restart(at: number): Promise<void> {
    const old = this.#hubs[at] as HubWorld
    const edges = this.edges.filter(({ world }) => world === old)
    for (const { line } of edges) line?.lose()
    this.#checkEnded(old)
    old.kill()
    const next = await this.#open()
    this.#hubs[at] = next
    for (const edge of edges) edge.world = next
  }

  /** Under versions that go on, or under those that were given out before. */
  async #restore(): Promise<void> {
    const server = this.#server
    const isBumped = this.random(2) === 0
    for (let version = this.#begun; version <= server.version; version++)
      for (const resource of resources) {
        const past = this.#pasts.getOrInsertComputed(`${resource} ${version}`, () => [])
        const epoch = isBumped ? Number.POSITIVE_INFINITY : this.#epoch
        past.push({ epoch, state: server.stateAt(resource, version) })
      }
    const to = server.version - this.random(Math.min(12, server.version - this.#begun + 1))
    if (isBumped) {
      server.restore(to, 1_000)
      this.#begun = server.version
      return
    }
    this.#lost = Math.max(this.#lost, server.version)
    server.restore(to)
    // What two pasts have at one version a hub could not tell apart: nothing is written before hubs have noticed, or an operator says so.
    const epoch = this.#epoch
    for (let second = this.random(20); second > 0 && this.#epoch === epoch; second--) await this.#hub.pass(1_000)
    if (this.#epoch === epoch) this.#doubt()
  }

  /** The mirror of a hub has noticed: it is written down, and the others take it over. */
  #restored(hub: HubWorld): void {
    hub.sources.doubted()
    this.#raise(hub)
  }

  #doubt(): void {
    this.#raise()
  }

  #raise(noticed?: HubWorld): void {
    this.#epoch++
    this.#lost = Math.max(this.#lost, this.#server.version)
    for (const hub of this.#hubs) {
      if (hub !== noticed) hub.mirror.interests.doubt()
      hub.sources.doubted()
      hub.peers.lost(this.#epoch, this.#lost)
    }
  }

  /** What a copy is at a version is what the cluster had then, in the past of its epoch. */
  #compare(edge: TestEdge, copy: EdgeCopy, version: number): void {
    const resource = resourceOf(copy.name)
    const pasts = (this.#pasts.get(`${resource} ${version}`) ?? []).filter(({ epoch }) => epoch >= edge.epoch)
    const states = pasts.map(({ state }) => state)
    if (version >= this.#begun || states.length === 0) states.push(this.#server.stateAt(resource, version))
    const spell = (all: Iterable<readonly [string, number]>) => [...all].map(([key, at]) => `${key}@${at}`).sort()
    const has = spell([...copy.objects].map(([key, held]) => [key, held.version] as const))
    const could = states.map((state) =>
      spell([...state.values()].filter((held) => wishes[copy.name]?.(held)).map(({ key, version: at }) => [key, at])),
    )
    if (could.some((one) => one.join() === has.join())) return
    assert.deepEqual(has, could.at(-1), `${edge.name}: ${copy.name} at ${version} in epoch ${edge.epoch}`)
  }

  /** What each hub holds for an edge, whatever that takes. */
  #checkMemory(): void {
    const { waitingBytesMax, blockObjectBytes } = this.#limits
    // A block has so many bytes, or one object.
    const blockMax = Math.max(largest, Math.min(blockObjectBytes, 16 * largest))
    const heldMax = waitingBytesMax + blockMax + slackBytes
    for (const { peers } of this.#hubs)
      for (const { edge, heldBytes } of peers.figures())
        assert.ok(heldBytes <= heldMax, `${heldBytes} bytes are held for ${edge}, more than ${heldMax}`)
  }

  #isDone(): boolean {
    return this.edges.every(({ copies, line, epoch }) => {
      if (line?.isOver !== false || epoch !== this.#epoch) return false
      return copies.every(({ name, version, objects, wish }) => {
        const wanted = [...this.#server.stateAt(resourceOf(name), this.#server.version).values()].filter((one) =>
          wishes[name]?.(one),
        )
        const isEqual = wanted.every(({ key, version: at }) => objects.get(key)?.version === at)
        return version > 0 && wish === 'resume' && isEqual && objects.size === wanted.length
      })
    })
  }

  async #end(): Promise<void> {
    for (let second = 0; second < 400 && !this.#isDone(); second++) {
      for (const edge of this.edges) {
        if (edge.line?.isHeldUp === true) edge.line.release()
        this.#again(edge)
        edge.tick()
      }
      // A cluster does not stand still. A doubted copy of the very version at which it stands, with other content, waits until it has gone on (docs/link.md, Epochs).
      if (second % 10 === 9) this.#server.put('leases', 'a/renewed')
      await this.#hub.pass(500)
      this.#checkMemory()
      this.#checkFailures()
    }
    for (const edge of this.edges) {
      assert.equal(edge.epoch, this.#epoch, `the epoch of ${edge.name}`)
      for (const copy of edge.copies) this.#compare(edge, copy, this.#server.version)
    }
    for (const { line } of this.edges) line?.lose()
    for (const hub of this.#hubs) this.#checkEnded(hub)
    await this.#hub.pass(unusedMs, 10)
    for (const hub of this.#hubs) {
      assert.deepEqual(hub.sources.figures(), [], 'what no edge wants is followed')
      await hub[Symbol.asyncDispose]()
    }
    // What was killed leaves timers that do nothing; one that is set again and again would be of a link, or of a hub, that lives on.
    for (let hour = 0; hour < 3; hour++) await this.#hub.pass(3_600_000, 4)
    assert.equal(this.#server.clock.pending(), 0, 'timers of what has ended')
  }

  /** Of links that have ended nothing is left. */
  #checkEnded(hub: HubWorld): void {
    assert.deepEqual(
      [hub.peers.size, [...hub.peers.names()], hub.peers.figures()],
      [0, [], []],
      'links that have ended',
    )
    for (const { name, readers } of hub.sources.figures())
      assert.equal(readers, 0, `what links that have ended read of ${name}`)
  }
}

/** What no delta makes small. */
function noise(random: SeededRandom): string {
  return Array.from({ length: largest / 4 }, () => (random(36 ** 4 - 36 ** 3) + 36 ** 3).toString(36)).join('')
}

async function live(seed: number): Promise<string[]> {
  const life = new HubsLife(seed)
  await life.live()
  return life.edges.flatMap(({ copies }) => copies.flatMap(({ starts }) => starts))
}

test('[L1, L2] random lives: what edges claim is true, and in the end they have everything', async () => {
  const starts = new Set<string>()
  const lived = async (seed: number) => {
    for (const start of await live(seed)) starts.add(start)
  }
  await liveEach({ file: import.meta.filename, all, live: lived })
  // It was worth it: interests began in each way that a hub which is not put back has.
  if (runs >= 20)
    for (const start of ['snapshot', 'replay', 'compare']) assert.ok(starts.has(start), `none began by ${start}`)
})
