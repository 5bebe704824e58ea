/**
 * Random callers, tokens, rules, roles, faults and restarts against a model of what the API server said and when it was heard.
 * The API server judges by roles, which the edge mirrors with a lag, and in some worlds by authorizers that only it can ask:
 * one that allows more (`rules`), one that denies what roles allow (`denies`).
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chanceOf } from '../base/seeded.test-support.ts'
import type { Caller } from '../kube/caller.ts'
import type { Identity } from '../upstream/upstream.ts'
import { type Bench, openBench, settle } from './access.test-support.ts'
import { makeQuestion, type Question, widerOf } from './question.ts'
import { Rbac } from './rbac/rbac.ts'

const places = [{}, { namespace: 'shop' }, { namespace: 'shop', labels: 'app=x' }]
const questions = ['list', 'watch'].flatMap((verb) =>
  ['pods'].flatMap((resource) => places.map((place) => makeQuestion({ verb, resource, ...place }))),
)

type Told = {
  readonly caller: Caller
  readonly question: Question
  readonly allowed: boolean
  readonly askedAt: number
}

const freshMs = 10_000
const validMs = 30_000
const followsMs = 240_000
/** A sign of life of the watches of roles, and how often that is looked at. */
const currentMs = 5_000 + 500
const lagMs = 11_000

/** One binding of a user to a verb, in one namespace or everywhere. */
type Grant = { readonly name: string; readonly verb: string; readonly namespace: string; readonly isGiven: boolean }
type Mirrored = Pick<Rbac, 'put' | 'delete'>

function give(to: Mirrored, { name, verb, namespace, isGiven }: Grant): void {
  const resource = namespace === '' ? 'clusterrolebindings' : 'rolebindings'
  const key = `${namespace === '' ? '' : `${namespace}/`}${name}-${verb}`
  const binding = { roleRef: { kind: 'ClusterRole', name: verb }, subjects: [{ kind: 'User', name }] }
  if (isGiven) to.put(resource, key, Buffer.from(JSON.stringify(binding)))
  else to.delete(resource, key)
}

function giveRoles(to: Mirrored): void {
  for (const verb of ['list', 'watch']) {
    const rules = [{ verbs: [verb], apiGroups: [''], resources: ['pods'] }]
    to.put('clusterroles', verb, Buffer.from(JSON.stringify({ rules })))
  }
}

class World {
  readonly next: () => number
  readonly callers: Caller[] = [
    ...['ann', 'bob', 'eve'].map((name) => ({ name, uid: `u-${name}`, groups: ['g'] })),
    { name: 'ann', uid: 'u-ann', groups: ['g'], extra: { scopes: ['narrow'] } },
  ]
  readonly tokens: { readonly token: string; readonly caller: Caller | undefined }[] = []
  readonly rules = new Map<string, boolean>()
  readonly denies = new Set<string>()
  readonly kind: 'reviews' | 'roles' | 'more'
  /** The API server's roles, and what of them is on its way to the edge. */
  readonly roles = new Rbac()
  readonly onTheWay: { readonly grant: Grant; readonly madeAt: number }[] = []
  /** As mirrored: what the edge may conclude from. */
  readonly mirrored = new Map<string, Grant>()
  mirroredRoles = new Rbac()
  /** When roles were last seen to change. */
  mirroredAt = 0
  heardAt = 0
  /** The last review of each question that was heard, and what the mirrored roles said then. */
  readonly lastWords = new Map<string, { readonly allowed: boolean; readonly rolesSaid: boolean }>()
  /** A denial against roles was heard, long after they last changed. */
  isOverruled = false
  /** Every allowance the API server ever gave: when it was asked for. */
  readonly allowances = new Map<string, number[]>()
  /** Every denial that the edge has heard: when it was asked for and when it was heard. */
  readonly denials = new Map<string, { readonly askedAt: number; readonly heardAt: number }[]>()
  readonly refusedTokens = new Set<string>()
  readonly revokedAt = new Map<string, number>()
  /** Decided by the API server, not heard by the edge yet. */
  underWay: Told[] = []
  forwarded: { readonly told: Told; readonly token: string; readonly question: Question; readonly status: number }[] =
    []
  bench!: Bench
  allowed = 0
  allowedOffline = 0
  allowedRevoked = 0
  /** By what roles say, where no review would have allowed it. */
  followed = 0
  followedOffline = 0
  refused = 0

  constructor(seed: number) {
    this.next = chanceOf(seed)
    this.kind = (['reviews', 'roles', 'more'] as const)[seed % 3]!
    giveRoles(this.roles)
    giveRoles(this.mirroredRoles)
  }

  /** As the edge begins with what it has of roles. */
  attach(): void {
    const { evaluation } = this.bench
    if (this.kind === 'reviews') return
    giveRoles(evaluation)
    for (const grant of this.mirrored.values()) give(evaluation, grant)
    evaluation.follow({ heardAt: () => this.heardAt })
  }

  change(grant: Grant): void {
    give(this.roles, grant)
    this.onTheWay.push({ grant, madeAt: this.bench.clock.steady() })
  }

  /** The watch of roles brings what has come of them; a sign of life comes after what was sent before it. */
  mirror(count: number): void {
    const { bench } = this
    if (bench.cloud.reachability.state !== 'reachable') return
    for (const { grant } of this.onTheWay.splice(0, count)) {
      give(bench.evaluation, grant)
      give(this.mirroredRoles, grant)
      this.mirrored.set(JSON.stringify([grant.name, grant.verb, grant.namespace]), grant)
      bench.changes.note(grant.namespace)
      this.mirroredAt = bench.clock.steady()
    }
    this.heardAt = this.onTheWay[0]?.madeAt ?? bench.clock.steady()
  }

  /** The latest ones, and now and then the invented one. */
  pickToken(): World['tokens'][number] {
    return this.next() < 0.05
      ? (this.tokens.find((one) => one.caller === undefined) as World['tokens'][number])
      : this.pick(this.tokens.slice(-6))
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)] as T
  }

  /** The API server evaluates its rules, now: what is allowed is allowed in each of its parts. */
  evaluate(caller: Caller, question: Question): Told {
    const keys = [question.key, ...widerOf(question).map(({ key }) => key)]
    const isRuled = keys.some((key) => this.rules.get(placeOf(caller, key)) === true)
    // What is denied is denied in each whole that contains it.
    const isDenied = questions.some(({ key, ...part }) => {
      const isPart = key === question.key || widerOf({ key, ...part }).some((wider) => wider.key === question.key)
      return isPart && this.denies.has(placeOf(caller, key))
    })
    const allowed = !isDenied && (isRuled || this.roles.judge(caller, question).allowed)
    const askedAt = this.bench.clock.steady()
    const place = placeOf(caller, question.key)
    if (allowed) this.allowances.set(place, [...(this.allowances.get(place) ?? []), askedAt])
    return { caller, question, allowed, askedAt }
  }

  /** A denial answers what contains it, too. */
  hear({ caller, question, allowed, askedAt }: Told, isReview: boolean): void {
    const heardAt = this.bench.clock.steady()
    const rolesSaid = this.mirroredRoles.judge(caller, question).allowed
    this.lastWords.set(placeOf(caller, question.key), { allowed, rolesSaid })
    const isCurrent = heardAt - this.heardAt <= currentMs - 1_000
    if (isReview && !allowed && rolesSaid && isCurrent && askedAt - this.mirroredAt > lagMs + 1_100)
      this.isOverruled = true
    if (allowed) return
    for (const [at, key] of [question.key, ...widerOf(question).map((wider) => wider.key)].entries()) {
      const place = placeOf(caller, key)
      // Of the question itself it counts whenever it is heard, of a whole only against what was asked before.
      const told = { askedAt, heardAt: at === 0 ? heardAt : askedAt }
      this.denials.set(place, [...(this.denials.get(place) ?? []), told])
    }
  }

  /** The newest allowance that stands, of the question or of what contains it. */
  standing(caller: Caller, question: Question): number {
    let newest = Number.NEGATIVE_INFINITY
    for (const key of [question.key, ...widerOf(question).map((wider) => wider.key)]) {
      const place = placeOf(caller, key)
      const denied = this.denials.get(place) ?? []
      for (const askedAt of this.allowances.get(place) ?? []) {
        if (askedAt > newest && denied.every(({ heardAt }) => askedAt > heardAt)) newest = askedAt
      }
    }
    return newest
  }

  async open(): Promise<void> {
    this.bench = await openBench()
    this.attach()
    this.bench.cloud.allows = (caller, { resourceAttributes: of = {} }) => {
      const { verb, resource, namespace, labelSelector } = of as Record<string, string> & {
        labelSelector?: { rawSelector: string }
      }
      const asked = { verb: String(verb), resource: String(resource), namespace: String(namespace) }
      const told = this.evaluate(caller, makeQuestion({ ...asked, labels: labelSelector?.rawSelector ?? '' }))
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
    for (const told of this.underWay.splice(0)) this.hear(told, true)
  }

  check(token: string, caller: Caller | undefined, question: Question, verdict: string): void {
    if (verdict !== 'allowed') {
      this.refused++
      return
    }
    this.allowed++
    const { clock, cloud } = this.bench
    const online = cloud.reachability.state === 'reachable'
    if (!online) this.allowedOffline++
    assert.ok(caller !== undefined, 'an invented token was let in')
    assert.ok(!this.refusedTokens.has(token), 'a token counts after its 401 was told')
    const asked = `${placeOf(caller, question.key)} at ${clock.steady()}`
    const askedAt = this.standing(caller, question)
    const isByRoles = this.kind !== 'reviews' && this.mirroredRoles.judge(caller, question).allowed
    if (!online) {
      if (Number.isFinite(askedAt)) return
      this.followedOffline++
      assert.ok(isByRoles, `${asked} is allowed without an allowance that stands, nor by roles`)
      assert.ok(!this.isOverruled, `${asked} is allowed by roles alone, which the API server was seen to overrule`)
      const last = this.lastWords.get(placeOf(caller, question.key))
      assert.ok(last?.allowed !== false || !last.rolesSaid, `${asked} was denied against the roles that now allow it`)
      return
    }
    const ageMs = clock.steady() - askedAt
    if (ageMs > freshMs) {
      this.followed++
      assert.ok(isByRoles, `${asked} is allowed by what was said at ${askedAt}`)
      assert.ok(ageMs <= followsMs, `${asked} follows from roles, and was reviewed at ${askedAt}`)
      assert.ok(clock.steady() - this.heardAt <= currentMs, `${asked} follows from roles as of ${this.heardAt}`)
    }
    const revokedAt = this.revokedAt.get(token) ?? Number.POSITIVE_INFINITY
    assert.ok(clock.steady() - revokedAt <= validMs, `${asked} with a token that was revoked at ${revokedAt}`)
    if (Number.isFinite(revokedAt)) this.allowedRevoked++
  }
}

function placeOf({ name, extra }: Caller, key: string): string {
  return `${name} ${JSON.stringify(extra ?? {})} ${key}`
}

/** One caller asks for the same again and again. */
async function insist(world: World): Promise<void> {
  const asked = { ...world.pickToken(), question: world.pick(questions) }
  for (let round = 0; round < 8; round++) {
    world.bench.clock.advance(Math.floor(world.next() * 9_000))
    if (world.next() < 0.9) world.mirror(9)
    if (round === 5 && world.next() < 0.5) changeRights(world)
    await decide(world, asked)
  }
}

type Asked = World['tokens'][number] & { readonly question: Question }

async function decide(
  world: World,
  { token, caller, question }: Asked = { ...world.pickToken(), question: world.pick(questions) },
): Promise<void> {
  const { bench } = world
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
  const { token, caller } = world.pickToken()
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
  if (known) world.hear(one.told, false)
  await settle()
}

async function revoke(world: World): Promise<void> {
  const { bench } = world
  const { token, caller } = world.pickToken()
  if (caller === undefined) return
  bench.cloud.users.delete(token)
  world.revokedAt.set(token, bench.clock.steady())
  world.rotate(caller)
  // Mostly the edge is not told.
  if (bench.cloud.reachability.state !== 'reachable' || world.next() < 0.7) return
  bench.access.learn({ kind: 'token', token }, questions[0] as Question, { status: 401, askedAt: bench.clock.steady() })
  world.refusedTokens.add(token)
  await settle()
}

function changeRights(world: World): void {
  const { bench } = world
  const { verb, namespace, key } = world.pick(questions)
  const caller = world.pick(world.callers)
  if (world.kind !== 'reviews' && world.next() < 0.3) {
    world.change({ name: caller.name, verb, namespace, isGiven: world.next() < 0.6 })
    return
  }
  if (world.kind === 'roles') return
  const place = placeOf(caller, key)
  if (world.kind === 'more' && world.next() < 0.5) {
    if (world.next() < 0.3) world.denies.add(place)
    else world.denies.clear()
    return
  }
  world.rules.set(place, world.next() < 0.4)
  if (world.next() < 0.8) return
  bench.changes.note(namespace)
  world.mirroredAt = bench.clock.steady()
}

async function step(world: World): Promise<void> {
  const { bench } = world
  const dice = world.next()
  bench.clock.advance(1 + Math.floor(world.next() * 50))
  if (world.next() < 0.8) world.mirror(world.next() < 0.7 ? 9 : 1)
  if (dice < 0.49) await decide(world)
  else if (dice < 0.5) await insist(world)
  else if (dice < 0.58) forward(world)
  else if (dice < 0.66) await hearForwarded(world)
  else if (dice < 0.8) {
    changeRights(world)
  } else if (dice < 0.86) bench.clock.advance(Math.floor(world.next() * 12_000))
  else if (dice < 0.9) bench.cloud.state = world.pick(['reachable', 'reachable', 'suspect', 'unreachable'])
  else if (dice < 0.94) {
    bench.cloud.mode = world.pick(['answer', 'answer', 'hang', 'break', 'error'])
    await world.arrive()
  } else if (dice < 0.96) world.rotate(world.pick(world.callers))
  else if (dice < 0.98) await revoke(world)
  else {
    await world.arrive()
    world.forwarded = []
    const inOrder = world.next() < 0.5
    world.bench = await (inOrder ? bench.restart() : bench.crash())
    // What was denied a moment ago is not on the disk yet.
    if (!inOrder) world.lastWords.clear()
    world.isOverruled = false
    world.attach()
  }
}

const stepsPerSeed = 2000

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
  test(`[I1] [I2] [I5] nothing is allowed that the API server did not allow lately, nor after a denial (seed ${seed})`, async () => {
    const world = new World(seed)
    await world.open()
    for (let i = 0; i < stepsPerSeed; i++) await step(world)
    // It must have had something to prove.
    assert.ok(
      world.allowed > 50 && world.allowedOffline > 10 && world.refused > 50,
      `${world.allowed}, ${world.allowedOffline} offline, ${world.refused}`,
    )
    if (world.kind === 'roles') {
      assert.ok(world.followed > 2 && world.followedOffline > 2, `${world.followed}, ${world.followedOffline} offline`)
    }
  })
}
