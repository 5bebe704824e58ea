/** What rules of a caller count for without the cloud, by whether their changes were heard of up to the cut. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, type Bench, openBench, settle, aliceToken as token, withAlice } from './access.test-support.ts'
import { makeQuestion } from './question.ts'
import { Rbac } from './rbac/rbac.ts'
import { subjectKey, writeSubjectRules } from './rbac/subjectrules.ts'

const listing = (resource: string) => makeQuestion({ verb: 'list', version: 'v1', resource, namespace: 'shop' })
const [pods, secrets, services] = [listing('pods'), listing('secrets'), listing('services')]

function rulesOf(...resources: string[]): string {
  const rbac = new Rbac()
  const put = (resource: 'clusterroles' | 'clusterrolebindings', object: object) =>
    rbac.put(resource, 'reads', Buffer.from(JSON.stringify(object)))
  put('clusterroles', { rules: [{ verbs: ['list'], apiGroups: [''], resources }] })
  put('clusterrolebindings', {
    roleRef: { kind: 'ClusterRole', name: 'reads' },
    subjects: [{ kind: 'User', name: 'alice' }],
  })
  return writeSubjectRules(rbac, alice) ?? ''
}

/** An edge that runs; it stands in for the stream over which its hub tells alice's rules. */
class Edge {
  readonly bench: Bench
  #ending = new AbortController()
  #isOpen = false

  constructor(bench: Bench) {
    this.bench = bench
    void bench.run(this.#ending.signal)
  }

  static async open(): Promise<Edge> {
    const bench = await withAlice()
    await bench.access.caller(token)
    await settle()
    return new Edge(bench)
  }

  tell(...resources: string[]): void {
    this.#isOpen = true
    const { rules, clock } = this.bench
    rules.told(alice, rulesOf(...resources), () => (this.#isOpen ? clock.steady() : Number.NEGATIVE_INFINITY))
  }

  /** Nothing more is told, and the link is there. */
  async unsee(): Promise<void> {
    this.#isOpen = false
    await this.bench.rules.stands(alice, 'ended')
  }

  async deafen(): Promise<void> {
    this.#isOpen = false
    await this.bench.rules.stands(alice, 'unheard')
  }

  async hear(): Promise<void> {
    this.#isOpen = true
    await this.bench.rules.stands(alice, 'heard')
  }

  /** The link goes, and with it the stream; then it is noticed that the API server is away. */
  async cut(): Promise<void> {
    this.#isOpen = false
    await this.bench.rules.stands(alice, 'cut')
    this.bench.cloud.state = 'unreachable'
  }

  /** Neither start knows at first whether the API server is there. */
  async crash(): Promise<Edge> {
    const next = await this.bench.crash()
    this.#ending.abort()
    this.bench.cloud.state = 'suspect'
    return new Edge(next)
  }

  async restart(): Promise<Edge> {
    this.#ending.abort()
    await settle()
    const next = await this.bench.restart()
    this.bench.cloud.state = 'suspect'
    return new Edge(next)
  }

  async written(): Promise<void> {
    this.bench.clock.advance(600)
    await settle()
  }

  may(...questions: (typeof pods)[]): unknown[] {
    return questions.map((question) => this.bench.access.decide(token, question))
  }
}

test('[I2, L29] rules that were not followed up to the cut allow nothing and deny nothing: what was never asked is not known', async () => {
  const edge = await Edge.open()
  edge.tell('pods')
  await edge.written()
  await edge.unsee()
  // Withdrawn meanwhile, of which this edge has not heard.
  await edge.cut()
  for (const one of [edge, await edge.crash()]) {
    one.bench.cloud.state = 'unreachable'
    assert.deepEqual(one.may(pods, secrets), ['unknown', 'unknown'])
    assert.equal(one.bench.access.refusal(token, pods, 'unknown').status.code, 503)
    assert.equal(one.bench.access.opinion(alice, pods), undefined)
    assert.equal(one.bench.access.rules(alice, 'shop'), undefined)
  }
})

test('[I2, L29] beside rules of the past the last decision holds, but for a right that is gone from them since', async () => {
  const edge = await Edge.open()
  const { cloud, access, clock } = edge.bench
  cloud.allows = (_, { resourceAttributes: { resource } = {} }) => resource !== 'secrets'
  edge.tell('pods', 'services')
  clock.advance(60_000)
  for (const [question, verdict] of [
    [pods, 'allowed'],
    [services, 'allowed'],
    [secrets, 'denied'],
  ] as const)
    assert.equal(await access.decide(token, question), verdict)
  edge.tell('services', 'secrets')
  await edge.written()
  await edge.unsee()
  await edge.cut()
  for (const one of [edge, await edge.crash()])
    assert.deepEqual(one.may(pods, services, secrets), ['denied', 'allowed', 'denied'])
})

test("[I2, L29] a right that was reviewed a moment before its caller's rules were told is gone when it goes from them", async () => {
  const edge = await Edge.open()
  const { access, clock } = edge.bench
  for (const question of [pods, services]) assert.equal(await access.decide(token, question), 'allowed')
  clock.advance(1_000)
  edge.tell('pods', 'services')
  clock.advance(60_000)
  edge.tell('services')
  await edge.written()
  await edge.unsee()
  await edge.cut()
  for (const one of [edge, await edge.crash()]) assert.deepEqual(one.may(pods, services), ['denied', 'allowed'])
})

test('[I2, L29, D2] rules that were current at the cut count over restarts and crashes without the cloud, until it is back', async () => {
  const edge = await Edge.open()
  edge.tell('pods')
  await edge.written()
  // Killed while there is a link: that is a cut too.
  let next = await edge.crash()
  next.bench.cloud.state = 'unreachable'
  next = await next.restart()
  next = await next.crash()
  next.bench.cloud.state = 'unreachable'
  assert.deepEqual(next.may(pods, secrets), ['allowed', 'denied'])
  assert.equal(next.bench.access.rules(alice, 'shop')?.resourceRules.length, 1)
  // Back, with alice not seen: of what became of her rules nothing is heard.
  next.bench.cloud.state = 'reachable'
  await settle()
  await next.cut()
  for (const one of [next, await next.crash()]) assert.deepEqual(one.may(pods, secrets), ['unknown', 'unknown'])
})

test('[I2, L29, D2] an edge that starts with the cloud there, and loses it before the caller asks, does not know its rules', async () => {
  const edge = await Edge.open()
  edge.tell('pods')
  await edge.written()
  const next = await edge.crash()
  next.bench.cloud.state = 'reachable'
  await settle()
  // Killed again, before any caller was seen.
  const last = await next.crash()
  last.bench.cloud.state = 'unreachable'
  for (const one of [next, last]) assert.deepEqual(one.may(pods), ['unknown'])
  // Told anew, they count again.
  last.bench.cloud.state = 'reachable'
  last.tell('pods')
  await last.written()
  await last.cut()
  assert.deepEqual((await last.crash()).may(pods), ['allowed'])
})

test('[I2, L29, D2] that rules are not current any more is written before their stream ends', async () => {
  const edge = await Edge.open()
  edge.tell('pods')
  await edge.written()
  await edge.unsee()
  // No turn later than the edge lets the stream go.
  const next = await edge.crash()
  next.bench.cloud.state = 'unreachable'
  assert.deepEqual(next.may(pods), ['unknown'])
})

test('[I2, L29, D4] records of a release that did not say whether they are current count as not current; a mark of no rules goes', async () => {
  const bench = await withAlice()
  await bench.access.caller(token)
  const { records, clock } = bench
  const put = (key: string, value: object) =>
    records.kept.set(`rules\n${key}`, { kind: 'rules', key, value: Buffer.from(JSON.stringify(value)) })
  put(subjectKey(alice), { at: clock.now(), rules: rulesOf('pods') })
  put('current of-nobody', { current: true })
  const edge = new Edge(await bench.restart())
  edge.bench.cloud.state = 'unreachable'
  assert.deepEqual(edge.may(pods, secrets), ['unknown', 'unknown'])
  await edge.written()
  assert.deepEqual(
    [...records.kept.values()].filter(({ kind }) => kind === 'rules').map(({ key }) => key),
    [subjectKey(alice)],
  )
})

test('[I2, L29] a hub that hears of no changes: rules count if it turns out that the API server is away, and not if it is there', async () => {
  const edge = await Edge.open()
  const { clock, cloud } = edge.bench
  edge.tell('pods')
  await edge.written()
  await edge.deafen()
  // The API server is away behind the hub, which the edge finds later.
  clock.advance(40_000)
  cloud.state = 'unreachable'
  assert.deepEqual(edge.may(pods), ['allowed'])
  clock.advance(60_000)
  await edge.cut()
  assert.deepEqual(edge.may(pods), ['allowed'])
  // It is back, and the hub hears again.
  cloud.state = 'reachable'
  await edge.hear()
  await edge.cut()
  assert.deepEqual(edge.may(pods), ['allowed'])
  // Deaf again, while the API server is there.
  cloud.state = 'reachable'
  await edge.hear()
  await edge.deafen()
  clock.advance(100_000)
  cloud.state = 'unreachable'
  assert.deepEqual(edge.may(pods), ['unknown'])
})

test('[I2, L29, D2] a link that is cut, or an edge that is killed, while its hub hears of no changes leaves rules of the past', async () => {
  for (const end of [async (one: Edge) => one, (one: Edge) => one.crash()]) {
    const edge = await Edge.open()
    edge.tell('pods')
    await edge.written()
    await edge.deafen()
    const next = await end(edge)
    await next.cut()
    assert.deepEqual(next.may(pods), ['unknown'])
  }
})

test('[I2, L29] other rules from a hub that hears of no changes are not current; the same ones stay what they were', async () => {
  const edge = await Edge.open()
  const { rules } = edge.bench
  edge.tell('pods')
  await edge.written()
  await edge.cut()
  const deaf = () => Number.NEGATIVE_INFINITY
  rules.told(alice, rulesOf('pods'), deaf)
  assert.deepEqual(edge.may(pods), ['allowed'])
  rules.told(alice, rulesOf('pods', 'secrets'), deaf)
  await settle()
  for (const one of [edge, await edge.crash()]) assert.deepEqual(one.may(pods, secrets), ['unknown', 'unknown'])
})

test('[L29] a caller is seen with its first question: it may be the only one before the cut', async () => {
  const seen: string[] = []
  const bench = await openBench({ seen: (_, { name }) => void seen.push(name) })
  bench.cloud.users.set(token.token, alice)
  assert.equal(await bench.access.decide(token, pods), 'allowed')
  assert.deepEqual(seen, ['alice'])
})

test('[I2, L29] what a node may by the pods on it does not hang on its rules', async () => {
  const edge = await Edge.open()
  edge.bench.evaluation.judgeNodesBy({ judge: () => ({ allowed: true, reason: '' }), changedAt: 0 })
  edge.tell('pods')
  await edge.unsee()
  await edge.cut()
  assert.deepEqual(edge.may(secrets), ['allowed'])
})
