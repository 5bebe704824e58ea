import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { Unavailable, UsageError } from '../../base/fault.ts'
import { createLog, silentLog } from '../../base/log.ts'
import { faultOf } from '../../pki/verdict.ts'
import { Unreachable, type UpstreamRequest, type UpstreamResponse } from '../../upstream/upstream.ts'
import { withNext, withoutOld, withSwitched } from './authorities.ts'
import { edgePair, hubPair } from './certificates.ts'
import { FolderState } from './folderstate.ts'
import { KeptState, type StateStore } from './keptstate.ts'
import { SecretState } from './secretstate.ts'
import { authorityTexts, type HubState, makeState, textsOf } from './state.ts'

const root = mkdtempSync(join(tmpdir(), 'ake-hubstate-'))
after(() => rmSync(root, { recursive: true, force: true }))
let count = 0
const newFolder = () => join(root, String(count++), 'hub')
const day = 24 * 3600_000
const open = (store: StateStore, clock = fakeClock()) => KeptState.open({ store, clock, log: silentLog })

/** Secrets of one namespace as an API server keeps them: a version each, and a conflict for who has another. */
class Secrets {
  readonly objects = new Map<string, { metadata: Record<string, unknown>; data?: Record<string, string> }>()
  readonly asked: string[] = []
  #version = 100
  /** Answers instead, with a status. */
  fault: (() => number) | undefined

  readonly ask = async (asked: UpstreamRequest): Promise<UpstreamResponse> => {
    this.asked.push(asked.method)
    const fault = this.fault?.()
    if (fault === 0) throw new Unreachable('connection refused', false)
    const [status, object] = fault === undefined ? this.#answer(asked) : [fault, {}]
    const body = (async function* () {
      yield Buffer.from(JSON.stringify(object))
    })()
    return { status, headers: {}, body, heardAt: () => 0 }
  }

  #answer({ method, path, body }: UpstreamRequest): [number, object] {
    const content = body === undefined ? undefined : JSON.parse((body as Buffer).toString())
    const name = content?.metadata.name ?? path.split('/').at(-1)
    const known = this.objects.get(name)
    if (method === 'POST' && path.includes('/nowhere/')) return [404, {}]
    if (method === 'GET') return known === undefined ? [404, {}] : [200, known]
    if (method === 'POST' ? known !== undefined : known?.metadata.resourceVersion !== content.metadata.resourceVersion)
      return [409, {}]
    const stored = { ...content, metadata: { ...content.metadata, resourceVersion: String(++this.#version) } }
    this.objects.set(name, stored)
    return [200, stored]
  }
}

const secretIn = (upstream: Secrets, namespace = 'ake') => new SecretState({ namespace, name: 'hub', upstream })

test('a folder: made once, for its owner only, the same at the next start', async () => {
  const folder = newFolder()
  const first = await open(new FolderState(folder))
  assert.equal(first.isNew, true)
  assert.deepEqual(readdirSync(folder), ['hub.json'])
  assert.equal(statSync(join(folder, 'hub.json')).mode & 0o777, 0o600)
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  const second = await open(new FolderState(folder))
  assert.equal(second.isNew, false)
  assert.deepEqual(textsOf(second.current), textsOf(first.current))
})

for (const [kind, stores] of [
  ['folder', () => [newFolder()].flatMap((folder) => [1, 2, 3, 4].map(() => new FolderState(folder)))],
  ['Secret', () => [new Secrets()].flatMap((upstream) => [1, 2, 3, 4].map(() => secretIn(upstream)))],
] as const) {
  test(`several that start at once on one ${kind} end with one state, and one of them made it`, async () => {
    const kept = await Promise.all(stores().map((store) => open(store)))
    assert.equal(new Set(kept.map(({ current }) => JSON.stringify(textsOf(current)))).size, 1)
    assert.equal(kept.filter(({ isNew }) => isNew).length, 1)
  })
}

test('half of a state, or a damaged one, is refused by name; nothing of it is said, and no other is made', async () => {
  const folder = newFolder()
  const { current } = await open(new FolderState(folder))
  const path = join(folder, 'hub.json')
  const whole = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
  const cases: [unknown, RegExp][] = [
    ...Object.keys(whole).map((name): [unknown, RegExp] => [{ ...whole, [name]: undefined }, /it has no /]),
    [{ ...whole, 'ca.key': whole['serving.key'] }, /not an authority and its key/],
    [{ ...whole, 'serving.key': 'x' }, /serving\.key is no P-256 key/],
    [{ ...whole, 'tickets.key': 'AAAA' }, /tickets\.key has not 48 bytes/],
    [{ ...whole, 'tickets.made': 'once' }, /tickets\.made is no date/],
    [{ ...whole, 'session.context': 'x'.repeat(40) }, /session\.context/],
    [[], /no JSON object/],
  ]
  for (const [content, sentence] of cases) {
    const text = JSON.stringify(content)
    writeFileSync(path, text)
    await assert.rejects(open(new FolderState(folder)), (error: Error) => {
      assert.ok(error instanceof UsageError)
      assert.match(error.message, /the hub's state in .*hub\.json is damaged \(.*\): restore it/)
      assert.match(error.message, sentence)
      assert.doesNotMatch(error.message, /PRIVATE|[A-Za-z0-9+/]{40}/)
      return true
    })
    assert.equal(readFileSync(path, 'utf8'), text)
  }
  writeFileSync(path, '{"form')
  await assert.rejects(open(new FolderState(folder)), /no JSON object/)
  writeFileSync(path, JSON.stringify({ ...whole, format: '2' }))
  await assert.rejects(open(new FolderState(folder)), /written by a later release/)
  writeFileSync(path, JSON.stringify({ ...whole, 'later.key': 'kept' }))
  assert.deepEqual(textsOf((await open(new FolderState(folder))).current), textsOf(current))
})

test('a folder that lost its file, or is another one, is refused; an interrupted start or an empty volume is not', async () => {
  const folder = newFolder()
  mkdirSync(join(folder, 'lost+found'), { recursive: true })
  writeFileSync(join(folder, '.hub.json.1234'), 'half')
  assert.equal((await open(new FolderState(folder))).isNew, true)
  rmSync(join(folder, 'hub.json'))
  writeFileSync(join(folder, 'edge-1.pem'), '')
  await assert.rejects(open(new FolderState(folder)), {
    name: 'UsageError',
    message: /has no hub\.json, but "edge-1\.pem"/,
  })
})

test('a Secret that was emptied is refused; one that an operator made for it is filled, and keeps what else it has', async () => {
  const upstream = new Secrets()
  upstream.objects.set('hub', { metadata: { name: 'hub', labels: { team: 'edge' }, resourceVersion: '7' } })
  const { isNew } = await open(secretIn(upstream))
  const filled = upstream.objects.get('hub')
  assert.equal(isNew, true)
  assert.deepEqual(filled?.metadata.labels, { team: 'edge' })
  assert.deepEqual(upstream.asked, ['GET', 'PUT', 'GET'])
  filled!.data = {}
  await assert.rejects(open(secretIn(upstream)), { name: 'UsageError', message: /ake\/hub is damaged \(it is empty\)/ })
})

test('what a Secret cannot be had for is a sentence', async () => {
  const upstream = new Secrets()
  await assert.rejects(open(secretIn(upstream, 'nowhere')), /no namespace "nowhere".*: create it/)
  upstream.fault = () => 403
  await assert.rejects(open(secretIn(upstream)), {
    name: 'UsageError',
    message: /may not get the Secret ake\/hub \(403\)/,
  })
  upstream.fault = () => 500
  await assert.rejects(open(secretIn(upstream)), Unavailable)
  upstream.fault = () => 0
  await assert.rejects(open(secretIn(upstream)), {
    name: 'Unavailable',
    message: /cannot get .*: connection refused/,
  })
})

test('the ticket key is another after a week, at all replicas; what a later release keeps beside it stays', async () => {
  for (const stores of [
    [newFolder()].flatMap((folder) => [new FolderState(folder), new FolderState(folder)]),
    [new Secrets()].flatMap((upstream) => [secretIn(upstream), secretIn(upstream)]),
  ]) {
    const clock = fakeClock()
    const [one, other] = (await Promise.all(stores.map((store) => open(store, clock)))) as [KeptState, KeptState]
    const stored = await stores[0]!.read()
    assert.ok(await stores[0]!.replace(stored!, { ...stored!.texts, 'later.key': 'kept' }))
    assert.equal(await stores[0]!.replace(stored!, stored!.texts), false)
    const first = one.current
    let heard = 0
    other.observe(() => heard++)
    clock.advance(7 * day - 1)
    await Promise.all([one.look(), other.look()])
    assert.equal(one.current.tickets.key, first.tickets.key)
    clock.advance(1)
    await one.look()
    await other.look()
    assert.notDeepEqual(one.current.tickets.key, first.tickets.key)
    assert.deepEqual(other.current.tickets, one.current.tickets)
    assert.equal(heard, 1)
    assert.deepEqual(one.current.ca, first.ca)
    assert.equal((await stores[1]!.read())?.texts['later.key'], 'kept')
    clock.jump(-30 * day)
    await Promise.all([one.look(), other.look()])
    await Promise.all([one.look(), other.look()])
    assert.equal(other.current.tickets.madeAtMs, clock.now(), 'a clock set back does not make a key immortal')
    assert.deepEqual(other.current.tickets, one.current.tickets)
  }
})

test('replicas whose clocks are weeks apart do not make a ticket key each against the other', async () => {
  const folder = newFolder()
  const [clock, far] = [fakeClock(), fakeClock()]
  far.jump(30 * day)
  const one = await open(new FolderState(folder), clock)
  const other = await open(new FolderState(folder), far)
  const keys = new Set<string>()
  for (let at = 0; at < 20; at++) {
    for (const replica of [other, one]) {
      await replica.look()
      keys.add(replica.current.tickets.key.toString('hex'))
    }
    clock.advance(10_000)
    far.advance(10_000)
  }
  assert.ok(keys.size <= 3, `${keys.size} keys in 200 s`)
})

test('a state that is lost or replaced while a hub runs leaves that hub as it is, and is said once', async () => {
  const lines: string[] = []
  const upstream = new Secrets()
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  const kept = await KeptState.open({ store: secretIn(upstream), clock: fakeClock(), log })
  const before = kept.current
  upstream.fault = () => 0
  await kept.look()
  await kept.look()
  upstream.fault = undefined
  upstream.objects.delete('hub')
  await kept.look()
  await open(secretIn(upstream))
  await kept.look()
  assert.equal(kept.current, before)
  assert.equal(lines.length, 3)
  for (const [at, why] of ['connection refused', 'is gone', 'is another one now'].entries())
    assert.match(lines[at]!, new RegExp(why))
  assert.doesNotMatch(lines.join(''), /PRIVATE/)
})

test('what it signs: both uses, names, from 1970 on, within the authority', async () => {
  const { current } = await open(new FolderState(newFolder()), fakeClock(5_000))
  const authority = new X509Certificate(current.ca.cert)
  const [serving, edge] = [hubPair(current, ['hub.example', '192.0.2.7'], 5_000), edgePair(current, 'edge-1', 5_000)]
  const [server, client] = [serving, edge].map(({ cert }) => new X509Certificate(cert)) as [
    X509Certificate,
    X509Certificate,
  ]
  assert.equal(client.subject, 'O=system:nodes\nCN=system:node:edge-1')
  assert.equal(server.checkHost('hub.example', { subject: 'never' }), 'hub.example')
  for (const now of [5_000, Date.UTC(2027, 0, 1)]) {
    assert.equal(faultOf({ certificate: server, authorities: [authority], use: 'server', now }), undefined)
    assert.equal(faultOf({ certificate: client, authorities: [authority], use: 'client', now }), undefined)
  }
  assert.equal(faultOf({ certificate: client, authorities: [authority], use: 'server', now: 5_000 }), 'use')
  assert.equal(faultOf({ certificate: authority, authorities: [authority], use: 'client', now: 5_000 }), 'use')
  assert.equal(
    faultOf({ certificate: client, authorities: [authority], use: 'client', now: Date.UTC(2029, 0, 1) }),
    'expired',
  )
  assert.equal(faultOf({ certificate: client, authorities: [authority], use: 'client', now: -1 }), 'early')
  const other = new X509Certificate((await open(new FolderState(newFolder()))).current.ca.cert)
  assert.equal(faultOf({ certificate: client, authorities: [other], use: 'client', now: 5_000 }), 'authority')
  await assert.rejects(
    open({ ...storeOf(textsOf(current)) }, fakeClock(Date.UTC(2040, 0, 1))),
    /expired on 2035-.*: begin with a new state/,
  )
})

function storeOf(texts: Readonly<Record<string, string>>): StateStore {
  const no = () => Promise.resolve(false)
  return { name: 'test', read: () => Promise.resolve({ texts, version: '' }), create: no, replace: no }
}

/** Several hubs on one state that a test changes as an operator would. */
function shared(): StateStore & { texts: Readonly<Record<string, string>> } {
  const store = {
    name: 'test',
    texts: {} as Readonly<Record<string, string>>,
    read: async () => (store.texts.format === undefined ? undefined : { texts: store.texts, version: '' }),
    create: async (texts: Readonly<Record<string, string>>) => {
      store.texts = texts
      return true
    },
    replace: async (_before: unknown, texts: Readonly<Record<string, string>>) => {
      store.texts = texts
      return true
    },
  }
  return store
}

test('a hub that runs takes over each step of a rotation, and not a state that was put back', async () => {
  const store = shared()
  const lines: string[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  const kept = await KeptState.open({ store, clock: fakeClock(), log })
  let heard = 0
  kept.observe(() => heard++)
  const first = store.texts
  const step = async (next: HubState) => {
    store.texts = { ...store.texts, ...authorityTexts(next) }
    await kept.look()
    assert.deepEqual(textsOf(kept.current), textsOf(next))
  }
  await step(withNext(kept.current, 1_000))
  const announced = store.texts
  await step(withSwitched(kept.current, 2_000))
  assert.equal(heard, 2)
  const { current } = kept
  for (const texts of [announced, first]) {
    store.texts = texts
    await kept.look()
    assert.equal(kept.current, current)
    assert.match(lines.at(-1) ?? '', /put back to before its authority was changed/)
    store.texts = { ...texts, ...authorityTexts(current) }
    await kept.look()
  }
  await step(withoutOld(kept.current))
  assert.equal(heard, 3)
  assert.equal(kept.current.bridge, undefined)
  store.texts = textsOf(makeState(5_000))
  await kept.look()
  assert.match(lines.at(-1) ?? '', /is another one now/)
  assert.doesNotMatch(lines.join(), /PRIVATE|BEGIN/)
})

test('half of what a rotation wrote is damage', async () => {
  const texts = textsOf(withNext(withSwitched(withNext(makeState(0), 1), 2), 3))
  const cases: [Record<string, string>, RegExp][] = [
    [{ 'next.key': '' }, /it has no next\.key/],
    [{ 'next.key': texts['ca.key'] ?? '' }, /next\.crt and next\.key are not/],
    [{ 'next.made': 'soon' }, /next\.made is no date/],
    [{ 'old.crt': 'x' }, /old\.crt is no authority/],
    [{ generation: 'two' }, /generation is no number/],
  ]
  for (const [change, sentence] of cases) await assert.rejects(open(storeOf({ ...texts, ...change })), sentence)
  assert.deepEqual(textsOf((await open(storeOf(texts))).current), texts)
})
