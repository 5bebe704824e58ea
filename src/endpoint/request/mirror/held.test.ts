/** What a person is told who asks for more than is held, while the cloud is away. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../../kube/status.ts'
import { ApiServer } from '../../../mirror/apiserver.test-support.ts'
import type { MirroredInterest } from '../../../mirror/mirrored.ts'
import { MirrorWorld, type Wish } from '../../../mirror/world.test-support.ts'

async function holding(...wishes: Wish[]): Promise<MirrorWorld> {
  const server = new ApiServer()
  for (const key of ['a/p0', 'a/p1', 'b/p2']) server.put('pods', key, { node: 'edge1', labels: { app: 'web' } })
  for (let n = 0; n < 9; n++) server.put('secrets', `a/s${n}`)
  const world = await MirrorWorld.open({ server })
  for (const wish of wishes) {
    const mirrored = world.begin(wish, { by: ['system:node:edge1'] }) as MirroredInterest
    await world.until(() => mirrored.state.kind === 'synced')
  }
  await world.pass(5_000)
  server.reachability.set('unreachable')
  return world
}

function told(world: MirrorWorld, wish: Wish, verb: 'list' | 'watch' = 'list'): string {
  try {
    world.place(verb, wish, {})
  } catch (error) {
    assert.ok(error instanceof StatusError)
    assert.deepEqual([error.code, error.status.details?.retryAfterSeconds], [503, undefined])
    return error.message.replace(/^the API server cannot be reached and there is no local copy/, '')
  }
  assert.fail('it was answered')
}

const more = (resource = 'pods') => ` of all ${resource}: the test says so; `
const none = (option: string) => {
  const [resource] = option.split('@')
  return ` of ${resource}: the test says so; for the next time, start the edge with --mirror ${option}`
}

test('[A1] a LIST or WATCH wider than what is held is 503, and names what is held and how to ask for it', async () => {
  await using world = await holding({ fields: 'spec.nodeName=edge1' })
  const expected = `${more()}pods with spec.nodeName=edge1 are held: --field-selector spec.nodeName=edge1`
  for (const verb of ['list', 'watch'] as const) {
    assert.equal(told(world, {}, verb), expected, 'kubectl get pods -A')
    assert.equal(told(world, { namespace: 'a' }, verb), expected, 'kubectl get pods')
  }
  assert.equal(told(world, { resource: 'configmaps' }), none('configmaps'), 'nothing is')
  world.begin({ resource: 'configmaps' }, { standing: true })
  assert.equal(
    told(world, { resource: 'configmaps' }),
    ' of configmaps: the test says so',
    'an option names it already',
  )
  for (const mirrored of world.interests.all) mirrored.record.node = false
  assert.equal(told(world, {}), expected)
  assert.equal(told(world, { namespace: 'a' }), none('pods@a'), 'what others look for elsewhere is not told')
  world.begin({ fields: 'spec.nodeName=edge1' }, { standing: true })
  assert.equal(told(world, { namespace: 'a' }), expected, 'what --node names, before any kubelet has asked')
})

test('what is held of it by namespace, label and name, the widest first; of other namespaces nothing is said', async () => {
  await using world = await holding(
    { labels: 'app in (web,api)', namespace: 'b' },
    { namespace: 'a', fields: 'metadata.name=p0' },
    { namespace: 'a' },
    { resource: 'secrets', namespace: 'a', fields: 'metadata.name=s1' },
    { resource: 'secrets', namespace: 'a', fields: 'metadata.name=s2' },
  )
  assert.equal(
    told(world, {}),
    `${more()}pods in namespace a are held: -n a; pods in namespace b with app in (api,web) are held: -n b -l 'app in (api,web)'`,
  )
  assert.equal(told(world, { namespace: 'c' }), none('pods@c'))
  assert.equal(
    told(world, { resource: 'secrets' }),
    `${more('secrets')}secrets in namespace a are held by name: -n a s1 s2`,
  )
  assert.equal(
    told(world, { resource: 'secrets', namespace: 'a' }),
    `${more('secrets')}secrets are held by name: s1 s2`,
  )
})

test('what is said stays short, and holds nothing that speaks to a terminal or a shell', async () => {
  const wishes = Array.from({ length: 7 }, (_, n) => ({ labels: `app=x${n}` }))
  const names = Array.from({ length: 9 }, (_, n) => ({
    resource: 'secrets',
    namespace: 'a',
    fields: `metadata.name=s${n}`,
  }))
  const strange = ["spec.nodeName=it's", `spec.nodeName=${'x'.repeat(200)}`, 'spec.nodeName=\x1b[2J'].map((fields) => ({
    fields,
  }))
  await using world = await holding(...strange, ...wishes, ...names)
  const pods = told(world, {})
  assert.match(pods, /app=x0 are held: -l app=x0; .*app=x2 are held: -l app=x2; 4 more are$/)
  assert.doesNotMatch(pods, /it's|xxx|\x1b/)
  assert.match(told(world, { resource: 'secrets' }), /are held by name: -n a s0 s1 s2 s3 s4 \(and 4 more\)$/)
})
