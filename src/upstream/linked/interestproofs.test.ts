/** Both sides of a link: callers who ask an edge, its proofs, and a hub that judges them by what a cloud says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle, type Wish } from '../../mirror/world.test-support.ts'
import type { Identity } from '../upstream.ts'
import { ProvingWorld } from './provingworld.test-support.ts'

const maps: Wish = { resource: 'configmaps', namespace: 'a' }
const tokenOf = (token: string): Identity => ({ kind: 'token', token })

async function opened() {
  const world = await ProvingWorld.open()
  const { server } = world.hub.mirror
  for (const account of ['reader', 'stranger'])
    world.cloud.users.set(`of-${account}`, { name: account, uid: '', groups: [] })
  server.put('configmaps', 'a/c', { value: 'first' })
  await world.until(() => world.edge.link.current !== undefined)
  const held = () => world.edge.mirror.mirrored(maps)
  return {
    ...{ world, server, held },
    value: (key = 'a/c') => {
      const item = held()?.cache?.get(key)
      return item && (JSON.parse(item.bytes.toString()) as { value: string }).value
    },
    /** A caller who may, as the edge has found, lists it. */
    ask: (who: string, wish = maps) =>
      world.edge.mirror.place('list', wish, { state: 'any', caller: who, identity: tokenOf(`of-${who}`) }),
  }
}

test('[L24] what a caller asks for is fed by its credential, shown once; what the node may have needs none', async () => {
  const { world, ask, value, held } = await opened()
  await using _ = world
  const pods: Wish = { fields: 'spec.nodeName=n1' }
  ask('reader', pods)
  await world.until(() => world.edge.mirror.mirrored(pods)?.cache !== undefined)
  assert.equal(world.shown.length, 0)
  assert.equal(ask('reader').kind, 'hold')
  await world.until(() => value() === 'first')
  assert.equal(world.shown.length, 1)
  assert.equal(held()?.refusal, undefined)
  for (let at = 0; at < 5; at++) ask('reader')
  await settle(10)
  assert.equal(world.shown.length, 1)
})

test('[L24] after a cut the kept credential proves again, and nobody has to ask', async () => {
  const { world, ask, value, server } = await opened()
  await using _ = world
  ask('reader')
  await world.until(() => value() === 'first')
  world.edge.cut(true)
  await world.pass(5_000)
  server.put('configmaps', 'a/c', { value: 'while it was cut' })
  world.edge.mend()
  await world.until(() => value() === 'while it was cut')
  assert.equal(world.shown.length, 2)
  // Once, when it was not known yet that it needs a proof; now that was shown before it was asked for.
  assert.equal(world.refusals, 1)
  assert.ok(!world.lines.some((line) => line.includes('mirror.refused')))
})

test('[L24, A2] after a restart of the edge nothing is fed before a caller asks, and what is held stays, with the reason', async () => {
  const { world, ask, value, held, server } = await opened()
  await using _ = world
  ask('reader')
  await world.until(() => value() === 'first')
  await world.restart()
  server.put('configmaps', 'a/c', { value: 'second' })
  await world.until(() => held()?.refusal !== undefined)
  await world.pass(120_000)
  assert.equal(value(), 'first')
  assert.equal(held()?.withdrawnAtMs, undefined)
  // It is asked for again and again, ever more seldom.
  const { refusals } = world
  await world.pass(1_800_000)
  assert.ok(world.refusals > refusals && world.refusals <= refusals + 8, String(world.refusals - refusals))
  const why = held()?.refusal
  assert.match(
    why?.kind === 'refused' ? why.why : '',
    /node "n1" may not read v1\/configmaps@a by its own name.*none was shown/,
  )
  const route = ask('reader')
  assert.equal(route.kind, 'local')
  // At once, and not when the reflector would have asked again.
  for (let turn = 0; turn < 20 && value() !== 'second'; turn++) await world.pass(50)
  assert.equal(value(), 'second')
  assert.equal(held()?.refusal, undefined)
})

test('[L24] a first informer waits for the hub’s word on its credential: what was refused is local from its first watch on', async () => {
  const { world, ask, value, held } = await opened()
  await using _ = world
  ask('stranger')
  await world.until(() => held()?.hopeless === true)
  const watch = (more: { isProved?: boolean } = {}) =>
    world.edge.mirror.place('watch', maps, { state: 'any', caller: 'reader', identity: tokenOf('of-reader'), ...more })
  const first = watch()
  assert.ok(first.kind === 'prove', first.kind)
  let isJudged = false
  void first.judged.then(() => {
    isJudged = true
  })
  for (let turn = 0; turn < 20 && !isJudged; turn++) await world.pass(10)
  assert.ok(isJudged)
  const next = watch({ isProved: true })
  assert.ok(next.kind === 'hold' || next.kind === 'local', next.kind)
  await world.until(() => value() === 'first')
  assert.equal(watch().kind, 'local')

  // Whom the hub does not let have it is passed on, and does not wait a second time for the same word.
  const other: Wish = { resource: 'configmaps', namespace: 'b' }
  ask('stranger', other)
  await world.until(() => world.edge.mirror.mirrored(other)?.hopeless === true)
  const asked = { state: 'any', caller: 'stranger', identity: tokenOf('of-stranger') } as const
  assert.equal(world.edge.mirror.place('watch', other, { ...asked, isProved: true }).kind, 'forward')
})

test('[L24] a caller whom the hub refuses does not feed it, its sentence is told, and another caller does', async () => {
  const { world, ask, value, held, server } = await opened()
  await using _ = world
  ask('stranger')
  await world.until(() => held()?.refusal !== undefined)
  const why = held()?.refusal
  assert.match(
    why?.kind === 'refused' ? why.why : '',
    /was not taken: configmaps is forbidden: User "stranger" cannot list/,
  )
  const { length } = world.shown
  for (let at = 0; at < 20; at++) ask('stranger')
  await settle(10)
  assert.equal(world.shown.length, length)
  ask('reader')
  await world.until(() => value() === 'first')
  // Who was refused is not shown before who was not.
  world.edge.cut()
  server.put('configmaps', 'a/c', { value: 'second' })
  ask('stranger')
  await world.until(() => value() === 'second')
  assert.equal(world.cloud.asked.filter((line) => line.endsWith('of stranger')).length <= 4, true)
})

test('[L24] what the hub said over one link says nothing over the next', async () => {
  const { world, ask, value, held } = await opened()
  await using _ = world
  ask('stranger')
  await world.until(() => held()?.refusal !== undefined)
  world.rights = () => true
  world.edge.cut()
  // Sooner than it would be shown again over the same one.
  for (let second = 0; second < 40 && value() === undefined; second++) await world.pass(1_000)
  assert.equal(value(), 'first')
})

test('[L24] a right that was withdrawn ends the feeding; it goes on once the caller has it again', async () => {
  const { world, ask, value, held, server } = await opened()
  await using _ = world
  ask('reader')
  await world.until(() => value() === 'first')
  const { rights } = world
  world.rights = () => false
  await world.until(() => held()?.refusal !== undefined)
  server.put('configmaps', 'a/c', { value: 'unheard of' })
  await world.pass(60_000)
  assert.equal(value(), 'first')
  world.rights = rights
  await world.until(() => value() === 'unheard of')
})

test('[L24, L30] a right that was withdrawn, and is denied each time it is asked about, takes the interest and its data from the edge', async () => {
  const { world, ask, value, held } = await opened()
  await using _ = world
  ask('reader')
  await world.until(() => value() === 'first')
  world.rights = () => false
  await world.until(() => held()?.refusal !== undefined)
  await world.pass(4 * 60_000)
  assert.deepEqual([value(), held()?.withdrawnAtMs], ['first', undefined], 'one refusal is not believed')
  await world.pass(3 * 60_000)
  assert.notEqual(held()?.withdrawnAtMs, undefined)
  assert.equal(held()?.readable, undefined, 'it answers no read any more')
  await world.pass(12 * 60_000)
  assert.equal(held(), undefined)
  assert.equal(world.edge.mirror.copy.caches.has('v1/configmaps@a'), false)
  assert.ok(world.lines.some((line) => line.includes('interest.withdrawn')))
})

test('[L24, L30] what no caller shows, whom the API server does not know, or of whom it says nothing withdraws nothing', async () => {
  for (const becomes of ['unknown credential', 'silence', 'another caller']) {
    const { world, ask, value, held } = await opened()
    await using _ = world
    ask('reader')
    await world.until(() => value() === 'first')
    if (becomes === 'unknown credential') world.cloud.users.delete('of-reader')
    else if (becomes === 'silence') {
      world.cloud.edgeMayReview = false
      world.edge.cut()
    } else {
      ask('stranger')
      world.rights = (account) => account === 'stranger'
    }
    await world.pass(30 * 60_000)
    assert.deepEqual([becomes, held()?.withdrawnAtMs, value()], [becomes, undefined, 'first'])
  }
})

test('[L24] a right that is given again feeds a caller who asks within seconds, though the hub has just refused it', async () => {
  const { world, ask, value, held, server } = await opened()
  await using _ = world
  ask('reader')
  await world.until(() => value() === 'first')
  const { rights } = world
  world.rights = () => false
  await world.until(() => held()?.refusal !== undefined)
  // Long enough for the edge to ask seldom, and not for a refusal to be believed.
  await world.pass(4 * 60_000)
  server.put('configmaps', 'a/c', { value: 'unheard of' })
  world.rights = rights
  for (let ms = 0; ms < 6_000 && value() === 'first'; ms += 500) {
    ask('reader')
    await world.pass(500)
  }
  assert.equal(value(), 'unheard of')
})

test('[L24] what is followed is proved again in time, by the newest credential, as long as its caller asks now and then', async () => {
  const { world, ask, value, held, server } = await opened()
  await using _ = world
  ask('reader')
  await world.until(() => value() === 'first')
  const tokens = ['of-reader']
  for (let at = 0; at < 6; at++) {
    // As an account's token is rotated: the next one is there some time before the last one ends.
    tokens.push(`of-reader-${at}`)
    world.cloud.users.set(`of-reader-${at}`, { name: 'reader', uid: '', groups: [] })
    void world.edge.proofs.asked('v1/configmaps@a', tokenOf(`of-reader-${at}`))
    await world.pass(20 * 60_000)
    world.cloud.users.delete(tokens.shift() ?? '')
    await world.pass(60_000)
    server.put('configmaps', 'a/c', { value: `round ${at}` })
    await world.until(() => value() === `round ${at}`)
  }
  assert.equal(world.refusals, 1)
  const many = world.shown.length
  assert.ok(many < 12, `${many} proofs in two hours`)
  await world.pass(2 * 60 * 60_000)
  assert.match(JSON.stringify(held()?.refusal), /needs the credential of a caller/)
})

test('[L24] a wide interest that nobody proves any more does not keep a narrower one from who may have that', async () => {
  const { world, ask, value, held, server } = await opened()
  await using _ = world
  let isAdministrator = true
  world.rights = (name, _verb, _resource, namespace) =>
    name === 'reader' ? namespace === 'a' : name === 'stranger' && isAdministrator
  const all: Wish = { resource: 'configmaps' }
  const wide = () => world.edge.mirror.mirrored(all)
  ask('reader')
  await world.until(() => value() === 'first')
  ask('stranger', all)
  await world.until(() => held()?.fed === true)
  isAdministrator = false
  await world.until(() => wide()?.isForbidden === true)
  server.put('configmaps', 'a/c', { value: 'second' })
  // What was fed by it goes on by itself.
  await world.until(() => value() === 'second')
  assert.equal(held()?.fed, false)
  const other: Wish = { resource: 'configmaps', namespace: 'a', labels: 'x=y' }
  await world.edge.mirror.interests.end(held() as NonNullable<ReturnType<typeof held>>, 'the test says so')
  // Nor does it stand in the way of what is asked for later.
  ask('reader', other)
  ask('reader')
  server.put('configmaps', 'a/c', { value: 'third' })
  await world.until(() => value() === 'third')
  await world.until(() => world.edge.mirror.mirrored(other)?.fed === true)
  server.put('configmaps', 'a/c', { value: 'and more' })
  await world.until(() => value() === 'and more')
  isAdministrator = true
  ask('stranger', all)
  await world.until(() => held()?.fed === true)
  server.put('configmaps', 'a/c', { value: 'fourth' })
  await world.until(() => value() === 'fourth')
})

test('[I4] no credential is in a log', async () => {
  const { world, ask, value } = await opened()
  await using _ = world
  ask('stranger')
  ask('reader')
  await world.until(() => value() === 'first')
  world.edge.cut()
  await world.pass(10_000)
  assert.ok(![...world.lines, ...world.hub.lines].some((line) => /of-reader|of-stranger/.test(line)))
})
