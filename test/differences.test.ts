import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCases } from '../conformance/apply/cases.ts'
import { differences } from '../conformance/compare.ts'
import { groups } from '../conformance/corpus/groups.ts'
import { get, patch, post, watch } from '../conformance/corpus.ts'
import { Comparison } from '../conformance/differential.ts'
import { Side } from '../conformance/exchange.ts'
import { admits, listed, listedIn } from '../conformance/listed/listed.ts'
import { Mapping } from '../conformance/mapping.ts'
import { verdict } from '../conformance/verdict.ts'
import { authorityCert, FakeServer, issue } from '../src/upstream/fakeserver.test-support.ts'

const now = Date.parse('2026-05-06T07:08:09Z')

/** Cases of every kind that the real server serves: only it can name them. */
const madeOfTheRealOne = /^\^verbs\\\//

test('every admitted difference names cases that exist, and each id stands once', async () => {
  const corpus = groups.flatMap(({ name, cases }) =>
    cases.flatMap((one) => [one, ...(one.watch?.during ?? [])].map((each) => `${name}/${each.name}`)),
  )
  const applied = (await readCases()).map(({ name }) => name)
  for (const [table, names] of [['differences', corpus] as const, ['apply differences', applied] as const]) {
    const listed = listedIn(table)
    for (const { id, places } of listed) {
      for (const { name } of places)
        assert.ok(madeOfTheRealOne.test(name.source) || names.some((one) => name.test(one)), `${id}: no case ${name}`)
    }
    assert.equal(new Set(listed.map(({ id }) => id)).size, listed.length)
  }
})

test('no two cases of a group have one name', () => {
  for (const { name, cases } of groups) {
    const names = cases.flatMap((one) => [one, ...(one.watch?.during ?? [])].map((each) => each.name))
    assert.deepEqual(
      names.filter((one, at) => names.indexOf(one) !== at),
      [],
      name,
    )
  }
})

test('an entry admits its cases and fields only, and is refused where it is not complete', () => {
  const told = { id: 'id', real: 'real', ours: 'ours', why: 'why' }
  const one = listed({ ...told, where: { 'body.items[*].x': ['a/*'], status: ['b'] } })
  assert.ok(admits(one, 'a/c', 'body.items[3].x') && admits(one, 'b', 'status'))
  assert.ok(
    !admits(one, 'b', 'body.items[3].x') && !admits(one, 'a/c', 'body.items[3].xy') && !admits(one, 'c', 'status'),
  )
  assert.throws(() => listed({ ...told, why: ' ', where: { a: ['b'] } }), /id is not complete/)
  assert.throws(() => listed({ ...told, where: {} }), /id is not complete/)
  assert.throws(() => listed({ ...told, where: { a: [] } }), /id is not complete/)
})

test('mapping hides what differs by nature and nothing else', () => {
  const seen = (uid: string, version: string, changed: string) => {
    const mapping = new Mapping(now)
    const metadata = { name: 'a', uid, creationTimestamp: '2026-05-06T07:08:00Z' }
    return [
      mapping.json({ metadata: { ...metadata, resourceVersion: version } }),
      mapping.json({
        metadata: { ...metadata, resourceVersion: changed, managedFields: [] },
        at: '2001-02-03T04:05:06Z',
      }),
    ]
  }
  const first = '11111111-1111-1111-1111-111111111111'
  const real = seen(first, '5', '9')
  assert.deepEqual(real, seen('22222222-2222-2222-2222-222222222222', '70', '71'))
  // A write that should have changed nothing, or should have.
  assert.equal(differences(real, seen(first, '5', '5'))[0]?.field, '[1].metadata.resourceVersion')
})

test('differences are told by path: missing, other and surplus', () => {
  const found = differences({ a: 1, b: [1, { c: 2 }], d: 'x' }, { a: 1, b: [1, { c: 3 }, 4], e: 'y' })
  assert.deepEqual(found.map(({ field }) => field).sort(), ['b.length', 'b[1].c', 'd', 'e'])
})

test('an unlisted difference fails, an entry that nothing needs fails too', () => {
  const entry = { id: 'known', places: [] }
  const fine = { name: 'a', open: [], listed: new Set(['known']) }
  const wrong = { name: 'b', open: [{ field: 'status', real: 200, ours: 500 }], listed: new Set<string>() }
  const outcome = (...parts: Parameters<typeof verdict>) => {
    const { passed, failed } = verdict(...parts)
    return [passed, failed]
  }
  assert.deepEqual(outcome([fine], [entry], true), [1, 0])
  assert.deepEqual(outcome([fine, wrong], [entry], true), [1, 1])
  assert.deepEqual(outcome([fine], [entry, { id: 'stale', places: [] }], true), [1, 1])
  assert.deepEqual(outcome([fine], [entry, { id: 'stale', places: [] }], false), [1, 0])
  assert.deepEqual(outcome([fine], [], true), [1, 1])
})

test('reads are asked over both protocols, writes and watches over one of them in turn', async () => {
  const spoken: string[] = []
  const answer = { status: 200, headers: {}, body: '{}' }
  const side = {
    exchange: async ({ name }: { name: string }, _: unknown, protocol?: string) => {
      spoken.push(`${name} ${protocol}`)
      return answer
    },
    watch: async ({ name }: { name: string }, _: unknown, protocol?: string) => {
      spoken.push(`${name} ${protocol}`)
      return { finish: async () => answer }
    },
  }
  const cases = [
    get('read', '/r'),
    post('made', '/r', {}),
    watch('watched', '/r', [patch('merge', 'changed', '/r/a', {})]),
    post('again', '/r', {}),
  ]
  const outcomes = await new Comparison(side, side, [], true).run({ name: 'g', namespaces: [], cases })
  // Both servers are asked the same.
  assert.deepEqual(
    spoken.filter((_, at) => at % 2 === 0),
    ['read HTTP/1.1', 'read HTTP/2', 'made HTTP/1.1', 'watched HTTP/2', 'changed HTTP/1.1', 'again HTTP/2'],
  )
  assert.deepEqual(
    outcomes.map(({ name }) => name),
    ['g/read', 'g/read over HTTP/2', 'g/made', 'g/changed', 'g/watched over HTTP/2', 'g/again over HTTP/2'],
  )
})

test('a side speaks the protocol it is asked to, and reads the same answer over either', async () => {
  const fake = await FakeServer.start()
  const side = new Side({ url: fake.url, ca: authorityCert, ...issue({ use: 'client', name: 'admin' }) })
  try {
    fake.handle = (request, response) => {
      response.writeHead(201, { 'x-spoken': request.httpVersion })
      request.pipe(response)
    }
    for (const [protocol, version] of [['HTTP/1.1', '1.1'] as const, ['HTTP/2', '2.0'] as const]) {
      const { status, headers, body } = await side.exchange(post('', '/p?q=%2F', 'whole'), new Map(), protocol)
      assert.deepEqual([status, headers['x-spoken'], body], [201, version, 'whole'])
    }
    assert.deepEqual(fake.paths(), ['POST /p?q=%2F', 'POST /p?q=%2F'])
  } finally {
    side.close()
    await fake.end()
  }
})
