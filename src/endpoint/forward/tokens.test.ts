/** TokenRequests through the edge: passed on while that can be, and given again to the same caller while it cannot. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeJwt } from '../../access/access.test-support.ts'
import { tokenRequest } from '../../kube/protobuf/messages.test-support.ts'
import { readTokenRequest } from '../../kube/protobuf/peek.ts'
import { readEnvelope } from '../../kube/protobuf/protobuf.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { aliceToken, answered, EdgeWorld, warningsOf, whole } from '../edgeworld.test-support.ts'

const url = '/api/v1/namespaces/a/serviceaccounts/robot/token'
const startSeconds = Date.UTC(2026, 0, 1) / 1000

const wish = (more: object = {}) => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  spec: { audiences: ['api'], expirationSeconds: 3600, boundObjectRef: { kind: 'Pod', name: 'p', uid: 'up' }, ...more },
})

const issued = makeJwt({ exp: startSeconds + 3600, aud: ['api'] })
const granted = (expiresSeconds = startSeconds + 3600) => ({
  ...wish(),
  status: { token: issued, expirationTimestamp: `${new Date(expiresSeconds * 1000).toISOString().slice(0, 19)}Z` },
})

/** Alice got a token, and then the cloud went away. */
async function offline(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.judge.users.set('bob-token', { name: 'bob', uid: 'b', groups: [] })
  world.cloud.judge.users.set('alice-rotated', { name: 'alice', uid: 'u-1', groups: ['devs'] })
  world.cloud.script = ({ path }) => (path.startsWith(url) ? answered(201, JSON.stringify(granted())) : undefined)
  const { status, json } = await world.ask('POST', url, { token: aliceToken, body: wish() })
  assert.deepEqual([status, json], [201, granted()], 'online it is the API server’s answer')
  await world.ask('POST', `${url}?dryRun=All`, { token: 'bob-token', body: wish() })
  // Another token of hers was seen.
  await world.ask('GET', '/version', { token: 'alice-rotated' })
  world.cloud.reachability.set('unreachable')
  return world
}

const ask = (world: EdgeWorld, token: string, body: object = wish()) => world.ask('POST', url, { token, body })

test('the same caller gets it again for the same wish, also with another token and after a restart', async () => {
  await using world = await offline()
  for (let life = 0; life < 2; life++) {
    for (const token of [aliceToken, 'alice-rotated']) {
      const answer = await ask(world, token)
      assert.deepEqual([answer.status, answer.json.status.token], [201, issued], token)
      assert.deepEqual(warningsOf(answer), [])
    }
    await world.restart()
  }
  const shorter = await ask(world, aliceToken, wish({ expirationSeconds: 600 }))
  const expiresMs = Date.parse(shorter.json.status.expirationTimestamp)
  assert.ok(Math.abs(expiresMs - world.cloud.clock.now() - 600_000) <= 1_000, 'the earlier of its own end and the wish')
})

test('[I1] nobody else gets it, and not for another wish', async () => {
  await using world = await offline()
  for (const token of ['bob-token', 'invented']) {
    const { status, text } = await ask(world, token)
    assert.ok([401, 403, 503].includes(status), String(status))
    assert.ok(!text.includes(issued))
  }
  const others = [
    wish({ audiences: ['vault'] }),
    wish({ boundObjectRef: { kind: 'Pod', name: 'p', uid: 'another' } }),
    wish({ boundObjectRef: undefined }),
  ]
  for (const other of others) assert.equal((await ask(world, aliceToken, other)).status, 503, JSON.stringify(other))
  const elsewhere = await world.ask('POST', url.replace('/a/', '/b/'), { token: aliceToken, body: wish() })
  assert.ok([403, 503].includes(elsewhere.status))
  const headers = { 'impersonate-user': 'alice' }
  assert.equal((await world.ask('POST', url, { token: aliceToken, body: wish(), headers })).status, 503)
})

test('one that has expired is still given, with its true end and a warning', async () => {
  await using world = await offline()
  world.cloud.clock.advance(2 * 3_600_000)
  const answer = await ask(world, aliceToken)
  assert.equal(answer.status, 201)
  assert.equal(Date.parse(answer.json.status.expirationTimestamp), (startSeconds + 3600) * 1000)
  assert.match(warningsOf(answer).join(), /this token expired at 2026-01-01T01:00:00/)
})

test('a protobuf request and its reply are understood; the kept token is given in the form that is preferred', async () => {
  await using world = await EdgeWorld.open()
  const headers = {
    'content-type': 'application/vnd.kubernetes.protobuf',
    accept: 'application/vnd.kubernetes.protobuf',
  }
  world.cloud.script = ({ path }) => (path === url ? answered(201, tokenRequest, headers) : undefined)
  const asking = { token: aliceToken, body: tokenRequest, headers }
  assert.equal((await world.ask('POST', url, asking)).text, tokenRequest.toString('latin1'))
  const [sent] = world.cloud.passed('POST', url)
  assert.deepEqual(sent?.body, tokenRequest)
  assert.equal(sent?.headers?.accept, headers.accept)
  assert.equal(sent?.headers?.['accept-encoding'], 'identity', 'it has to be read here')
  world.cloud.reachability.set('unreachable')
  const inProtobuf = await world.ask('POST', url, asking)
  assert.deepEqual([inProtobuf.status, inProtobuf.headers['content-type']], [201, headers.accept])
  const { raw } = readEnvelope(Buffer.from(inProtobuf.text, 'latin1'))
  assert.equal(readTokenRequest(raw).token, 'header.payload.signature')
  const { status, json } = await world.ask('POST', url, { ...asking, headers: { ...headers, accept: '' } })
  assert.deepEqual([status, json.status.token], [201, 'header.payload.signature'])
})

test('a line that breaks under the request gives the kept token too, and nothing where there is none', async () => {
  await using world = await offline()
  world.cloud.reachability.set('reachable')
  for (const sent of [true, false]) {
    world.cloud.script = ({ path }) => {
      if (path.startsWith(url)) throw new Unreachable('the line broke', sent)
      return undefined
    }
    assert.equal((await ask(world, aliceToken)).json.status.token, issued)
    assert.equal((await ask(world, aliceToken, wish({ audiences: ['vault'] }))).status, 503)
  }
})

test('nobody waits for a line in doubt while the kept token serves; one that has expired is asked for anew', async () => {
  await using world = await offline()
  world.cloud.reachability.set('suspect')
  world.cloud.script = ({ path }) => (path.startsWith(url) ? 'hang' : undefined)
  const before = world.cloud.passed('POST', url).length
  const mirrored = world.later('POST', url, { token: aliceToken, body: wish() })
  await world.pass(0)
  assert.equal(mirrored.done, true)
  assert.equal((await mirrored.answer).json.status.token, issued)
  assert.equal(world.cloud.passed('POST', url).length, before)
  world.cloud.clock.advance(2 * 3_600_000)
  const expired = world.later('POST', url, { token: aliceToken, body: wish() })
  await world.pass(0)
  assert.deepEqual([expired.done, world.cloud.passed('POST', url).length], [false, before + 1])
  await world.pass(31_000)
  assert.match(warningsOf(await expired.answer).join(), /expired/)
})

test('what was refused or only tried is not kept', async () => {
  await using world = await EdgeWorld.open()
  const tries: [string, number][] = [
    [`${url}?dryRun=All`, 201],
    [url, 403],
  ]
  for (const [at, status] of tries) {
    world.cloud.script = ({ path }) => (path === at ? answered(status, JSON.stringify(granted())) : undefined)
    await world.ask('POST', at, { token: aliceToken, body: wish() })
  }
  world.cloud.reachability.set('unreachable')
  const { status, text } = await ask(world, aliceToken)
  assert.ok(status === 503 || status === 403)
  assert.ok(!text.includes(issued))
})

const refused = (kind: string, name: string) =>
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', details: { kind, name } })

test('[I1] what the API server refuses to give again is given by nobody, also after a restart; a moment’s trouble is no refusal', async () => {
  const page = '<html>not found</html>'
  const rows: [number, string, boolean][] = [
    [404, refused('serviceaccounts', 'robot'), true],
    [404, refused('pods', 'p'), true],
    [409, refused('pods', 'p'), true],
    [403, refused('serviceaccounts', 'robot'), true],
    [400, refused('', ''), true],
    [422, refused('', ''), true],
    [404, page, false],
    [401, refused('', ''), false],
    [429, refused('', ''), false],
    [500, refused('', ''), false],
    [503, refused('', ''), false],
  ]
  for (const [status, body, isRefusal] of rows) {
    await using world = await offline()
    world.cloud.reachability.set('reachable')
    const headers = { 'content-type': body === page ? 'text/html' : 'application/json' }
    world.cloud.script = ({ path }) => (path.startsWith(url) ? answered(status, body, headers) : undefined)
    assert.equal((await ask(world, aliceToken)).status, status)
    for (let life = 0; life < 2; life++) {
      world.cloud.reachability.set('unreachable')
      const again = await ask(world, 'alice-rotated')
      assert.equal(again.text.includes(issued), !isRefusal, `${status} ${body} ${life} ${again.text}`)
      if (life === 0) await world.restart()
    }
  }
})

test('[I1] an account or a bound object that is gone takes along every token that was kept of it', async () => {
  for (const gone of ['serviceaccounts', 'pods']) {
    await using world = await offline()
    world.cloud.reachability.set('reachable')
    // The next wish is for another audience, and by another caller.
    const name = gone === 'pods' ? 'p' : 'robot'
    world.cloud.script = ({ path }) => (path === url ? answered(404, refused(gone, name)) : undefined)
    assert.equal((await ask(world, 'bob-token', wish({ audiences: ['vault'] }))).status, 404)
    world.cloud.reachability.set('unreachable')
    assert.ok(!(await ask(world, aliceToken)).text.includes(issued), gone)
  }
})

test('[I1] a caller that has an account deleted through the edge takes its tokens out of it, unless it only tries', async () => {
  for (const body of [{}, { dryRun: ['All'] }]) {
    await using world = await offline()
    world.cloud.reachability.set('reachable')
    world.cloud.script = async ({ method, body: sent }) => {
      if (method !== 'DELETE') return undefined
      if (sent !== undefined) await whole(sent)
      return answered(200, '{}')
    }
    assert.equal((await world.ask('DELETE', url.replace('/token', ''), { token: aliceToken, body })).status, 200)
    world.cloud.reachability.set('unreachable')
    assert.equal((await ask(world, aliceToken)).text.includes(issued), 'dryRun' in body)
  }
})

test('a token request waits for its own answer alone: its caller is learned beside it', async () => {
  await using world = await EdgeWorld.open()
  const { reachability } = world.cloud
  world.cloud.script = ({ path }) => {
    if (path.endsWith('selfsubjectreviews')) return 'hang'
    return path === url ? answered(201, JSON.stringify(granted())) : undefined
  }
  reachability.limitMs = 2_000
  const asking = world.later('POST', url, { token: aliceToken, body: wish() })
  await world.pass(300)
  assert.equal(asking.done, true)
  assert.deepEqual([(await asking.answer).status, reachability.state], [201, 'reachable'])
})

test('[I2] the body of a token request is not read for whom the API server does not accept, nor for nobody', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.script = ({ path, body }) => {
    if (path !== url) return undefined
    assert.ok(!(body instanceof Buffer), 'it was gathered')
    return answered(401, '{}')
  }
  // The first answer tells that it is not accepted; a server asks for that before any body.
  await world.ask('GET', '/api/v1/namespaces/default/pods/p', { token: 'invented' })
  for (const asked of [{ token: 'invented' }, {}]) {
    assert.equal((await world.ask('POST', url, { ...asked, body: wish() })).status, 401)
  }
})

test('[I4] a token is in no line of the log', async () => {
  await using world = await offline()
  await ask(world, aliceToken)
  const log = world.lines.join('\n')
  for (const secret of [issued, aliceToken, 'bob-token']) assert.ok(!log.includes(secret))
})
