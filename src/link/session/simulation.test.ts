/**
 * Random lives of hubs and edges: lines that are slow, cut anywhere or die in silence, either side restarted, edges that move
 * between hubs of different versions, histories that are too short, clusters put back, with or without a hub that notices, and replaced, copies damaged.
 * AKE_SEED repeats a run that failed, AKE_SEEDS says how many there are.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveEach, lives } from '../../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../../base/seeded.test-support.ts'
import type { SimulatedEdge } from './edgemodel.test-support.ts'
import { selects } from './hubmodel.test-support.ts'
import { SimulatedWorld } from './world.test-support.ts'

const all = 300
const runs = lives(all)

class Life {
  readonly world: SimulatedWorld
  readonly random: SeededRandom
  /** How far each source of each hub is behind the cluster, at most. */
  constructor(seed: number) {
    this.random = seeded(seed)
    this.world = new SimulatedWorld(this.random)
  }

  live(): void {
    for (let steps = 20 + this.random(60); steps > 0; steps--) this.#step()
    this.#settle()
  }

  #step(): void {
    const { world, random } = this
    const edge = world.edges[random(world.edges.length)] as SimulatedEdge
    const hub = world.hubs[random(2)]!
    const what = random(100)
    if (what < 35) for (let some = random(12); some >= 0; some--) world.write()
    else if (what < 60) {
      for (const source of [0, 1])
        if (random(2) === 0) hub.advance(world.cluster, source, world.cluster.version - random(10))
      hub.progress(random(2))
    } else if (what < 75) {
      if (!world.lines.has(edge)) world.connect(edge, hub)
    } else if (what < 80) world.connect(edge, hub)
    else if (what < 84) world.cut(edge)
    else if (what < 86) world.crash(edge)
    else if (what < 88) {
      const line = world.lines.get(edge)
      if (line !== undefined) line.silentSince ??= world.now
    } else if (what < 89) world.restartHub(hub)
    else if (what < 90) {
      if (random(3) === 0)
        world.cluster.restore(world.cluster.version - random(Math.min(20, world.cluster.version - 10) + 1))
    } else if (what < 91) {
      if (random(6) === 0) world.replaceCluster()
      else if (random(3) === 0) this.#restoreUnseen()
    } else if (what < 93) this.#learn(hub)
    else if (what < 95) world.commitMs = [0, 5, 300, 4_000][random(4)] as number
    else if (what < 97) {
      const name = [...edge.copies.keys()][random(edge.copies.size)] as string
      edge.recheck(name, ([undefined, undefined, 'compare', 'anew'] as const)[random(4)])
    } else if (what < 98) world.lines.get(edge)?.end.session.drain(random(3_000), 'elsewhere, please', world.now)
    else this.#damage(edge)
    world.tickAll()
    world.run(random(3) === 0 ? random(4_000) : random(100))
  }

  #learn(hub: SimulatedWorld['hubs'][number]): void {
    const { world } = this
    if (hub.uid !== world.cluster.uid) world.restartHub(hub)
    else if (hub.epoch !== world.cluster.epoch) hub.start(world.cluster)
  }

  #restoreUnseen(): void {
    const { world, random } = this
    world.restoreUnseen(world.cluster.version - random(Math.min(20, world.cluster.version - 10) + 1))
  }

  #damage(edge: SimulatedEdge): void {
    const { random } = this
    const copy = [...edge.copies.values()][random(edge.copies.size)]!
    const keys = [...copy.objects.keys()]
    if (keys.length === 0 || edge.hasWork) return
    edge.isDamaged = true
    edge.damage(copy.name, keys[random(keys.length)] as string, undefined)
  }

  /** Faults end; everything is as it should be after a while. */
  #settle(): void {
    const { world } = this
    world.commitMs = 1
    // Nothing is written after it: what an edge had is ahead of all there is.
    if (this.random(4) === 0) this.#restoreUnseen()
    for (const hub of world.hubs) {
      this.#learn(hub)
      for (const source of [0, 1]) {
        hub.advance(world.cluster, source, world.cluster.version)
        hub.progress(source)
      }
    }
    this.#rest()
    // What was damaged is found by looking at it.
    for (const edge of world.edges) for (const name of edge.copies.keys()) edge.recheck(name)
    this.#rest()
    for (const edge of world.edges) {
      for (const copy of edge.copies.values()) {
        const { source, matches } = selects(copy.name)
        const expected = [...world.cluster.at(source, world.cluster.version).values()].filter(matches)
        const spelled = (all: Iterable<{ key: string; bytes: Buffer }>) =>
          [...all].map(({ key, bytes }) => `${key} ${bytes.toString('latin1')}`).sort()
        const found = [...copy.objects].map(([key, { bytes }]) => ({ key, bytes }))
        assert.deepEqual(spelled(found), spelled(expected), `${edge.name} ${copy.name}`)
        assert.equal(copy.version, world.cluster.version, `${edge.name} ${copy.name} is synced`)
        assert.equal(copy.wish, 'resume')
      }
    }
  }

  #rest(): void {
    const { world } = this
    for (let tries = 0; tries < 40; tries++) {
      for (const edge of world.edges) {
        if (!world.lines.has(edge)) world.connect(edge, world.hubs[this.random(2)]!)
        const line = world.lines.get(edge)
        if (line === undefined) continue
        line.latencyMs = Math.min(line.latencyMs, 20)
        line.bytesPerMs = 1_000
      }
      world.tickAll()
      world.run(tries < 3 ? 200 : 6_000)
      const isReached = world.edges.every((edge) =>
        [...edge.copies.values()].every((copy) => copy.version === world.cluster.version && copy.wish === 'resume'),
      )
      // What is asked over a line that died in silence is lost, and its edge seems to be current until it notices.
      const isHeard = [...world.lines.values()].every(({ silentSince }) => silentSince === undefined)
      if (isReached && isHeard && world.isQuiet && world.lines.size === world.edges.length) return
    }
  }
}

test('[L1, L2, L7] whatever happens to hubs, lines, edges and the cluster, every copy becomes the hub’s and no reader is misled', async () => {
  const total: Record<string, number> = {}
  const live = (seed: number) => {
    const life = new Life(seed)
    life.live()
    for (const { figures } of life.world.edges)
      for (const [what, count] of Object.entries(figures)) total[what] = (total[what] ?? 0) + count
  }
  await liveEach({ file: import.meta.filename, all, live })
  console.log(
    `${runs} lives: ${Object.entries(total)
      .map(([what, count]) => `${what} ${count}`)
      .join(', ')}`,
  )
  if (runs < 100) return
  for (const [what, count] of Object.entries(total)) assert.ok(count > 0, `no life had one: ${what}`)
})
