/** Replicas with lines that are slow, break and come back, processes that stop for a while, and edges that move, renew and are cloned. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveEach, lives } from '../../base/lives.test-support.ts'
import { chanceOf } from '../../base/seeded.test-support.ts'
import { type ReplicaMessage, Replicas, replicaLimits } from './replicas.ts'

type Link = { readonly name: string; readonly issuedAtMs: number; readonly trueStart: number; readonly number: number }

class Process {
  readonly replicas: Replicas
  readonly links = new Map<number, Link>()
  /** Its clock is another one, by minutes. */
  readonly offset: number
  /** Until then it does nothing, and what comes waits. */
  stoppedUntil = 0
  readonly waiting: ((now: number) => void)[] = []
  isDraining = false
  ended = 0

  constructor(id: string, offset: number) {
    this.replicas = new Replicas({ id, hub: id })
    this.offset = offset
  }
}

class World {
  readonly random: () => number
  readonly processes: Process[]
  now = 1_000_000
  #queue: { readonly at: number; readonly order: number; readonly run: () => void }[] = []
  #order = 0
  readonly ever: Link[] = []
  /** All that there were. */
  readonly #links: Link[] = []
  readonly ends = { handedOver: 0, cut: 0 }
  /** Those whose edge left by itself, or came back to the same replica. */
  readonly gone = new Set<Link>()
  /** Both ends of each line, by the processes and their numbers. */
  readonly lines: { readonly from: Process; readonly to: Process; near: number; far: number; isUp: boolean }[] = []

  constructor(seed: number) {
    this.random = chanceOf(seed)
    const count = 2 + Math.floor(this.random() * 3)
    this.processes = Array.from(
      { length: count },
      (_, at) => new Process(String.fromCharCode(97 + at), Math.floor((this.random() - 0.5) * 600_000)),
    )
    for (const from of this.processes)
      for (const to of this.processes) if (from !== to) this.lines.push({ from, to, near: 0, far: 0, isUp: false })
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T
  }

  later(ms: number, run: () => void): void {
    this.#queue.push({ at: this.now + ms, order: this.#order++, run })
  }

  /** What the process is to do, as soon as it runs, in this order. */
  on(process: Process, run: (now: number) => void): void {
    process.waiting.push(run)
    this.#drain(process)
  }

  #drain(process: Process): void {
    if (process.isDraining) return
    if (process.stoppedUntil > this.now) {
      this.later(process.stoppedUntil - this.now, () => this.#drain(process))
      return
    }
    process.isDraining = true
    for (let run = process.waiting.shift(); run !== undefined; run = process.waiting.shift()) {
      run(this.now + process.offset)
      for (const effect of process.replicas.effects()) {
        if (effect.effect === 'send') this.#carry(process, effect.to, effect.message)
        else if (effect.effect === 'end') this.#replaced(process, effect.link, effect.isHandOver)
        else assert.fail(effect.why)
      }
    }
    process.isDraining = false
  }

  #carry(process: Process, number: number, message: ReplicaMessage): void {
    const line = this.lines.find(
      (one) => one.isUp && (one.from === process ? one.near === number : one.to === process && one.far === number),
    )
    if (line === undefined) return
    const isNear = line.from === process && line.near === number
    const [to, at] = isNear ? [line.to, line.far] : [line.from, line.near]
    const { near } = line
    // In order, as a socket is.
    const delay = 20
    this.later(delay, () => {
      if (line.isUp && line.near === near) this.on(to, (now) => to.replicas.receive(at, message, now))
    })
  }

  /** To a newer certificate it is handed over, by an equal one it is cut. It counts as gone either way. */
  #replaced(process: Process, number: number, isHandOver: boolean): void {
    const link = process.links.get(number)
    if (link === undefined) return
    const { name, issuedAtMs } = link
    const others = this.#links.filter((one) => one !== link && one.name === name)
    const isRight = others.some((one) => (isHandOver ? one.issuedAtMs > issuedAtMs : one.issuedAtMs === issuedAtMs))
    assert.ok(isRight, `${name} is ${isHandOver ? 'handed over to no newer certificate' : 'cut by no equal one'}`)
    this.ends[isHandOver ? 'handedOver' : 'cut']++
    this.end(process, number, 'replaced')
  }

  /** As soon as both run. */
  up(line: World['lines'][number]): void {
    if (line.isUp) return
    const waitMs = Math.max(line.from.stoppedUntil, line.to.stoppedUntil) - this.now
    if (waitMs > 0) {
      this.later(waitMs, () => this.up(line))
      return
    }
    line.isUp = true
    line.near = line.from.replicas.joined(true)
    line.far = line.to.replicas.joined(false)
    for (const process of [line.from, line.to]) this.on(process, () => undefined)
  }

  down(line: World['lines'][number]): void {
    if (!line.isUp) return
    line.isUp = false
    const { near, far } = line
    this.on(line.from, () => line.from.replicas.lost(near))
    this.on(line.to, () => line.to.replicas.lost(far))
  }

  link(process: Process, name: string, issuedAtMs: number): void {
    this.on(process, (now) => {
      // As HubPeers does at one replica.
      const before = [...process.links.values()].find((one) => one.name === name)
      if (before !== undefined && before.issuedAtMs > issuedAtMs) return
      if (before !== undefined) this.end(process, before.number)
      const number = process.replicas.came({ name, issuedAtMs, from: '' }, now)
      const link = { name, issuedAtMs, trueStart: this.now, number }
      process.links.set(number, link)
      this.ever.push(link)
      this.#links.push(link)
    })
  }

  end(process: Process, number: number, why = 'gone'): void {
    const link = process.links.get(number)
    if (link === undefined) return
    if (why === 'gone') this.gone.add(link)
    process.links.delete(number)
    process.ended++
    this.on(process, () => process.replicas.left(link.name, number))
  }

  #until(until: number): void {
    for (;;) {
      this.#queue.sort((a, b) => a.at - b.at || a.order - b.order)
      const [next] = this.#queue
      if (next === undefined || next.at > until) break
      this.#queue.shift()
      this.now = Math.max(this.now, next.at)
      next.run()
    }
    this.now = until
  }

  pass(ms: number): void {
    const until = this.now + ms
    for (let nextTick = this.now; this.now < until; ) {
      nextTick += 1_000
      this.#until(nextTick)
      for (const process of this.processes) this.on(process, (now) => process.replicas.tick(now))
    }
  }

  /** Less than it takes to be told. */
  wait(ms: number): void {
    this.#until(this.now + ms)
  }

  held(name: string): readonly Link[] {
    return this.processes.flatMap(({ links }) => [...links.values()].filter((one) => one.name === name))
  }
}

function live(seed: number): World['ends'] {
  const world = new World(seed)
  const names = ['n1', 'n2', 'n3']
  const issued = new Map(names.map((name) => [name, 1]))
  for (const line of world.lines) world.up(line)
  for (let step = 0; step < 60; step++) {
    const what = world.random()
    const name = world.pick(names)
    if (what < 0.1) issued.set(name, (issued.get(name) ?? 0) + 1)
    // A clone may have any of the certificates that there were.
    if (what < 0.5) {
      const newest = issued.get(name) ?? 1
      const shown = world.random() < 0.8 ? newest : 1 + Math.floor(world.random() * newest)
      world.link(world.pick(world.processes), name, shown)
    } else if (what < 0.6) {
      const process = world.pick(world.processes)
      const link = world.pick([...process.links.values()])
      if (link !== undefined) world.end(process, link.number)
    } else if (what < 0.75) {
      const line = world.pick(world.lines)
      if (line.isUp) world.down(line)
      else world.up(line)
    } else if (what < 0.85) world.pick(world.processes).stoppedUntil = world.now + Math.floor(world.random() * 60_000)
    world.pass(1_000 + Math.floor(world.random() * 20_000))
  }
  for (const line of world.lines) if (world.random() < 0.5) world.up(line)
  world.pass(70_000)
  // From here on no edge leaves by itself: of those that are there, or come, one stays.
  world.ever.splice(0, world.ever.length, ...names.flatMap((name) => world.held(name)))
  // A clone, or an edge that moves, at nearly the same time as processes stop and go on.
  for (const name of names) {
    for (const process of world.processes) {
      if (world.random() < 0.7) world.link(process, name, issued.get(name) ?? 1)
      world.wait(Math.floor(world.random() * 60))
      if (world.random() < 0.3) process.stoppedUntil = world.now + Math.floor(world.random() * 30_000)
    }
  }
  // Everything runs again, and nothing more happens.
  for (const line of world.lines) world.up(line)
  world.pass(100_000)
  for (const name of names) {
    const had = () => world.ever.filter((one) => one.name === name && !world.gone.has(one))
    // Of three that came within the time of a question each pair may be judged otherwise, and all end: their edges come back.
    const last = had().at(-1)?.trueStart ?? 0
    const close = had().filter(({ trueStart }) => Math.abs(trueStart - last) <= 2 * replicaLimits.answerMsMax)
    if (close.length >= 3 && !world.held(name).some((kept) => close.includes(kept))) {
      world.link(world.pick(world.processes), name, issued.get(name) ?? 1)
      world.pass(20_000)
    }
    const left = world.held(name)
    assert.ok(left.length <= 1, `${name} is held ${left.length} times`)
    assert.equal(left.length, Math.min(1, had().length), `${name} is lost, and was held ${had().length} times`)
    const [kept] = left
    if (kept === undefined) continue
    const newest = had().sort((a, b) => b.issuedAtMs - a.issuedAtMs || b.trueStart - a.trueStart)[0] as Link
    assert.equal(kept.issuedAtMs, newest.issuedAtMs, `${name}: not the newest certificate stays`)
    // Which of two came first within the time of a question cannot be told, and each pair is asked by itself.
    const slackMs = (world.processes.length - 1) * replicaLimits.answerMsMax
    assert.ok(newest.trueStart - kept.trueStart <= slackMs, `${name}: not the newest link stays`)
  }
  return world.ends
}

test('whatever happens, once all lines are there a name is at one replica, and it is the newest link of the newest certificate', async () => {
  const all = 400
  const ends = { handedOver: 0, cut: 0 }
  await liveEach({
    file: import.meta.filename,
    all,
    live: (seed) => {
      const { handedOver, cut } = live(seed)
      ends.handedOver += handedOver
      ends.cut += cut
    },
  })
  if (lives(all) >= 100) assert.ok(ends.handedOver > 0 && ends.cut > 0, JSON.stringify(ends))
})
