import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const pods = '/api/v1/namespaces/default/pods'

async function worldWith(...names: string[]): Promise<FakeWorld> {
  const world = new FakeWorld()
  for (const name of names) await world.send('POST', configMaps, { metadata: { name, labels: { is: name } } })
  return world
}

async function worldWithPod(spec: object): Promise<FakeWorld> {
  const world = new FakeWorld()
  const containers = [{ name: 'a', image: 'b' }]
  const made = await world.send('POST', pods, { metadata: { name: 'p' }, spec: { containers, ...spec } })
  assert.equal(made.code, 201)
  return world
}

function steps(world: FakeWorld): string[] {
  return world.events.map(({ type }) => type)
}

test('most kinds answer with a Status, pods and others with their last state', async () => {
  const world = await worldWith('a')
  const { code, body } = await world.send('DELETE', `${configMaps}/a`)
  assert.equal(code, 200)
  assert.deepEqual(body, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name: 'a', kind: 'configmaps', uid: 'uid-1' },
  })
  assert.equal((await world.send('DELETE', `${configMaps}/a`)).code, 404)
  await world.send('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 's' } })
  const account = await world.send('DELETE', '/api/v1/namespaces/default/serviceaccounts/s')
  assert.deepEqual([account.body.kind, account.body.metadata.resourceVersion], ['ServiceAccount', '105'])
})

test('preconditions and options are checked before anything happens', async () => {
  const world = await worldWith('a')
  const url = `${configMaps}/a`
  const answer = async (query: string, body?: object) => {
    const { code, body: status } = await world.send('DELETE', url + query, body)
    return `${code} ${status.message}`
  }
  assert.match(
    await answer('', { preconditions: { uid: 'x' } }),
    /^409 .* on ConfigMap "a": the UID in the precondition \(x\)/,
  )
  assert.match(
    await answer('', { preconditions: { resourceVersion: '1' } }),
    /^409 .*does not match .* in record \(102\)/,
  )
  assert.match(await answer('?gracePeriodSeconds=x'), /^400 strconv.ParseInt: parsing "x": invalid syntax$/)
  assert.match(
    await answer('?propagationPolicy=Foo'),
    /^422 .*supported values: "Foreground", "Background", "Orphan", "nil"$/,
  )
  assert.match(await answer('', { kind: 'Foo' }), /^400 no kind "Foo" is registered for version "meta.k8s.io\/v1"/)
  assert.match(await answer('', { gracePeriodSeconds: 'x' }), /^400 json: cannot unmarshal string into Go struct field/)
  assert.equal((await world.send('DELETE', `${url}?dryRun=All`)).body.status, 'Success')
  assert.equal(world.events.length, 1)
})

test('a policy becomes a finalizer, which holds the object', async () => {
  const world = await worldWith('a')
  const held = await world.send('DELETE', `${configMaps}/a?propagationPolicy=Foreground`)
  assert.deepEqual(held.body.metadata.finalizers, ['foregroundDeletion'])
  assert.equal(
    (await world.send('DELETE', `${configMaps}/a?propagationPolicy=Orphan`)).body.metadata.finalizers[0],
    'orphan',
  )
  assert.equal((await world.send('DELETE', `${configMaps}/a?orphanDependents=true`)).code, 200)
  const gone = await world.send('DELETE', `${configMaps}/a?propagationPolicy=Background`)
  assert.equal(gone.body.status, 'Success')
  assert.deepEqual(steps(world), ['put', 'put', 'put', 'remove'])
})

test('an unscheduled pod goes at once, in the two steps watchers know', async () => {
  const world = await worldWithPod({})
  const { body } = await world.send('DELETE', `${pods}/p`)
  assert.deepEqual([body.kind, body.metadata.deletionGracePeriodSeconds, body.metadata.generation], ['Pod', 0, 2])
  assert.deepEqual(steps(world), ['put', 'put', 'remove'])
})

test('a scheduled pod waits for its kubelet; the period can only be shortened', async () => {
  const world = await worldWithPod({ nodeName: 'n', terminationGracePeriodSeconds: 20 })
  const first = await world.send('DELETE', `${pods}/p`)
  assert.equal(first.body.metadata.deletionTimestamp, '2026-01-02T03:04:25Z')
  assert.equal(first.body.metadata.deletionGracePeriodSeconds, 20)
  const longer = await world.send('DELETE', `${pods}/p?gracePeriodSeconds=60`)
  assert.deepEqual(longer.body, first.body)
  const shorter = await world.send('DELETE', `${pods}/p?gracePeriodSeconds=5`)
  assert.equal(shorter.body.metadata.deletionTimestamp, '2026-01-02T03:04:10Z')
  world.clock.advance(30_000)
  const late = await world.send('DELETE', `${pods}/p?gracePeriodSeconds=2`)
  assert.equal(late.body.metadata.deletionGracePeriodSeconds, 1)
  assert.equal((await world.send('DELETE', `${pods}/p?gracePeriodSeconds=0`)).code, 200)
  assert.equal(world.bytes('/pods', 'default/p'), undefined)
  assert.deepEqual(steps(world), ['put', 'put', 'put', 'put', 'put', 'remove'])
})

test('a finished pod needs no grace; without its own period it gets 30 seconds', async () => {
  const finished = await worldWithPod({ nodeName: 'n' })
  const merge = 'application/merge-patch+json'
  await finished.send('PATCH', `${pods}/p/status`, { status: { phase: 'Succeeded' } }, merge)
  await finished.send('DELETE', `${pods}/p`)
  assert.equal(finished.bytes('/pods', 'default/p'), undefined)
  const running = await worldWithPod({ nodeName: 'n' })
  const { body } = await running.send('DELETE', `${pods}/p`)
  assert.equal(body.metadata.deletionGracePeriodSeconds, 30)
})

test('deletecollection takes what the selectors match and answers with what was there', async () => {
  const world = await worldWith('a', 'b', 'c')
  const some = await world.send('DELETE', `${configMaps}?labelSelector=is+in+(a,b)`)
  assert.deepEqual([some.code, some.body.names, some.body.version], [200, ['a', 'b'], 104])
  assert.deepEqual((await world.send('DELETE', `${configMaps}?fieldSelector=metadata.name%3Dzz`)).body.names, [])
  assert.equal((await world.send('DELETE', `${configMaps}?fieldSelector=spec.x%3Dzz`)).code, 400)
  assert.deepEqual((await world.send('DELETE', configMaps)).body.names, ['c'])
})

test('the first namespaces cannot be deleted', async () => {
  const world = new FakeWorld()
  const { code, body } = await world.send('DELETE', '/api/v1/namespaces/default')
  assert.deepEqual([code, body.message], [403, 'namespaces "default" is forbidden: this namespace may not be deleted'])
})

test('who deletes a job without a word about its pods is warned, even when there is no job', async () => {
  const world = new FakeWorld()
  const jobs = '/apis/batch/v1/namespaces/default/jobs'
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'b' }] } }
  for (const name of ['a', 'b', 'c']) await world.send('POST', jobs, { metadata: { name }, spec: { template } })
  const warned = await world.send('DELETE', `${jobs}/a`)
  assert.deepEqual([warned.code, warned.warnings.length], [200, 1])
  assert.match(warned.warnings[0] ?? '', /^child pods are preserved by default when jobs are deleted; set propagation/)
  assert.equal((await world.send('DELETE', `${jobs}/nope`)).warnings.length, 1)
  assert.deepEqual((await world.send('DELETE', `${jobs}/b?propagationPolicy=Orphan`)).warnings, [])
  assert.deepEqual((await world.send('DELETE', `${jobs}/c?orphanDependents=true`)).warnings, [])
  assert.equal((await world.send('DELETE', jobs)).warnings.length, 1)
})
