/** The contract of every way to follow, over a link in memory to a hub with real sessions. */

import { silentLog } from '../../base/log.ts'
import type { LinkObject } from '../../link/session/session.ts'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { interestOf } from '../../mirror/interest.ts'
import { known, scopeOf, settle } from '../../mirror/world.test-support.ts'
import { type FollowWorld, followContract } from '../follow/contract.test-support.ts'
import type { Follow } from '../follow/follow.ts'
import { EdgeLink } from './edgelink.ts'
import { followLinked } from './followlinked.ts'
import { MemoryLine, ModelHub } from './modelhub.test-support.ts'

const { plan, resource } = known('pods')
const scope = scopeOf({})
const interest = interestOf(scope).name

/** Before the model API server, which the hub follows; its edge reaches it at once, and again after a cut. */
function open(): FollowWorld {
  const server = new ApiServer()
  const { clock } = server
  const hub = new ModelHub({ clock, interest })
  const lines: MemoryLine[] = []
  const connect = async () => {
    const line = new MemoryLine()
    lines.push(line)
    hub.accept(line.hub)
    return line.edge
  }
  const hubs = { connect, lived: () => {}, moveOn: () => {}, leaveAlone: () => {} }
  const link = new EdgeLink({
    ...{ hubs, edge: 'e1', release: '1', cluster: '', epoch: 0, clock, log: silentLog },
  })
  void link.run(new AbortController().signal)
  const limits = { objects: 1_000, bytes: 1 << 20 }
  const openFollow = followLinked({ link, upstream: server, nameOf: () => interest, limits, clock })
  const { follow, identities } = openFollow({ scope, custom: false, kind: resource.kind, plan: () => plan })
  const objectOf = (key: string): LinkObject | undefined => {
    const stored = server.get('pods', key)
    return stored && { key, uid: stored.uid, version: stored.version, bytes: Buffer.from(stored.text) }
  }
  const changed = (key: string, version: number) => {
    hub.change(key, objectOf(key), version)
    return version
  }
  const welcomed: Follow = async function* (from, signal) {
    while (link.current === undefined) await settle(1)
    yield* follow(from, signal)
  }
  return {
    follow: welcomed,
    identities,
    plan,
    put: (key, value) => changed(key, server.put('pods', key, { value })),
    remove: (key) => changed(key, server.remove('pods', key)),
    forget: () => {
      server.compact()
      hub.forget()
    },
    restore: (version) => {
      server.restore(version)
      const objects = [...server.listed('pods').keys()].map((key) => objectOf(key) as LinkObject)
      hub.restore(objects, version)
    },
    tellProgress: () => hub.progress(),
    cut: () => lines.at(-1)?.cut(),
    settle: () => settle(40),
  }
}

followContract('linked', open)
