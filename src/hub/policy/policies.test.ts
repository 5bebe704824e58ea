/** Policies as a hub follows them: over sources in memory that are told what the API server would say. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import type { InterestView, LinkObject } from '../../link/session/session.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { SourceReader } from '../sources/view.ts'
import { Policies } from './policies.ts'

/** One resource that policies are made of, as its source tells it. */
class ToldResource {
  readonly objects = new Map<string, LinkObject>()
  reader: SourceReader | undefined
  #version = 0

  opened(): void {
    const view: Pick<InterestView, 'behind' | 'get'> = {
      behind: () => [...this.objects.values()],
      get: (key) => this.objects.get(key),
    }
    this.reader?.opened(view as InterestView)
  }

  refused(reason: 'unknown' | 'busy' | 'forbidden', sentence = 'said so'): void {
    this.reader?.refused({ reason, retryAfterMs: 1_000, sentence })
  }

  put(name: string, object: object): void {
    const version = ++this.#version
    const bytes = Buffer.from(JSON.stringify({ metadata: { name }, ...object }))
    const item = { key: name, uid: name, version, bytes }
    const previous = this.objects.get(name)
    this.objects.set(name, item)
    this.reader?.event({ key: name, version, item, previous })
  }

  remove(name: string): void {
    const previous = this.objects.get(name)
    this.objects.delete(name)
    this.reader?.event({ key: name, version: ++this.#version, item: undefined, previous })
  }
}

async function followed() {
  const [policies, nodes, definitions] = [new ToldResource(), new ToldResource(), new ToldResource()]
  const all: Partial<Record<string, ToldResource>> = { nodes, customresourcedefinitions: definitions }
  const clock = fakeClock()
  const open = ({ resource }: Interest, reader: SourceReader) => {
    const told = all[resource] ?? policies
    told.reader = reader
    return undefined
  }
  const followed = new Policies({ sources: { open }, clock, log: silentLog })
  const ending = new AbortController()
  const running = followed.run(ending.signal)
  let changes = 0
  followed.observe(() => void changes++)
  return {
    ...{ policies, nodes, definitions, followed, clock },
    changes: async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return changes
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await running
    },
  }
}

const site = 'node-restriction.kubernetes.io/site'
const trusting = { nodes: { selector: { matchLabels: { [site]: 'a' } } }, trust: true }

test('policies come, change and go without a restart, and with the labels of a Node', async () => {
  await using hub = await followed()
  const { policies, nodes, definitions, followed: all } = hub
  assert.equal(all.isKnown, false)
  policies.refused('unknown', 'there is no such resource')
  nodes.opened()
  definitions.opened()
  assert.equal(all.isKnown, true)
  assert.equal(all.rulesOf('n1').trusts, false)

  policies.opened()
  policies.put('p', { spec: trusting })
  assert.equal(all.rulesOf('n1').trusts, false)
  nodes.put('n1', { metadata: { name: 'n1', labels: { [site]: 'a' } } })
  assert.equal(all.rulesOf('n1').trusts, true)
  assert.equal(all.rulesOf('n2').trusts, false)
  nodes.put('n1', { metadata: { name: 'n1', labels: { [site]: 'b' } } })
  assert.equal(all.rulesOf('n1').trusts, false)
  nodes.remove('n1')
  policies.put('p', { spec: { trust: true } })
  assert.equal(all.rulesOf('n1').trusts, true)
  policies.remove('p')
  assert.equal(all.rulesOf('n1').trusts, false)
})

test('that there are no policies is believed of definitions that were read, and not of discovery alone', async () => {
  const name = 'edgepolicies.ake.dev'
  const revoking = { spec: { revoked: [{ name: 'n1', since: '2026-01-01T00:00:00Z' }] } }
  await using hub = await followed()
  const { policies, definitions, followed: all } = hub
  policies.refused('unknown', 'there is no such resource')
  assert.equal(all.isKnown, false)
  assert.match(all.why, /has not read whether the cluster defines EdgePolicies \(they are being read\)/)
  definitions.refused('forbidden', 'may not')
  assert.equal(all.isKnown, false)
  assert.match(all.why, /\(may not\)/)
  definitions.put(name, {})
  definitions.opened()
  assert.equal(all.isKnown, false, 'an API server that has just started does not serve them yet')
  assert.match(all.why, /defines EdgePolicies, and its API server does not serve them yet/)
  policies.put('lost', revoking)
  policies.opened()
  assert.equal(all.isKnown, true)
  assert.notEqual(all.revokedSince('n1'), undefined)
  // Discovery of an API server that starts anew: what was read counts on, and the definitions are read again.
  policies.refused('unknown', 'there is no such resource')
  definitions.opened()
  assert.notEqual(all.revokedSince('n1'), undefined)
  definitions.remove(name)
  assert.equal(all.revokedSince('n1'), undefined)
})

test('edges for which the same policies are have the same rules, and keep them while others change', async () => {
  await using hub = await followed()
  const { policies, nodes, followed: all } = hub
  nodes.opened()
  policies.opened()
  policies.put('p', { spec: { nodes: { names: ['n*'] }, trust: true } })
  const before = all.rulesOf('n1')
  assert.equal(all.rulesOf('n2'), before)
  assert.notEqual(all.rulesOf('m1'), before)
  policies.put('q', { spec: { nodes: { names: ['m*'] }, trust: true } })
  assert.equal(all.rulesOf('n1'), before)
  const count = await hub.changes()
  // A status that is written, a heartbeat: nothing that rules are made of.
  policies.put('q', { spec: { nodes: { names: ['m*'] }, trust: true }, status: { edges: 3 } })
  nodes.put('n1', { metadata: { name: 'n1' }, status: {} })
  const later = await hub.changes()
  nodes.put('n1', { metadata: { name: 'n1' }, status: { more: true } })
  assert.equal(await hub.changes(), later)
  assert.ok(later <= count + 1)
})

test('it is told whose labels have changed; of anything else, that all may be concerned', async () => {
  await using hub = await followed()
  const { policies, nodes, followed: all, clock } = hub
  nodes.put('n1', { metadata: { name: 'n1' } })
  nodes.put('n2', { metadata: { name: 'n2' } })
  nodes.opened()
  policies.opened()
  await until(() => all.isKnown)
  await hub.changes()
  const told: (readonly string[] | undefined)[] = []
  all.observe((names) => void told.push(names && [...names].sort()))
  const labelled = (name: string, value: string) => nodes.put(name, { metadata: { name, labels: { [site]: value } } })
  labelled('n1', 'a')
  await hub.changes()
  labelled('n2', 'b')
  labelled('n3', 'b')
  nodes.remove('n1')
  await hub.changes()
  policies.put('p', { spec: {} })
  labelled('n2', 'c')
  await hub.changes()
  labelled('n2', 'd')
  await hub.changes()
  // Read anew: n3 has gone meanwhile, n2 is as it was.
  nodes.refused('busy')
  nodes.objects.delete('n3')
  clock.advance(60_000)
  nodes.opened()
  await until(() => told.length > 4)
  assert.deepEqual(told, [['n1'], ['n1', 'n2', 'n3'], undefined, ['n2'], ['n3']])
})

test('what was read stands while it cannot be read, and is replaced as a whole', async () => {
  await using hub = await followed()
  const { policies, nodes, definitions, followed: all, clock } = hub
  nodes.opened()
  definitions.opened()
  policies.opened()
  policies.put('p', { spec: { neverMirrored: [{ apiGroups: [''], resources: ['secrets'] }] } })
  policies.put('q', { spec: { trust: true } })
  const never = () => all.rulesOf('n1').isNeverMirrored({ group: '', resource: 'secrets', namespace: 'a' }).yes
  policies.refused('busy')
  assert.ok(never() && all.rulesOf('n1').trusts)
  clock.advance(60_000)
  policies.objects.delete('q')
  policies.opened()
  // On a busy machine they are read in several turns.
  await until(() => never() && !all.rulesOf('n1').trusts)
  policies.refused('forbidden')
  assert.ok(never())
  policies.refused('unknown')
  assert.ok(!never())
})

test('a hub that may not read policies does not know them, and says why', async () => {
  await using hub = await followed()
  hub.policies.refused('forbidden', 'the API server does not let the hub read edgepolicies')
  assert.equal(hub.followed.isKnown, false)
  assert.match(hub.followed.why, /does not let the hub read edgepolicies/)
})

test('the latest time since which a name is revoked counts, whichever edges its policy is for', async () => {
  await using hub = await followed()
  const { policies, followed: all } = hub
  policies.opened()
  const at = (text: string) => ({ sinceMs: Date.parse(text) })
  policies.put('a', { spec: { nodes: { names: ['x'] }, revoked: [{ name: 'n1', since: '2026-01-01T00:00:00Z' }] } })
  policies.put('b', {
    spec: {
      revoked: [
        { name: 'n2', since: '2026-01-01T00:00:00Z' },
        { name: 'n1', since: '2026-02-01T00:00:00Z' },
      ],
    },
  })
  assert.deepEqual(all.revokedSince('n1'), { ...at('2026-02-01T00:00:00Z'), by: 'policy/b spec.revoked[1]' })
  assert.deepEqual(all.revokedSince('n2'), { ...at('2026-01-01T00:00:00Z'), by: 'policy/b spec.revoked[0]' })
  assert.equal(all.revokedSince('n3'), undefined)
  // They are gone through once, however many links are judged by them.
  const [first] = [...all.all()].filter(({ name }) => name === 'b')
  let times = 0
  const { revoked = [] } = first ?? {}
  Object.defineProperty(revoked, Symbol.iterator, {
    value: () => {
      times++
      return revoked.values()
    },
  })
  policies.put('d', { spec: {} })
  for (let at = 0; at < 1_000; at++) all.revokedSince(`n${at}`)
  assert.equal(times, 1)
  // A name without a readable time was meant to be kept out.
  policies.put('c', { spec: { revoked: [{ name: 'n3', since: 'today' }] } })
  assert.equal(all.revokedSince('n3')?.sinceMs, Number.POSITIVE_INFINITY)
})

test('what forbids by labels counts for an edge without a Node, since its labels are not known; what allows does not', async () => {
  await using hub = await followed()
  const { policies, nodes, followed: all } = hub
  nodes.opened()
  policies.opened()
  policies.put('p', { spec: { ...trusting, offline: { serveAge: '1h' } } })
  assert.equal(all.rulesOf('n1').trusts, false)
  assert.deepEqual(all.rulesOf('n1').offline, { serveAgeMs: 3_600_000 })
  nodes.put('n1', { metadata: { name: 'n1' } })
  assert.deepEqual(all.rulesOf('n1').offline, {}, 'a Node without the label')
  nodes.remove('n1')
  assert.deepEqual(all.rulesOf('n1').offline, { serveAgeMs: 3_600_000 })
})
