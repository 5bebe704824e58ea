/**
 * What does a day cost the line of an edge behind a hub in which nothing happens? Of a node with five pods, worked out of some minutes
 * after everything that happens once after a start: what comes then comes by the clock, most of it within five minutes. Beside it
 * plain watches with bookmarks, as many as a node's informers have.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startLink } from '../../conformance/link.ts'
import type { Address, Figure, Question } from '../bench.ts'
import { makePods } from '../fixture.ts'
import { plainWatch } from './plain.ts'
import { newestVersion, passed, sendEach, startHubSite, untilQuiet } from './site.ts'

const quietMs = 3_000
/** What its kubelet was denied is asked again twice, half a minute apart: once after a start, and not all day. */
const startMs = 100_000
/** What comes by the clock comes within five minutes. */
const idleMs = 300_000
const dayMs = 86_400_000
const idlePods = 5
const idleNode = 'edge-idle'
const idleWatches = 10

export const hubidle: Question = {
  name: 'hubidle',
  ask: async ({ targets, say }) => {
    const real = (await targets('kube-apiserver'))[0]
    if (real === undefined) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-hubidle-'))
    const site = await startHubSite({ dir, at: real })
    const direct = await startLink({ target: { host: '127.0.0.1', port: Number(new URL(real.url).port) } })
    try {
      await makeIdle(real)
      const { line } = await site.edge(idleNode, ['--node', idleNode])
      await pause(startMs)
      await untilQuiet(line, quietMs)
      const since = await newestVersion(real)
      const query = `fieldSelector=spec.nodeName%3D${idleNode}&watch=true&allowWatchBookmarks=true&resourceVersion=${since}`
      const at = { url: direct.url, tls: real.tls }
      const watch = await plainWatch(at, `/api/v1/pods?${query}&timeoutSeconds=3600`, idleWatches)
      await pause(quietMs)
      const before = { ake: passed(line), 'plain watch': passed(direct) }
      await pause(idleMs)
      const bytes = { ake: passed(line) - before.ake, 'plain watch': passed(direct) - before['plain watch'] }
      watch.close()
      const { connections } = line.stats()
      say(
        `  ${bytes.ake} bytes in ${idleMs / 1_000} idle seconds, plain watches ${bytes['plain watch']}; ${connections} links`,
      )
      const day = (count: number) => (count * dayMs) / idleMs / 1e6
      const name = `hub, an idle day of a node with ${idlePods} pods (plain: ${idleWatches} watches)`
      const measured = { ake: day(bytes.ake), 'plain watch': day(bytes['plain watch']) }
      return [{ name, unit: 'MB on the line', measured, atMost: 1 }] satisfies Figure[]
    } finally {
      await removeIdle(real)
      await site.stop()
      await direct.close()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

async function makeIdle(real: Address): Promise<void> {
  const node = { kind: 'Node', apiVersion: 'v1', metadata: { name: idleNode } }
  const pods = idleObjects().map((object) => ({
    ...{ method: 'POST', path: '/api/v1/namespaces/default/pods', body: JSON.stringify(object) },
  }))
  await sendEach(real, [{ method: 'POST', path: '/api/v1/nodes', body: JSON.stringify(node) }, ...pods])
}

async function removeIdle(real: Address): Promise<void> {
  const away = (path: string) => ({ method: 'DELETE', path, body: JSON.stringify({ gracePeriodSeconds: 0 }) })
  const pods = idleObjects().map(({ metadata: { name } }) => away(`/api/v1/namespaces/default/pods/${name}`))
  // What was not made is not there to be removed.
  await sendEach(real, [...pods, away(`/api/v1/nodes/${idleNode}`)], [200, 404])
}

function idleObjects() {
  return makePods(idlePods).map(({ object }, index) => {
    const { spec } = object as unknown as { spec: object }
    const name = `${idleNode}-${index}`
    return {
      ...object,
      metadata: { ...object.metadata, name, namespace: 'default' },
      spec: { ...spec, nodeName: idleNode },
    }
  })
}
