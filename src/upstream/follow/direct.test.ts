import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { known, scopeOf, settle } from '../../mirror/world.test-support.ts'
import { type FollowWorld, followContract } from './contract.test-support.ts'
import { followDirect } from './direct.ts'
import { TooLarge } from './follow.ts'

/** Before the model API server; `pageMax` objects in a page. */
function open(pageMax: number): FollowWorld {
  const server = new ApiServer()
  server.pageMax = pageMax
  const { plan, resource } = known('pods')
  const limits = { objects: 1_000, bytes: 1 << 20 }
  const follow = followDirect({ upstream: server, limits, clock: server.clock })
  return {
    ...follow({ scope: scopeOf({}), custom: false, kind: resource.kind, plan: () => plan }),
    plan,
    put: (key, value) => server.put('pods', key, { value }),
    remove: (key) => server.remove('pods', key),
    forget: () => server.compact(),
    restore: (version) => server.restore(version),
    tellProgress: () => server.bookmark(),
    cut: () => server.cutWatches(),
    settle: () => settle(20),
  }
}

followContract('direct', () => open(500))
followContract('direct, in pages', () => open(2))

test('what the reading of a list that did not fit has shown spares the next ones all but a page', async () => {
  const server = new ApiServer()
  server.pageMax = 2
  for (let i = 0; i < 9; i++) server.put('pods', `a/k${i}`, { value: 'v'.repeat(100) })
  const { plan, resource } = known('pods')
  const open = followDirect({ upstream: server, limits: { objects: 99, bytes: 1_500 }, clock: server.clock })
  const { follow } = open({ scope: scopeOf({}), custom: false, kind: resource.kind, plan: () => plan })
  const from = { held: undefined, start: 'anew', check: false } as const
  const pages = async () => {
    const before = server.count('page')
    await assert.rejects(Array.fromAsync(follow(from, new AbortController().signal)), TooLarge)
    return server.count('page') - before
  }
  assert.ok((await pages()) > 0)
  assert.equal(await pages(), 0)
})
