/**
 * Random callers, tokens, rules, faults and restarts against a model of what the API server said and when it was heard.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Identity } from '../upstream/upstream.ts'
import { type Bench, openBench, settle } from './access.test-support.ts'
import type { Caller } from './access.ts'
import { makeQuestion, type Question } from './question.ts'

const questions = ['list', 'watch', 'get'].flatMap((verb) =>
  ['pods', 'secrets'].map((resource) => makeQuestion({ verb, version: 'v1', resource, namespace: 'shop' })),
)

/** mulberry32 */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Told = { readonly place: string; readonly allowed: boolean; readonly askedAt: number }

class World {
  readonly next: () => number
  readonly callers: Caller[] = ['ann', 'bob', 'eve'].map((name) => ({ name, uid: `u-${name}`, groups: ['g'] }))
  readonly tokens: { readonly token: string; readonly caller: Caller | undefined }[] = []
  readonly rules = new Map<string, boolean>()
  /** Every allowance the API server ever gave: when it was asked for. */
  readonly allowances = new Map<string, number[]>()
  /** When the edge last heard a denial. */
  readonly denials = new Map<string, number>()
  readonly refusedTokens = new Set<string>()
  /** Decided by the API server, not heard by the edge yet. */
  underWay: Told[] = []
  forwarded: { readonly told: Told; readonly token: string; readonly question: Question; readonly status: number }[] =
    []
  bench!: Bench
  allowed = 0
  allowedOffline = 0
  refused = 0

  constructor(seed: number) {
    this.next = random(seed)
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)] as T
  }

  /** The API server evaluates its rules, now. */
  evaluate(caller: Caller, question: Question): Told {
    const place = `${caller.name} ${question.key}`
    const allowed = this.rules.get(place) ?? false
    const askedAt = this.bench.clock.steady()
    if (allowed) this.allowances.set(place, [...(this.allowances.get(place) ?? []), askedAt])
    return { place, allowed, askedAt }
  }

  hear({ place, allowed }: Told): void {
    if (!allowed) this.denials.set(place, this.bench.clock.steady())
  }

  async open(): Promise<void> {
    this.bench = await openBench()
    this.bench.cloud.allows = (caller, { resourceAttributes: of = {} }) => {
      const { verb, resource, namespace } = of as { verb: string; resource: string; namespace: string }
      const told = this.evaluate(caller, makeQuestion({ verb, resource, namespace }))
      this.underWay.push(told)
      return told.allowed
    }
    for (const caller of this.callers) this.rotate(caller)
    this.tokens.push({ token: 'invented', caller: undefined })
  }

  rotate(caller: Caller): void {
    const token = `${caller.name}-${this.tokens.length}`
    this.tokens.push({ token, caller })
    this.bench.cloud.users.set(token, caller)
  }

  /** Lets everything that was answered arrive. */
  async arrive(): Promise<void> {
    while (this.bench.cloud.release() > 0) await settle()
    await settle()
    for (const told of this.underWay.splice(0)) this.hear(told)
  }

  check(token: string, caller: Caller | undefined, question: Question, verdict: string): void {
    if (verdict !== 'allowed') {
      this.refused++
      return
    }
    this.allowed++
    if (this.bench.cloud.reachability.state !== 'reachable') this.allowedOffline++
    assert.ok(caller !== undefined, 'an invented token was let in')
    assert.ok(!this.refusedTokens.has(token), 'a token counts after its 401 was told')
    const place = `${caller.name} ${question.key}`
    const deniedAt = this.denials.get(place) ?? Number.NEGATIVE_INFINITY
    const sound = this.allowances.get(place)?.some((askedAt) => askedAt > deniedAt) ?? false
    assert.ok(sound, `${place} is allowed without an allowance that stands`)
  }
}

async function decide(world: World): Promise<void> {
  const { bench } = world
  const { token, caller } = world.pick(world.tokens)
  const question = world.pick(questions)
  const identity: Identity = { kind: 'token', token }
  const verdict = bench.access.decide(identity, question)
  if (typeof verdict === 'string') {
    world.check(token, caller, question, verdict)
    await settle()
  } else {
    await settle()
    if (bench.cloud.mode === 'hang') bench.clock.advance(bench.cloud.reachability.limitMs)
    world.check(token, caller, question, await verdict)
  }
  if (bench.cloud.mode !== 'hang') await world.arrive()
}

/** A request goes to the cloud itself; its answer is heard now or later, in any order. */
function forward(world: World): void {
  const { bench } = world
  if (bench.cloud.reachability.state !== 'reachable') return
  const { token, caller } = world.pick(world.tokens)
  const question = world.pick(questions)
  if (caller === undefined || !bench.cloud.users.has(token)) return
  const told = world.evaluate(caller, question)
  world.forwarded.push({ told, token, question, status: told.allowed ? 200 : 403 })
}

async function hearForwarded(world: World): Promise<void> {
  const { bench } = world
  const at = Math.floor(world.next() * world.forwarded.length)
  const [one] = world.forwarded.splice(at, 1)
  if (one === undefined) return
  const known = bench.access.held({ kind: 'token', token: one.token }) !== undefined
  bench.access.learn({ kind: 'token', token: one.token }, one.question, {
    status: one.status,
    askedAt: one.told.askedAt,
  })
  // A caller that is not known yet takes the denial in only when it is.
  if (known) world.hear(one.told)
  await settle()
}

async function revoke(world: World): Promise<void> {
  const { bench } = world
  const { token, caller } = world.pick(world.tokens)
  if (caller === undefined) return
  bench.cloud.users.delete(token)
  world.rotate(caller)
  if (bench.cloud.reachability.state !== 'reachable') return
  bench.access.learn({ kind: 'token', token }, questions[0] as Question, { status: 401, askedAt: bench.clock.steady() })
  world.refusedTokens.add(token)
  await settle()
}

async function step(world: World): Promise<void> {
  const { bench } = world
  const dice = world.next()
  bench.clock.advance(1 + Math.floor(world.next() * 50))
  if (dice < 0.5) await decide(world)
  else if (dice < 0.58) forward(world)
  else if (dice < 0.66) await hearForwarded(world)
  else if (dice < 0.8) {
    world.rules.set(`${world.pick(world.callers).name} ${world.pick(questions).key}`, world.next() < 0.7)
  } else if (dice < 0.86) bench.clock.advance(Math.floor(world.next() * 15_000))
  else if (dice < 0.9) bench.cloud.state = world.pick(['reachable', 'reachable', 'suspect', 'unreachable'])
  else if (dice < 0.94) {
    bench.cloud.mode = world.pick(['answer', 'answer', 'hang', 'break', 'error'])
    await world.arrive()
  } else if (dice < 0.96) world.rotate(world.pick(world.callers))
  else if (dice < 0.98) await revoke(world)
  else {
    await world.arrive()
    world.forwarded = []
    world.bench = await (world.next() < 0.5 ? bench.restart() : bench.crash())
  }
}

const stepsPerSeed = 2000

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
  test(`[I1] [I2] nothing is allowed that the API server did not allow, nor after a denial was told (seed ${seed})`, async () => {
    const world = new World(seed)
    await world.open()
    for (let i = 0; i < stepsPerSeed; i++) await step(world)
    // It must have had something to prove.
    assert.ok(
      world.allowed > 50 && world.allowedOffline > 10 && world.refused > 50,
      `${world.allowed}, ${world.allowedOffline} offline, ${world.refused}`,
    )
  })
}
