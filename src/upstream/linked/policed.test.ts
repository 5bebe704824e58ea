/** Both sides of a link while policies change: what an edge gets by them, what it has to give up, and what it is told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shownBy, TestAuthority } from '../../hub/callers/certificates.test-support.ts'
import { mirrorLimits } from '../../mirror/mirror.ts'
import type { Wish } from '../../mirror/world.test-support.ts'
import type { Identity } from '../upstream.ts'
import { ProvingWorld } from './provingworld.test-support.ts'

const maps: Wish = { resource: 'configmaps', namespace: 'a' }
const mapsOfA = { apiGroups: [''], resources: ['configmaps'], namespaces: ['a'] }

async function opened(parts: Parameters<typeof ProvingWorld.open>[0] = {}) {
  const world = await ProvingWorld.open(parts)
  const { server } = world.hub.mirror
  server.put('configmaps', 'a/c', { value: 'first' })
  await world.until(() => world.edge.link.current !== undefined)
  const held = () => world.edge.mirror.mirrored(maps)
  world.edge.mirror.begin(maps, { standing: true })
  await world.until(() => held()?.state.kind === 'refused')
  return { world, server, held, stored: async () => (await world.edge.mirror.store.load()).interests.length }
}

test('[L24] what a policy lets an edge hold comes within a moment, however long it was refused, and ends with the policy', async () => {
  const { world, server, held } = await opened()
  await using _ = world
  await world.pass(20 * 60_000)
  const asked = world.refusals
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.state.kind === 'synced')
  assert.equal(held()?.cache?.size, 1)
  assert.equal(world.refusals, asked)
  await world.police({})
  await world.until(() => held()?.state.kind === 'refused')
  server.put('configmaps', 'a/next')
  await world.pass(60_000)
  // A right that is gone may come back within minutes: until then what is here stays, as without the cloud.
  assert.equal(held()?.cache?.size, 1)
})

const minuteMs = 60_000

/** What an edge may mirror by it alone. */
const givings: readonly (readonly [string, object])[] = [
  ['interests', { interests: [mapsOfA] }],
  ['trust', { trust: true }],
]

for (const [what, spec] of givings)
  test(`[L30] what only ${what} of a policy gave goes from the disk minutes after it is taken, also what an option names, which comes again with it`, async () => {
    for (const isStanding of [true, false]) {
      const { world, held, stored } = await opened()
      await using _ = world
      await world.police({ p: spec })
      await world.until(() => held()?.cache !== undefined)
      const record = held()?.record
      assert.ok(record !== undefined)
      record.standing = isStanding
      await world.police({})
      await world.until(() => held()?.state.kind === 'refused')
      await world.pass(4 * minuteMs)
      assert.deepEqual([held()?.cache?.size, await stored()], [1, 1], 'one refusal is not believed')
      await world.pass(3 * minuteMs)
      assert.notEqual(held()?.withdrawnAtMs, undefined)
      assert.deepEqual([held()?.readable, await stored()], [undefined, 1], 'it answers no read any more')
      await world.pass(12 * minuteMs)
      assert.equal(await stored(), 0)
      assert.equal(held() !== undefined, isStanding)
      assert.equal(world.edge.mirror.copy.caches.size, 0)
      if (!isStanding) continue
      assert.ok(held()?.isEmptied)
      assert.ok(world.lines.some((line) => line.includes('interest.emptied')))
      assert.equal(world.edge.mirror.place('list', maps).kind, 'forward')
      await world.pass(60 * minuteMs)
      await world.police({ p: spec })
      await world.until(() => held()?.cache?.size === 1)
      await world.pass(10_000)
      assert.deepEqual([held()?.isEmptied, await stored()], [false, 1])
    }
  })

test('[L30] what the node itself may no longer read goes, where no caller is known who may', async () => {
  const { world, server } = await opened()
  await using _ = world
  const secret: Wish = { resource: 'secrets', namespace: 'a', fields: 'metadata.name=s' }
  server.put('secrets', 'a/s', { value: 'kept' })
  server.put('pods', 'a/p', { node: 'n1', spec: { volumes: [{ name: 'v', secret: { secretName: 's' } }] } })
  await world.pass(1_000)
  const of = () => world.edge.mirror.mirrored(secret)
  world.edge.mirror.begin(secret, { by: ['system:node:n1'] })
  await world.until(() => of()?.cache?.size === 1)
  server.remove('pods', 'a/p')
  await world.until(() => of()?.state.kind === 'refused')
  await world.pass(20 * minuteMs)
  assert.equal(of(), undefined)
  assert.equal(world.edge.mirror.copy.caches.has('v1/secrets@a?&metadata.name=s'), false)
})

test('[L30] a policy that goes takes nothing that a caller proves, or may prove when it asks again', async () => {
  const { world, server, held, stored } = await opened()
  await using _ = world
  world.cloud.users.set('of-reader', { name: 'reader', uid: '', groups: [] })
  const ask = () =>
    world.edge.mirror.place('list', maps, {
      ...{ state: 'any', caller: 'reader' },
      identity: { kind: 'token', token: 'of-reader' },
    })
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.cache !== undefined)
  ask()
  // What it asked for meanwhile is its own right to it.
  await world.police({})
  server.put('configmaps', 'a/next')
  await world.until(() => held()?.cache?.size === 2)
  await world.pass(20 * minuteMs)
  assert.equal(held()?.state.kind, 'synced')
  // After a start nothing is known of it but its name.
  await world.restart()
  await world.until(() => held()?.state.kind === 'refused')
  await world.pass(20 * minuteMs)
  assert.deepEqual([held()?.cache?.size, await stored()], [2, 1])
  ask()
  server.put('configmaps', 'a/last')
  await world.until(() => held()?.cache?.size === 3)
  // Who has not asked for a day is not waited for.
  await world.restart()
  const record = held()?.record
  assert.ok(record !== undefined)
  record.unaskedMs = mirrorLimits.unaskedMsMax - 20 * minuteMs
  await world.pass(19 * minuteMs)
  assert.deepEqual([held()?.cache?.size, await stored()], [3, 1])
  await world.pass(15 * minuteMs)
  assert.deepEqual([held()?.cache, await stored()], [undefined, 0])
})

test('[L30] what only a caller proved for whom the edge may speak no more goes, unless another caller who used it may prove it', async () => {
  const authority = new TestAuthority('kubernetes')
  const chain = shownBy(authority.issue('jane', 'dev')).text
  const jane = { kind: 'named', caller: { name: 'jane', uid: '', groups: ['dev'] }, chain } as const
  const speaks = { p: { speakFor: [{ users: ['jane'], groups: ['dev'] }] } }
  for (const isAlone of [true, false]) {
    const { world, held, stored } = await opened({ authority })
    await using _ = world
    world.rights = () => true
    world.cloud.users.set('of-reader', { name: 'reader', uid: '', groups: [] })
    const ask = (caller: string, identity: Identity) =>
      world.edge.mirror.place('list', maps, { state: 'any', caller, identity })
    await world.police(speaks)
    ask('jane', jane)
    await world.until(() => held()?.cache !== undefined)
    if (!isAlone) ask('reader', { kind: 'token', token: 'of-reader' })
    // What its callers have shown is not on its disk, and who they are is.
    await world.restart()
    ask('jane', jane)
    await world.until(() => held()?.state.kind === 'synced')
    await world.police({})
    await world.until(() => held()?.state.kind === 'refused')
    for (let minute = 0; minute < 20; minute++) {
      ask('jane', jane)
      await world.pass(minuteMs)
    }
    assert.deepEqual([held()?.cache?.size, await stored()], isAlone ? [undefined, 0] : [1, 1])
  }
})

test('[L30] a hub that has not read everything, a line that is cut and a policy that is back in time take nothing', async () => {
  for (const what of ['unread', 'cut', 'back']) {
    const { world, held, stored } = await opened()
    await using _ = world
    await world.police({ p: { interests: [mapsOfA] } })
    await world.until(() => held()?.cache !== undefined)
    world.policies.isWhole = what !== 'unread'
    await world.police({})
    await world.until(() => held()?.state.kind === 'refused')
    if (what === 'cut') {
      await world.pass(6 * minuteMs)
      assert.notEqual(held()?.withdrawnAtMs, undefined)
      world.edge.cut(true)
      await world.pass(60 * minuteMs)
      assert.equal(await stored(), 1)
      world.policies.isWhole = false
      world.edge.mend()
    } else if (what === 'back') {
      await world.pass(10 * minuteMs)
      assert.notEqual(held()?.withdrawnAtMs, undefined)
      await world.police({ p: { interests: [mapsOfA] } })
    }
    await world.pass(60 * minuteMs)
    assert.deepEqual([what, await stored()], [what, 1])
    assert.equal(held()?.cache?.size, 1)
  }
})

test('what is never to be mirrored is gone from the edge within seconds, on its disk too, also what an option names; and comes again', async () => {
  const { world, held, stored } = await opened()
  await using _ = world
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.cache !== undefined)
  assert.equal(await stored(), 1)
  await world.police({ p: { interests: [mapsOfA] }, never: { neverMirrored: [mapsOfA] } })
  await world.pass(11_000)
  assert.equal(held()?.cache, undefined)
  assert.equal(await stored(), 0)
  assert.ok(world.lines.some((line) => line.includes('interest.emptied') && line.includes('policy/never')))
  // Its callers are passed on.
  assert.equal(world.edge.mirror.place('list', maps).kind, 'forward')
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.cache?.size === 1)
})

test('[L13] an edge hears what policies say of it at each link, and when they change', async () => {
  const { world } = await opened()
  await using _ = world
  const nothing = { trusts: false, tokenAgeMs: 0, serveAgeMs: 0 }
  assert.deepEqual(world.terms, [nothing])
  await world.police({ p: { trust: true, offline: { serveAge: '1h' } } })
  await world.until(() => world.terms.length === 2)
  assert.deepEqual(world.terms[1], { trusts: true, tokenAgeMs: 0, serveAgeMs: 3_600_000 })
  assert.equal(world.edge.link.current?.welcome?.trustsEdges, true)
  world.edge.cut()
  await world.until(() => world.terms.length === 3)
  assert.deepEqual(world.terms[2], world.terms[1])
})
