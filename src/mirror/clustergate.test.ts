/** The gate before every connection: who is let in, what is remembered, when another cluster is told of. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { createLog } from '../base/log.ts'
import { openMemory } from '../store/memory.ts'
import type { Arrival } from '../upstream/upstream.ts'
import type { Candidate } from './cluster.ts'
import { ClusterGate } from './clustergate.ts'

const spanMs = 10_000

class World {
  readonly clock = fakeClock()
  readonly store = openMemory({ historyBytesMax: 1 << 20 })
  readonly lines: string[] = []
  gate!: ClusterGate
  #told: Candidate | undefined
  /** What answers at each address: a uid, a status, or a page. */
  readonly answers = new Map<string, string | number>([['x', 'a']])
  authority = 'ca'
  server = 'one'
  isOwn = true
  asked = 0

  static async open(): Promise<World> {
    const world = new World()
    await world.restart()
    return world
  }

  async restart(): Promise<void> {
    const log = createLog({ level: 'info', write: (line) => void this.lines.push(line) })
    this.gate = await ClusterGate.open({ store: this.store, clock: this.clock, log, spanMs })
    this.listen()
  }

  listen(): void {
    this.#told = undefined
    void this.gate.another().then((candidate) => {
      this.#told = candidate
    })
  }

  get told(): Candidate | undefined {
    return this.#told
  }

  arrival(address = 'x'): Arrival {
    return {
      address,
      addresses: [...this.answers.keys()],
      server: this.server,
      isOwn: this.isOwn,
      authorities: [this.authority],
      get: async () => {
        this.asked++
        const answer = this.answers.get(address) ?? 404
        if (typeof answer === 'number') return { status: answer, body: Buffer.from('{"kind":"Status"}') }
        if (answer.startsWith('<')) return { status: 200, body: Buffer.from(answer) }
        const namespace = { kind: 'Namespace', metadata: { name: 'kube-system', uid: answer } }
        return { status: 200, body: Buffer.from(JSON.stringify(namespace)) }
      },
    }
  }

  async admits(address = 'x'): Promise<boolean> {
    return (await this.gate.admit(this.arrival(address))) === undefined
  }

  /** Connections are tried all the time. */
  async pass(ms: number, address = 'x'): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
      await this.admits(address)
      this.clock.advance(1_000)
    }
    await this.admits(address)
  }
}

test('[A10] the first cluster that answers is the known one, over restarts too', async () => {
  const world = await World.open()
  world.answers.set('x', '<html>')
  assert.equal(await world.admits(), false, 'not before it has said which it is')
  assert.equal(world.gate.known?.uid, undefined)
  world.answers.set('x', 'a')
  assert.equal(await world.admits(), true)
  await world.restart()
  assert.equal(world.gate.known?.uid, 'a')
  world.answers.set('x', 'b')
  assert.equal(await world.admits(), false)
  assert.equal(world.lines.filter((line) => line.includes('cluster.other')).length, 1)
  await world.admits()
  assert.equal(world.lines.filter((line) => line.includes('cluster.other')).length, 1, 'said once')
})

test('[A10] another cluster is told of once it has answered for the whole span, and nobody is let in until it is adopted', async () => {
  const world = await World.open()
  await world.admits()
  world.answers.set('x', 'b')
  await world.pass(spanMs - 1_000)
  assert.equal(world.told?.uid, undefined)
  await world.pass(1_000)
  assert.equal(world.told?.uid, 'b')
  assert.equal(await world.admits(), false)
  world.answers.set('x', 'a')
  assert.equal(await world.admits(), false, 'the old one neither: its copy is being dropped')
  const { gate, told } = world
  await world.store.commit({ changes: [], records: [gate.recordOf(told as Candidate, 70)], synced: true })
  gate.adopted(told as Candidate, 70)
  assert.equal(await world.admits(), false, 'the old one is another now')
  world.answers.set('x', 'b')
  assert.equal(await world.admits(), true)
  await world.restart()
  assert.deepEqual([world.gate.known?.uid, world.gate.lost], ['b', 70])
})

test('[A10] a disk that refuses the change leaves the known cluster, and it is tried again', async () => {
  const world = await World.open()
  await world.admits()
  world.answers.set('x', 'b')
  await world.pass(spanMs)
  assert.ok(world.told)
  world.gate.declined()
  world.listen()
  assert.equal(world.gate.known?.uid, 'a')
  await world.admits()
  await Promise.resolve()
  assert.ok(world.told)
})

test('[A10] one answer of the known cluster, or a probe over a connection of its own, begins the span anew', async () => {
  for (const sign of ['connection', 'probe'] as const) {
    const world = await World.open()
    await world.admits()
    for (let round = 0; round < 5; round++) {
      world.answers.set('x', 'b')
      await world.pass(spanMs - 1_000)
      world.answers.set('x', 'a')
      if (sign === 'connection') assert.equal(await world.admits(), true)
      else assert.equal(await world.gate.look(world.arrival()), undefined)
    }
    assert.equal(world.told?.uid, undefined)
  }
})

test('[A10] refusals, pages, faults and a rotated authority wipe nothing', async () => {
  const world = await World.open()
  await world.admits()
  for (const answer of [403, 401]) {
    world.answers.set('x', answer)
    assert.equal(await world.admits(), true, `${answer} at the known address is no other cluster`)
  }
  assert.equal(world.gate.known?.uid, 'a', 'nor is the uid forgotten')
  for (const answer of ['<html>', 500, 429, 302, 404]) {
    world.answers.set('x', answer)
    await world.pass(10 * spanMs)
    assert.equal(await world.admits(), false, `${answer} says nothing`)
  }
  world.authority = 'new'
  world.answers.set('x', 'a')
  assert.equal(await world.admits(), true)
  assert.equal(world.told?.uid, undefined)
})

test('[A10] where the edge has no valid credential the API server is not asked over each connection, which it would close', async () => {
  const world = await World.open()
  await world.admits()
  world.answers.set('x', 401)
  await world.admits()
  const { asked } = world
  for (let arrivals = 0; arrivals < 5; arrivals++) assert.equal(await world.admits(), true)
  assert.equal(world.asked, asked)
  world.clock.advance(60_000)
  world.answers.set('x', 'b')
  assert.equal(await world.admits(), false, 'but again after a while')
})

test('[A10] where the uid cannot be read another address with another authority is another cluster', async () => {
  const world = await World.open()
  world.answers.set('x', 403)
  assert.equal(await world.admits(), true)
  assert.equal(world.gate.known?.uid, '')
  world.answers.delete('x')
  world.answers.set('y', 403)
  world.authority = 'theirs'
  assert.equal(await world.admits('y'), false)
  await world.pass(spanMs, 'y')
  assert.deepEqual(world.told?.addresses, ['y'])
})

test('[A10] of several addresses the one of another cluster is refused, also while the others are silent', async () => {
  const world = await World.open()
  world.answers.set('y', 'b')
  assert.deepEqual([await world.admits('x'), await world.admits('y')], [true, false])
  await world.pass(10 * spanMs, 'y')
  assert.equal(world.told?.uid, undefined)
  assert.equal(await world.admits('x'), true)
})

test('[A10] over a connection that stays, a gateway may lead elsewhere: that is asked now and then', async () => {
  const world = await World.open()
  await world.admits()
  const look = () => world.gate.look(world.arrival())
  world.answers.set('x', 500)
  world.clock.advance(60_000)
  assert.equal(await look(), undefined, 'what says nothing changes nothing')
  world.answers.set('x', 'a')
  await look()
  const { asked } = world
  for (let second = 0; second < 29; second++) {
    await look()
    world.clock.advance(1_000)
  }
  assert.equal(world.asked, asked)
  assert.equal(await world.gate.look(world.arrival(), 500), undefined, 'a part that wants to be sure')
  assert.equal(world.asked, asked + 1)
  await world.gate.look(world.arrival(), 500)
  assert.equal(world.asked, asked + 1, 'one answer is for all that ask together')
  world.answers.set('x', 'b')
  world.clock.advance(30_000)
  assert.match((await look()) ?? '', /another cluster answers \(uid b\) than the one that is mirrored \(uid a\)/)
  world.answers.set('x', 'a')
  world.asked = 0
  assert.equal(await world.admits(), true)
  assert.equal(world.asked, 3, 'where another was seen lately, once is not enough')
})

test('[A10] a balancer may lead a caller elsewhere than the edge: a server that was seen to be of another cluster gets nothing', async () => {
  const world = await World.open()
  await world.admits()
  world.answers.set('x', 'b')
  world.server = 'two'
  assert.equal(await world.admits(), false)
  world.answers.set('x', 'a')
  world.isOwn = false
  assert.equal(await world.admits(), false, 'although the edge itself reaches the known one')
  world.server = 'one'
  assert.equal(await world.admits(), true)
  world.server = 'two'
  world.isOwn = true
  assert.equal(await world.admits(), true)
  world.isOwn = false
  assert.equal(await world.admits(), true, 'one that has answered for the known one since')
})
