/**
 * Random lives of a mirror: interests that come, widen and go, clients that are cut anywhere, a cloud that refuses, breaks off,
 * compacts and is put back to earlier states, a disk that is full for a while, a process that is killed at any instant. In the
 * end every client knows exactly what the API server has, and none was made to list again. AKE_SEED repeats a run that failed,
 * AKE_LIVES says how many there are.
 */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lives } from '../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../base/seeded.test-support.ts'
import { openDurable } from '../store/durable.ts'
import type { Store } from '../store/store.ts'
import { ApiServer, type Fault, type ServerRequest } from './apiserver.test-support.ts'
import { Client } from './client.test-support.ts'
import { covers } from './interest.ts'
import { MirrorWorld, scopeOf, settle, type Wish } from './world.test-support.ts'

const runs = lives(300)
const stepsPerRun = 120
const firstSeed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 1e9))

const wishes: readonly Wish[] = [
  {},
  { namespace: 'a' },
  { namespace: 'a', fields: 'metadata.name=k1' },
  { namespace: 'b', fields: 'metadata.name=k0' },
  { labels: 'app=web' },
  { labels: 'app=web', namespace: 'b' },
  { labels: 'app!=web,tier' },
  { fields: 'spec.nodeName=n1' },
  { fields: 'spec.nodeName=n1', labels: 'app=web' },
  { fields: 'spec.nodeName!=n1' },
  { resource: 'configmaps' },
  { resource: 'configmaps', namespace: 'a' },
]

/** Watches of an API server that is not itself: they end, say nothing that can be taken, or say it of something else. */
function wrongWatches(version: number): Fault[] {
  const bookmark = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${version}"}}}\n`
  const other = '"metadata":{"name":"x","namespace":"a","resourceVersion":"999999"}'
  return [
    { kind: 'text', text: '' },
    { kind: 'text', text: bookmark },
    { kind: 'text', text: `${bookmark}<html>\n`, open: true },
    { kind: 'text', text: '{"type":"ADDED","obj' },
    { kind: 'text', text: `{"type":"ADDED","object":{"kind":"Ox","apiVersion":"v1",${other}}}\n`, open: true },
    { kind: 'text', text: `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v7",${other}}}\n`, open: true },
    { kind: 'text', text: '{"type":"ERROR","object":{"kind":"Status","code":500}}\n', open: true },
  ]
}

class Simulation {
  readonly random: SeededRandom
  readonly server: ApiServer
  readonly world: MirrorWorld
  readonly clients: Client[] = []
  readonly #story: string[] = []
  /** Restores to lower versions so far, and the newest version that was lost with one. */
  #restores = 0
  #lost = 0
  /** Lists that a fault of ours makes anew, or may make anew. */
  #excuses = 0
  readonly #idle: () => Promise<void>

  constructor(seed: number, parts: { store?: Store; idle?: () => Promise<void> } = {}) {
    this.random = seeded(seed)
    this.server = new ApiServer({ random: this.random })
    this.server.pageMax = 1 + this.random(5)
    this.#idle = parts.idle ?? (async () => {})
    this.world = new MirrorWorld({
      server: this.server,
      compares: true,
      ...(parts.store === undefined ? {} : { store: parts.store }),
    })
  }

  get story(): string {
    return this.#story.join(' ')
  }

  #one<T>(from: readonly T[]): T {
    return from[this.random(from.length)] as T
  }

  #say(what: string): void {
    this.#story.push(what)
  }

  #write(): void {
    const resource = this.random(5) === 0 ? 'configmaps' : 'pods'
    const key = `${this.#one(['a', 'b', 'c'])}/k${this.random(5)}`
    if (this.server.get(resource, key) !== undefined && this.random(3) === 0) this.server.remove(resource, key)
    else {
      const labels = { ...this.#one([{}, { app: 'web' }, { app: 'api' }]), ...this.#one([{}, { tier: 'x' }]) }
      const value = `${this.random(1e6)}`
      this.server.put(resource, key, { value, labels, ...this.#one([{}, { node: 'n1' }, { node: 'n2' }]) })
    }
  }

  async #turn(): Promise<void> {
    await settle()
    await this.#idle()
    for (const client of this.clients) client.step()
  }

  async #pass(ms: number, steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.server.clock.advance(ms / steps)
      await this.#turn()
    }
  }

  #faults(): (request: ServerRequest) => Fault | undefined {
    const permille = this.#one([50, 200, 500])
    const refusing = this.random(6) === 0 ? this.#one([401, 403, 404]) : 0
    return ({ what, query }) => {
      if (refusing !== 0) return this.random(2) === 0 ? { kind: 'status', code: refusing } : undefined
      if (this.random(1000) >= permille) return undefined
      this.#excuses++
      if (what === 'watch' && this.random(2) === 0) return this.#one(wrongWatches(Number(query.get('resourceVersion'))))
      return this.#one<Fault>([
        { kind: 'refuse' },
        { kind: 'status', code: 429, retryAfter: 1 },
        { kind: 'status', code: 429, retryAfter: 'Thu, 01 Jan 2026 00:00:05 GMT' },
        { kind: 'text', text: 'null' },
        { kind: 'status', code: 500 },
        { kind: 'status', code: 502 },
        { kind: 'cut', after: this.random(800) },
        { kind: 'slow', ms: this.random(3_000) },
      ])
    }
  }

  #drop(): void {
    // It has no watchers, and what it covers has another.
    for (const mirrored of this.world.interests.all) {
      if (mirrored.cache === undefined || mirrored.cache.watchers.size > 0) continue
      const others = [...this.world.interests.all].filter((one) => one !== mirrored && one.cache !== undefined)
      const needed = this.clients.some(
        ({ wish }) =>
          covers(mirrored.interest, scopeOf(wish)) && !others.some((one) => covers(one.interest, scopeOf(wish))),
      )
      if (needed) continue
      this.#say(`drop(${mirrored.interest.name})`)
      void this.world.interests.end(mirrored, 'a test')
      return
    }
  }

  /** Everything works again, and time enough passes for every client to notice. */
  async heal(seconds = 150): Promise<void> {
    this.server.fault = () => undefined
    this.world.refusing = false
    this.server.reachability.set('reachable')
    await this.#pass(seconds * 1_000, seconds / 3)
    this.server.bookmark()
    await this.#pass(20_000, 20)
    // A client takes a frame at a time: one that has many before it gets the time to take them all.
    for (let turn = 0; turn < 300 && !this.clients.every((client) => client.idle); turn++) await this.#pass(100, 1)
  }

  /** Put back while the edge was away, and grown beyond all that the edge ever saw by the time it is there again. */
  async #overtake(): Promise<void> {
    await this.heal()
    const { version } = this.server
    const to = 1 + this.random(version)
    this.#say(`overtake(${to})`)
    this.#excuses += 20
    this.#restores++
    this.server.reachability.set('unreachable')
    this.server.restore(to)
    // By the writes of others: an object that is written at the very version it had in the lost past looks the same.
    while (this.server.version <= version + this.random(3)) this.server.put('nodes', 'n')
    for (let writes = this.random(8); writes > 0; writes--) this.#write()
    await this.heal()
    // What no witness tells a comparison finds, in its time; in a cluster something always happens.
    const isHealed = () => this.clients.every((client) => client.isRight())
    for (let minute = 0; minute < 10 || (minute < 100 && !isHealed()); minute++) {
      this.server.put('nodes', 'n')
      this.server.bookmark()
      await this.#pass(60_000, 6)
    }
    // The copy has gone on in its own past until it was noticed.
    this.#lost = Math.max(this.#lost, this.server.version)
    await this.heal()
    for (const client of this.clients) client.assertRight()
  }

  async #restore(): Promise<void> {
    if (this.random(3) === 0) return await this.#overtake()
    await this.heal()
    const { version } = this.server
    const to = 1 + this.random(version)
    const bumped = this.random(2) === 0
    this.#say(`restore(${to}${bumped ? ' bumped' : ''})`)
    this.#excuses += 20
    if (bumped) this.server.restore(to, 1_000)
    else {
      this.#restores++
      this.#lost = Math.max(this.#lost, version)
      this.server.restore(to)
    }
    const lost = this.clients.filter((client) => !bumped && client.version > to)
    const told = lost.map((client) => client.expired.length)
    await this.heal()
    lost.forEach((client, i) => {
      const times = client.expired.length - (told[i] as number)
      assert.equal(times, 1, `${JSON.stringify(client.wish)} was told ${times} times of a restore`)
    })
  }

  async #act(): Promise<void> {
    const what = this.random(100)
    if (what < 36) this.#write()
    else if (what < 62) for (let i = 0; i < 4; i++) this.clients[this.random(this.clients.length || 1)]?.step()
    else if (what < 68) this.clients[this.random(this.clients.length || 1)]?.cut()
    else if (what < 73) {
      if (this.clients.length < 9) {
        const wish = this.#one(wishes)
        this.#say(`client(${JSON.stringify(wish)})`)
        this.clients.push(new Client(this.world, wish, this.random(3) === 0))
      }
    } else if (what < 75) this.server.bookmark()
    else if (what < 78) this.server.compact(this.server.version - this.random(6))
    else if (what < 79) this.server.endWatches()
    else if (what < 81) this.server.cutWatches()
    else if (what < 84) {
      this.#say('faults')
      this.server.fault = this.random(2) === 0 ? this.#faults() : () => undefined
    } else if (what < 87) {
      const away = this.server.reachability.state === 'reachable' && this.random(2) === 0
      this.#say(away ? 'away' : 'back')
      this.server.reachability.set(away ? 'unreachable' : 'reachable')
      if (away) this.server.cutWatches()
    } else if (what < 89) {
      this.world.refusing = this.random(3) === 0
      this.#say(this.world.refusing ? 'full' : 'room')
    } else if (what < 91) {
      this.#say('crash')
      this.#excuses += 20
      this.world.crash()
      for (const client of this.clients) client.cut()
      await this.world.start()
    } else if (what < 92) this.#drop()
    else await this.#pass(this.random(4_000), 2)
    await this.#turn()
  }

  #checkExpired(): void {
    // Once for the restore, and once where it stood at a version of either past when the new one grew beyond both.
    const allowed = 2 * this.#restores
    for (const client of this.clients) {
      const told = client.expired.filter(({ fromCloud }) => !fromCloud)
      const says = `${JSON.stringify(client.wish)} was told 410 at ${told.map(({ version }) => version)}`
      assert.ok(told.length <= allowed, `${says}, not ${allowed} times`)
      assert.ok(
        told.every(({ version }) => version <= this.#lost),
        `${says}, beyond what was lost, ${this.#lost}`,
      )
    }
  }

  async run(): Promise<void> {
    await this.world.start()
    const restoring = this.random(4) === 0
    for (let step = 0; step < stepsPerRun; step++) {
      if (restoring && this.random(60) === 0) await this.#restore()
      await this.#act()
      this.#checkExpired()
    }
    await this.heal()
    for (const client of this.clients) client.assertRight()
    this.#checkExpired()
    this.#checkWatches()
    if (!restoring) assert.equal(this.world.comparison.found, 0, 'a copy that was never put back differs in silence')
    // A client that comes now finds the same, and so does one that comes after a restart without the cloud.
    this.server.reachability.set('unreachable')
    this.server.cutWatches()
    this.world.crash()
    for (const client of this.clients) client.cut()
    await this.world.start()
    const late = this.clients.map((client) => new Client(this.world, client.wish))
    this.clients.push(...late)
    await this.#pass(5_000, 10)
    for (const client of this.clients) client.assertRight()
    this.#checkExpired()
    this.world.crash()
  }

  /** One watch for each interest that no wider one feeds; what is fed costs the cloud nothing. */
  #checkWatches(): void {
    const mirrored = [...this.world.interests.all]
    const fed = mirrored.filter((one) => one.fed)
    assert.equal(this.server.watches.size, mirrored.length - fed.length, 'watches upstream')
    for (const one of mirrored) {
      const wider = mirrored.some((other) => other !== one && covers(other.interest, one.interest))
      assert.equal(one.fed, wider, `${one.interest.name} is fed`)
    }
    const lists = this.server.count('list')
    assert.ok(lists <= mirrored.length + this.server.expiries + this.#excuses + 60, `${lists} lists`)
  }
}

async function simulate(seed: number, parts: { store?: Store; idle?: () => Promise<void> } = {}): Promise<void> {
  const simulation = new Simulation(seed, parts)
  await simulation.run().catch((error: Error) => {
    throw new Error(
      `AKE_SEED=${seed} AKE_LIVES=0: ${error.message.slice(0, 3_000)}\n${simulation.story.slice(-2_000)}`,
      {
        cause: error,
      },
    )
  })
}

test(`[A1] [A2] [A3] [A4] [A5] [D1] [D3] ${runs} random lives of a mirror: every client knows what the cloud has`, async () => {
  for (let run = 0; run < runs; run++) await simulate(firstSeed + run)
})

/** A disk takes real time, which the simulated one does not wait for: so nothing passes while anything is under way to it. */
function watched(inner: Store): { store: Store; idle: () => Promise<void> } {
  const asked = new Set<Promise<unknown>>()
  const follow = <T>(answer: Promise<T>): Promise<T> => {
    const settled: Promise<void> = answer.then(
      () => void asked.delete(settled),
      () => void asked.delete(settled),
    )
    asked.add(settled)
    return answer
  }
  const store: Store = {
    load: inner.load.bind(inner),
    release: (shared) => inner.release(shared),
    commit: (batch) => follow(inner.commit(batch)),
    history: (interest, after, limit) => follow(inner.history(interest, after, limit)),
    records: (kind) => follow(inner.records(kind)),
    record: (kind, key) => follow(inner.record(kind, key)),
    floor: (interest) => inner.floor(interest),
    mendFrom: (held) => inner.mendFrom(held),
    get figures() {
      return inner.figures
    },
    close: () => inner.close(),
  }
  const idle = async () => {
    while (asked.size > 0) {
      await Promise.all(asked)
      await settle()
    }
  }
  return { store, idle }
}

test('[A2] [D1] a few more over a real disk', async () => {
  for (let run = 0; run < Math.min(3, runs); run++) {
    const folder = mkdtempSync(join(tmpdir(), 'ake-mirror-'))
    const store = openDurable({ folder, historyBytesMax: 1 << 28 })
    try {
      await simulate(firstSeed + run, watched(store))
    } finally {
      await store.close()
      rmSync(folder, { recursive: true })
    }
  }
})
