import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { known, scopeOf, settle } from '../../mirror/world.test-support.ts'
import { type FollowWorld, followContract } from './contract.test-support.ts'
import { followDirect } from './direct.ts'

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
