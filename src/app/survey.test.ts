/** What an edge finds when it looks whether its node would come back without the cloud. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeJwt } from '../access/access.test-support.ts'
import { aliceToken, answered, EdgeCloud, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'
import { Survey } from './survey.ts'
import type { CredentialFact } from './survival.ts'

const day = 24 * 3_600_000

function nodeCloud(): EdgeCloud {
  const cloud = new EdgeCloud()
  cloud.publish('', 'v1', { resource: 'secrets', kind: 'Secret', namespaced: true })
  cloud.publish('', 'v1', { resource: 'services', kind: 'Service', namespaced: true })
  cloud.server.put('nodes', 'n1')
  const volumes = [
    { name: 'v', secret: { secretName: 's' } },
    { name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
  ]
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { volumes } })
  cloud.server.put('secrets', 'a/s')
  return cloud
}

function surveyOf(world: EdgeWorld, targets: readonly string[] = []) {
  const { interests, catalog, needs, cloud, access } = world
  const { clock, reachability } = cloud
  const disk = { isHealthy: true, damage: [] as string[] }
  const credentials: CredentialFact[] = [{ use: 'edge', endsAtMs: clock.now() + 90 * day }]
  const misconfigured: string[] = []
  const survey = new Survey({
    ...{ interests, catalog, needs, keeper: access.tokens, node: world.node, clock, nowMs: access.nowMs },
    ...{ upstream: { reachability }, credentials: () => credentials, misconfigured: () => misconfigured },
    targets: targets.map((resource) => ({ resource, namespace: '' })),
    whoami: access.whoami,
    disk: () => disk,
    freeBytes: async () => 2 ** 32,
  })
  const found = (name: string) => survey.survival().checks.find((one) => one.name === name)
  const bad = () =>
    survey
      .survival()
      .checks.filter(({ state }) => state !== 'ok')
      .map(({ name, state }) => `${name} ${state}`)
  return { survey, found, bad, disk, credentials, misconfigured }
}

/** Until the disk was looked at. */
async function looked(world: EdgeWorld, survey: Survey): Promise<void> {
  const ending = new AbortController()
  const running = survey.run(ending.signal)
  await world.pass(100)
  ending.abort()
  await running
}

async function issueToken(world: EdgeWorld): Promise<void> {
  const url = '/api/v1/namespaces/a/serviceaccounts/robot/token'
  const uid = world.cloud.server.get('pods', 'a/p')?.uid
  const token = makeJwt({ exp: 4_000_000_000 })
  world.cloud.script = ({ path, body }) =>
    path === url ? answered(201, JSON.stringify({ ...JSON.parse(String(body)), status: { token } })) : undefined
  const spec = { audiences: [], boundObjectRef: { kind: 'Pod', name: 'p', uid } }
  const { status } = await world.ask('POST', url, { token: aliceToken, body: { kind: 'TokenRequest', spec } })
  assert.equal(status, 201)
}

test('once all is mirrored and the token was issued it says yes, with the cloud and without, and in figures', async () => {
  await using world = await EdgeWorld.open({ cloud: nodeCloud(), node: 'n1' })
  const { survey, found, bad } = surveyOf(world)
  assert.equal(survey.survival().survives, 'no', 'nothing is here yet')
  await looked(world, survey)
  const isHeld = () => found('names')?.state === 'ok' && found('pods')?.state === 'ok'
  await world.until(isHeld)
  assert.deepEqual(bad(), ['tokens failed'])
  assert.match(survey.figures().join(''), /^ake_survives_reboot 0$[\s\S]*^ake_check_state\{check="tokens"\} 3$/m)
  await issueToken(world)
  assert.deepEqual(bad(), [])
  assert.match(survey.figures().join(''), /^ake_survives_reboot 1$[\s\S]*^ake_check_state\{check="tokens"\} 0$/m)
  world.cloud.reachability.set('unreachable')
  await world.pass(60_000)
  assert.deepEqual([survey.survival().survives, bad()], ['yes', []])
})

test('a right that the edge lacks is named with the command that grants it, and so is what is misconfigured', async () => {
  const cloud = nodeCloud()
  cloud.server.fault = ({ resource }) => (resource === 'secrets' ? { kind: 'status', code: 403 } : undefined)
  cloud.judge.users.set('', { name: 'edge-7', uid: '', groups: [] })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { survey, found, misconfigured } = surveyOf(world, ['secrets'])
  await looked(world, survey)
  misconfigured.push('--mirror nosuch: there is none: see "kubectl api-resources"')
  await world.until(() => found('rights')?.state === 'failed')
  assert.match(
    found('rights')?.commands?.[0] ?? '',
    /^kubectl create role ake-edge-reads-secrets-edge-7 -n a .* --user=edge-7$/,
  )
  assert.match(found('names')?.what ?? '', /secrets a\/s/)
  assert.match(found('options')?.todo ?? '', /^--mirror nosuch: /)
  assert.equal(survey.survival().survives, 'no')
  world.cloud.reachability.set('unreachable')
  await world.pass(60_000)
  assert.match(found('rights')?.commands?.[0] ?? '', /^kubectl create role .* -n a /, 'also when the line is cut')
  assert.equal(found('names')?.todo, undefined, 'and not that it can be mirrored when the API server is back')
  await world.stop()
  await world.start()
  const again = surveyOf(world)
  assert.match(again.found('rights')?.what ?? '', /may not read secrets a\/s/, 'also after a start without the cloud')
})

test('what is held but no longer heard of while the cloud is there is not fresh', async () => {
  const cloud = nodeCloud()
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { found } = surveyOf(world)
  await world.until(() => found('services')?.state === 'ok')
  cloud.server.fault = ({ resource }) => (resource === 'services' ? { kind: 'status', code: 500 } : undefined)
  cloud.server.endWatches()
  await world.until(() => found('services')?.state === 'warning')
  assert.match(found('services')?.what ?? '', /not fresh: services \(.+\)/)
})

test('an edge that was told no node cannot tell, and is no alarm; credentials and disk are looked at as they are now', async () => {
  await using world = await EdgeWorld.open({ cloud: nodeCloud() })
  const { survey, found, disk, credentials } = surveyOf(world)
  await looked(world, survey)
  assert.deepEqual([survey.survival().survives, survey.figures()], ['unknown', []])
  credentials[0] = { use: 'edge', endsAtMs: world.cloud.clock.now() - 1 }
  credentials.push({ use: 'caller', name: 'system:node:n1', missing: 'the key k cannot be read' })
  assert.match(found('credentials')?.what ?? '', /the key k cannot be read/)
  credentials.pop()
  assert.match(found('credentials')?.what ?? '', /^the edge's own EXPIRED/)
  disk.isHealthy = false
  assert.equal(found('disk')?.state, 'failed')
})
