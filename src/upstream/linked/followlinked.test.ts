/** The contract of every way to follow, over a link in memory to a hub with real sessions; then a mirror that follows so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { known, MirrorWorld, scopeOf, settle } from '../../mirror/world.test-support.ts'
import { type FollowWorld, followContract } from '../follow/contract.test-support.ts'
import type { Follow } from '../follow/follow.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'

const { plan, resource } = known('pods')

function open(): FollowWorld {
  const world = new LinkedWorld()
  const { link, hub } = world
  const { follow, identities } = world.follow({
    scope: scopeOf({}),
    custom: false,
    kind: resource.kind,
    plan: () => plan,
  })
  const welcomed: Follow = async function* (from, signal) {
    while (link.current === undefined) await settle(1)
    yield* follow(from, signal)
  }
  return {
    follow: welcomed,
    identities,
    plan,
    put: (key, value) => world.put(key, value),
    remove: (key) => world.remove(key),
    forget: () => world.forget(),
    restore: (version) => world.restore(version),
    tellProgress: () => hub.progress(),
    cut: () => world.cut(),
    settle: () => settle(40),
  }
}

followContract('linked', open)

test('[L1] a mirror over a link has what the cluster has, after cuts, a lost history, restarts and a cluster that was put back', async () => {
  const world = new LinkedWorld()
  const { server } = world
  for (let at = 0; at < 20; at++) world.put(`a/${at}`, 'first')
  await settle(20)
  await using mirror = await MirrorWorld.open({ server, follow: world.follow })
  const held = () => {
    const { caches } = mirror.copy
    return [...(caches.get('v1/pods')?.cloud.all() ?? [])].map(({ bytes }) => bytes.toString()).sort()
  }
  const equal = () => JSON.stringify(held()) === JSON.stringify([...server.listed('pods').values()].sort())
  mirror.begin({}, { standing: true })
  await mirror.until(() => held().length === 20 && equal())
  const upToDate = async (what: string) => {
    await mirror.until(equal).catch(() => assert.fail(what))
  }
  world.put('a/1', 'second')
  world.remove('a/2')
  await upToDate('changes')
  world.cut()
  world.put('a/3', 'while it was cut')
  await upToDate('a cut')
  world.cut()
  world.put('a/4', 'while it was cut')
  world.remove('a/5')
  world.forget()
  await upToDate('a lost history')
  const backup = world.put('a/6', 'to come back')
  world.put('a/6', 'in a past that is lost')
  world.put('b/1', 'in a past that is lost')
  await upToDate('what will be lost')
  await mirror.reopen()
  world.put('a/7', 'after a crash')
  await upToDate('a crash')
  world.restore(backup)
  for (let at = 0; at < 10; at++) world.put(`c/${at}`, 'in another past')
  await upToDate('a cluster that was put back')
  world.put('a/8', 'at last')
  await upToDate('changes after all that')
})
