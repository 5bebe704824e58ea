import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequest } from '../kube/request.ts'
import { alice, makeJwt, openBench, settle, aliceToken as token, withAlice } from './access.test-support.ts'
import { makeQuestion, questionOf } from './question.ts'

const pods = makeQuestion({ verb: 'list', version: 'v1', resource: 'pods', namespace: 'shop' })
const secrets = makeQuestion({ verb: 'list', version: 'v1', resource: 'secrets', namespace: 'shop' })

test('[I2] a first decision is asked in the name of the caller, the next is immediate and costs nothing', async () => {
  const { access, cloud } = await withAlice()
  const first = access.decide(token, pods)
  assert.ok(first instanceof Promise)
  assert.equal(await first, 'allowed')
  assert.equal(access.decide(token, pods), 'allowed')
  assert.deepEqual(cloud.asked, ['subject alice', 'access alice'])
})

test('[I2] a line break in a name cannot make one question look like another', () => {
  const one = makeQuestion({ verb: 'get', resource: 'pods', namespace: 'a\nx', name: 'y' })
  const other = makeQuestion({ verb: 'get', resource: 'pods', namespace: 'a', name: 'x\ny' })
  assert.notEqual(one.key, other.key)
})

test('a review that is never answered is given up, and can be asked again', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, secrets)
  cloud.mode = 'silent'
  const verdict = access.decide(token, pods)
  await settle()
  clock.advance(10_000)
  assert.equal(await verdict, 'unknown')
  await settle()
  assert.equal(cloud.atOnce, 0)
  cloud.mode = 'answer'
  cloud.state = 'reachable'
  clock.advance(1000)
  assert.equal(await access.decide(token, pods), 'allowed')
})

test('many requests with one unknown token cost one review of each kind', async () => {
  const { access, cloud } = await withAlice()
  const verdicts = await Promise.all(Array.from({ length: 50 }, async () => await access.decide(token, pods)))
  assert.deepEqual(new Set(verdicts), new Set(['allowed']))
  assert.deepEqual(cloud.asked, ['subject alice', 'access alice'])
})

test('a denial is asked again after 10 s, and the request waits for that', async () => {
  const { access, cloud, clock } = await withAlice()
  cloud.allows = () => false
  assert.equal(await access.decide(token, pods), 'denied')
  cloud.allows = () => true
  assert.equal(access.decide(token, pods), 'denied')
  clock.advance(10_000)
  assert.equal(await access.decide(token, pods), 'allowed')
})

test('[I2] the first decision waits no longer than a read may, then nobody waits', async () => {
  const { access, cloud, clock } = await withAlice()
  cloud.mode = 'hang'
  const verdict = access.decide(token, pods)
  await settle()
  clock.advance(300)
  assert.equal(await verdict, 'unknown')
  assert.equal(cloud.suspicions.length, 1)
  assert.equal(access.decide(token, secrets), 'unknown')
  assert.equal(access.refusal(token, secrets, 'unknown').code, 401)
})

test('an answer that comes too late for its request serves the next one', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, secrets)
  cloud.mode = 'hang'
  const verdict = access.decide(token, pods)
  await settle()
  clock.advance(300)
  assert.equal(await verdict, 'unknown')
  cloud.release()
  await settle()
  assert.equal(access.decide(token, pods), 'allowed')
})

test('a full house of reviews says nothing about the link', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  cloud.mode = 'hang'
  const named = (i: number) => access.decide(token, makeQuestion({ verb: 'get', resource: 'pods', name: `p${i}` }))
  const first = Array.from({ length: 16 }, (_, i) => named(i))
  await settle()
  const last = named(16)
  await settle()
  cloud.mode = 'answer'
  assert.equal(cloud.atOnceMost, 16)
  clock.advance(299)
  cloud.release()
  assert.equal(await last, 'allowed')
  assert.deepEqual(new Set(await Promise.all(first.map((one) => Promise.resolve(one)))), new Set(['allowed']))
  assert.deepEqual(cloud.suspicions, [])
})

test('the last decision holds while the cloud is suspect or away, and through a restart', async () => {
  let bench = await withAlice()
  await bench.access.decide(token, pods)
  bench.cloud.allows = () => false
  await bench.access.decide(token, secrets)
  for (const state of ['suspect', 'unreachable'] as const) {
    bench.cloud.state = state
    bench.clock.advance(60_000)
    assert.equal(bench.access.decide(token, pods), 'allowed')
    assert.notEqual(bench.access.decide(token, secrets), 'allowed')
    bench = await bench.restart()
    assert.equal(bench.access.decide(token, pods), 'allowed')
    assert.notEqual(bench.access.decide(token, secrets), 'allowed')
  }
  bench.cloud.state = 'reachable'
  assert.equal(await bench.access.decide(token, pods), 'denied')
})

test('[I1] a denial survives a crash that follows at once', async () => {
  const bench = await withAlice()
  await bench.access.decide(token, pods)
  bench.clock.advance(3000)
  await settle()
  assert.ok([...bench.records.kept.keys()].some((key) => key.startsWith('decision')))
  bench.access.learn(token, pods, { status: 403, askedAt: bench.clock.steady() })
  await settle()
  bench.cloud.state = 'unreachable'
  const next = await bench.crash()
  assert.equal(next.access.decide(token, pods), 'denied')
})

test('[I2] what was denied is 403 after a restart without the cloud, with how long ago; with it the cloud is asked again', async () => {
  let bench = await withAlice()
  bench.cloud.reason = 'no role'
  bench.cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.resource === 'pods'
  assert.equal(await bench.access.decide(token, pods), 'allowed')
  assert.equal(await bench.access.decide(token, secrets), 'denied')
  bench.cloud.state = 'unreachable'
  const said = bench.access.refusal(token, secrets, 'denied').message
  assert.match(said, /"shop": no role$/)
  for (const hours of [1, 2]) {
    bench.clock.advance(3_600_000)
    bench = await bench.restart()
    assert.equal(bench.access.decide(token, secrets), 'denied')
    const { code, message } = bench.access.refusal(token, secrets, 'denied')
    const age = hours === 1 ? '60m' : '120m'
    assert.deepEqual([code, message], [403, `${said}; so the API server said ${age} ago, which cannot be asked now`])
    assert.equal(bench.access.decide(token, pods), 'allowed')
  }
  bench.cloud.state = 'reachable'
  bench.cloud.allows = () => true
  assert.equal(await bench.access.decide(token, secrets), 'allowed', 'what the disk says does not count with the cloud')
  bench.cloud.state = 'unreachable'
  bench = await bench.restart()
  assert.equal(bench.access.decide(token, secrets), 'allowed', 'and nothing is left of it')
})

test('a client without a credential has nothing written down that it was denied', async () => {
  const bench = await openBench()
  bench.cloud.anonymousMayReview = true
  bench.cloud.allows = () => false
  assert.equal(await bench.access.decide({ kind: 'anonymous' }, pods), 'denied')
  await bench.restart()
  assert.deepEqual(
    bench.records.seen.filter((record) => record.startsWith('denial')),
    [],
  )
})

test('[I1] of an allowance and a denial on one disk the newer counts: an older ake writes the one and leaves the other', async () => {
  for (const isAllowedLater of [true, false]) {
    let bench = await withAlice()
    bench.cloud.allows = () => false
    await bench.access.decide(token, pods)
    bench.cloud.state = 'unreachable'
    bench = await bench.restart()
    const [denial] = await bench.records.records('denial')
    const { at } = JSON.parse(String(denial?.value))
    const value = Buffer.from(JSON.stringify({ at: at + (isAllowedLater ? 1 : 0) }))
    await bench.records.commit({
      synced: true,
      records: [{ kind: 'decision', key: String(denial?.key), value }],
    })
    for (let start = 0; start < 2; start++) {
      bench = await bench.restart()
      assert.equal(bench.access.decide(token, pods), isAllowedLater ? 'allowed' : 'denied')
    }
    const left = await Promise.all(
      ['decision', 'denial'].map(async (kind) => (await bench.records.records(kind)).length),
    )
    assert.deepEqual(left, isAllowedLater ? [1, 0] : [0, 1])
  }
})

test('what was learned the moment before the cloud went away survives a crash', async () => {
  const bench = await withAlice()
  const end = new AbortController()
  const running = bench.run(end.signal)
  await bench.access.decide(token, pods)
  bench.cloud.state = 'unreachable'
  await settle()
  const next = await bench.crash()
  assert.equal(next.access.decide(token, pods), 'allowed')
  end.abort()
  await running
})

test('a refused write of the disk is made up for', async () => {
  const bench = await withAlice()
  bench.records.full = true
  await bench.access.decide(token, pods)
  bench.clock.advance(3000)
  await settle()
  assert.equal(bench.records.commits, 0)
  bench.records.full = false
  bench.clock.advance(10_000)
  await settle()
  bench.cloud.state = 'unreachable'
  assert.equal((await bench.crash()).access.decide(token, pods), 'allowed')
  assert.equal(bench.lines.filter((line) => line.includes('access.write.refused')).length, 1)
})

test('a rotated token keeps the decisions of its caller', async () => {
  const { access, cloud } = await withAlice()
  await access.decide(token, pods)
  const next = { kind: 'token', token: 'next-secret-of-alice' } as const
  const extra = { 'authentication.kubernetes.io/credential-id': ['JTI=2'] }
  cloud.users.set(next.token, { ...alice, groups: [...alice.groups].reverse(), extra })
  assert.equal((await access.caller(next))?.name, 'alice')
  cloud.state = 'unreachable'
  assert.equal(access.decide(next, pods), 'allowed')
})

test('[I1] other groups are another caller', async () => {
  const { access, cloud } = await withAlice()
  await access.decide(token, pods)
  const weak = { kind: 'token', token: 'weak' } as const
  cloud.users.set(weak.token, { ...alice, groups: ['system:authenticated'] })
  await access.caller(weak)
  cloud.state = 'unreachable'
  assert.equal(access.decide(weak, pods), 'unknown')
})

test('[I1] a token narrowed by its extra is another caller than its owner’s full one', async () => {
  let bench = await withAlice()
  await bench.access.decide(token, pods)
  const scoped = { kind: 'token', token: 'scoped' } as const
  bench.cloud.users.set(scoped.token, { ...alice, extra: { 'example.com/scopes': ['read:maps', 'a'] } })
  bench.cloud.allows = ({ extra }) => extra === undefined
  assert.equal(await bench.access.decide(scoped, pods), 'denied')
  assert.equal(bench.access.decide(token, pods), 'allowed')
  const same = { kind: 'token', token: 'scoped-too' } as const
  bench.cloud.users.set(same.token, { ...alice, extra: { 'example.com/scopes': ['a', 'read:maps'] } })
  await bench.access.caller(same)
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(same, pods), 'denied', 'in any order')
  bench = await bench.restart()
  assert.equal(bench.access.decide(token, pods), 'allowed')
  assert.notEqual(bench.access.decide(scoped, pods), 'allowed')
})

test('[I2] an invented token gets nothing, online and offline', async () => {
  const { access, cloud, clock } = await withAlice()
  const invented = { kind: 'token', token: 'invented' } as const
  assert.equal(await access.decide(invented, pods), 'unauthorized')
  assert.equal(access.decide(invented, pods), 'unauthorized')
  assert.equal(access.refusal(invented, pods, 'unauthorized').code, 401)
  cloud.state = 'unreachable'
  clock.advance(20_000)
  assert.equal(access.decide(invented, pods), 'unknown')
  assert.equal(access.refusal(invented, pods, 'unknown').code, 401)
})

test('[I3] anonymous gets what the API server gives it, no more', async () => {
  const { access, cloud, clock } = await withAlice()
  const anonymous = { kind: 'anonymous' } as const
  const version = makeQuestion({ verb: 'get', path: '/version' })
  assert.equal(await access.decide(anonymous, pods), 'unknown')
  assert.match(
    access.refusal(anonymous, pods, 'unknown').message,
    /User "system:anonymous" cannot list resource "pods"/,
  )
  access.learn(anonymous, version, { status: 200, askedAt: clock.steady() })
  assert.equal(access.decide(anonymous, version), 'allowed')
  cloud.anonymousMayReview = true
  cloud.allows = () => false
  clock.advance(1000)
  assert.equal(await access.decide(anonymous, pods), 'denied')
  cloud.state = 'unreachable'
  assert.equal(access.decide(anonymous, version), 'allowed')
  assert.equal(access.decide(anonymous, secrets), 'unknown')
  const refusal = access.refusal(anonymous, secrets, 'unknown')
  assert.ok(refusal.message.endsWith(': no decision is known for this caller while the API server cannot be reached'))
})

test('[I2] what was never decided of a known caller is 503 while the API server is away, what was denied 403', async () => {
  const { access, cloud } = await withAlice()
  cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.resource !== 'secrets'
  assert.equal(await access.decide(token, pods), 'allowed')
  assert.equal(await access.decide(token, secrets), 'denied')
  cloud.state = 'unreachable'
  const nodes = makeQuestion({ verb: 'list', resource: 'nodes' })
  assert.equal(access.decide(token, nodes), 'unknown')
  const { status } = access.refusal(token, nodes, 'unknown')
  assert.deepEqual([status.code, status.reason, status.details], [503, 'ServiceUnavailable', undefined])
  assert.equal(
    status.message,
    'no decision is known for this caller while the API server cannot be reached: whether User "alice" can list resource "nodes" in API group "" at the cluster scope only it can tell',
  )
  assert.equal(access.refusal(token, secrets, 'denied').code, 403)
})

test('the administrator is asked nothing', async () => {
  const { access, cloud } = await openBench()
  cloud.state = 'unreachable'
  assert.equal(access.decide({ kind: 'edge' }, secrets), 'allowed')
  assert.equal(access.held({ kind: 'edge' })?.name, 'ake-admin')
  assert.deepEqual(cloud.asked, [])
})

test('a forwarded request is a decision: 2xx allows, 403 denies, 429 and 5xx say nothing, 401 ends the token', async () => {
  const { access, cloud, clock } = await withAlice()
  const told = (status: number) => access.learn(token, pods, { status, askedAt: clock.steady() })
  told(200)
  await settle()
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, pods), 'allowed')
  for (const status of [404, 429, 500, 502, 503, 504]) {
    access.learn(token, secrets, { status, askedAt: clock.steady() })
    assert.equal(access.decide(token, secrets), 'unknown')
  }
  told(403)
  assert.equal(access.decide(token, pods), 'denied')
  told(401)
  assert.equal(access.decide(token, pods), 'unauthorized')
})

test('a forwarded 403 that repeats a denial does not forget why', async () => {
  const { access, cloud, clock } = await withAlice()
  cloud.allows = () => false
  cloud.reason = 'no role'
  assert.equal(await access.decide(token, secrets), 'denied')
  const before = access.refusal(token, secrets, 'denied').message
  access.learn(token, secrets, { status: 403, askedAt: clock.steady() })
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, secrets), 'denied')
  assert.equal(access.refusal(token, secrets, 'denied').message, before)
  assert.match(before, /: no role$/)
})

test('[I1] an allowance asked for before a denial was told does not undo it', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, secrets)
  cloud.mode = 'hang'
  const verdict = access.decide(token, pods)
  await settle()
  clock.advance(10)
  access.learn(token, pods, { status: 403, askedAt: clock.steady() })
  cloud.release()
  assert.equal(await verdict, 'denied')
  access.learn(token, pods, { status: 200, askedAt: clock.steady() - 5 })
  assert.equal(access.decide(token, pods), 'denied')
})

test('an old decision whose review meets a 401 ends the token, and only the token', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  cloud.users.delete(token.token)
  clock.advance(10_000)
  const next = { kind: 'token', token: 'renewed' } as const
  cloud.users.set(next.token, alice)
  await access.caller(next)
  const [ended, goesOn] = await Promise.all([token, next].map(async (one) => await access.decide(one, pods)))
  assert.deepEqual([ended, goesOn], ['unauthorized', 'allowed'], 'though both waited for the same question')
})

test('forget drops every decision of a caller, also on disk', async () => {
  const bench = await withAlice()
  await bench.access.decide(token, pods)
  bench.clock.advance(3000)
  await settle()
  bench.access.forget(alice)
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(token, pods), 'unknown')
  assert.equal((await bench.restart()).access.decide(token, pods), 'unknown')
})

test('both selectors and the selected name are part of what is asked', async () => {
  const { access, cloud } = await withAlice()
  const url =
    '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1%2Cmetadata.name%3D%3Dx&labelSelector=b,a%20in%20(y,x)'
  await access.decide(token, questionOf(parseRequest('GET', url)))
  assert.deepEqual(cloud.specs[0]?.resourceAttributes, {
    verb: 'watch',
    group: '',
    version: 'v1',
    resource: 'pods',
    subresource: '',
    namespace: '',
    name: 'x',
    fieldSelector: { rawSelector: 'metadata.name=x,spec.nodeName=n1' },
    labelSelector: { rawSelector: 'a in (x,y),b' },
  })
  const path = questionOf(parseRequest('GET', '/metrics?x=1'))
  await access.decide(token, path)
  assert.deepEqual(cloud.specs[1], { nonResourceAttributes: { verb: 'get', path: '/metrics' } })
})

test('selectors of the same meaning share a decision; a get has none', () => {
  const key = (url: string) => questionOf(parseRequest('GET', url)).key
  assert.equal(key('/api/v1/pods?labelSelector=a%3Db,c'), key('/api/v1/pods?labelSelector=c,a%3D%3Db'))
  assert.equal(key('/api/v1/namespaces/x/pods/p?labelSelector=a'), key('/api/v1/namespaces/x/pods/p'))
  assert.notEqual(key('/api/v1/pods?labelSelector=a'), key('/api/v1/pods'))
})

test('[I4] no token is in any record, log line or refusal of a whole run', async () => {
  const bench = await withAlice()
  const jwt = { kind: 'token', token: makeJwt({ exp: 4e9, sub: 'alice' }) } as const
  bench.cloud.users.set(jwt.token, alice)
  const refusals: string[] = []
  for (const identity of [token, jwt, { kind: 'token', token: 'invented-token' } as const]) {
    const verdict = await bench.access.decide(identity, pods)
    refusals.push(JSON.stringify(bench.access.refusal(identity, pods, verdict).status))
    bench.access.learn(identity, secrets, { status: 403, askedAt: bench.clock.steady() })
  }
  bench.records.full = true
  bench.clock.advance(3000)
  await settle()
  bench.records.full = false
  bench.access.learn(token, pods, { status: 401, askedAt: bench.clock.steady() })
  await bench.restart()
  const everything = [...bench.records.seen, ...bench.lines, ...refusals].join('\n')
  assert.ok(bench.records.seen.length > 3 && bench.lines.length > 0)
  for (const secret of [token.token, jwt.token, jwt.token.split('.')[1], 'invented-token']) {
    assert.ok(!everything.includes(String(secret)))
  }
})
