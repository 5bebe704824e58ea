/**
 * What does it cost an edge to mirror 5,000 bindings, in bytes on its line and in memory: at first, and in an hour in which
 * nothing happens? Beside one in front of the same kube-apiserver at the same time whose credential may not read roles.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Link, startLink } from '../../conformance/link.ts'
import { ask, type Oracle, startOracle } from '../../conformance/oracle.ts'
import { applyRbac, creatorOf } from '../../conformance/rights/objects.ts'
import { isBuilt } from '../apiserver.ts'
import type { Figure, Question, Target } from '../bench.ts'
import { type Ask, connectTo, sendAll } from '../client.ts'
import { median } from '../median.ts'
import { memoryKb } from '../process.ts'
import { bindingCount, makeRoles, type RoleObject, teamCount, teamName } from '../roles.ts'
import { startEdge } from './edge.ts'
import { peakKb } from './wait.ts'

const writers = 16
const syncedMsMax = 60_000
const askAgainMs = 200
/** In its first minute and a half an edge fetches documents one by one, and begins to compare. */
const settleMs = 100_000
/** Bookmarks come every minute. Of several the one in the middle counts: what is compared at leisure comes in large parts. */
const minutes = 5
const minuteMs = 60_000

const group = 'rbac.authorization.k8s.io'
const rbacPath = `/apis/${group}/v1`

type Side = { readonly edge: Target; readonly link: Link; readonly peak: { stop(): number } }

export const edgeroles: Question = {
  name: 'edgeroles',
  ask: async ({ say }) => {
    if (!(await isBuilt('kube-apiserver', 'etcd', 'kubectl'))) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeroles-'))
    const oracle = await startOracle({ dir: join(dir, 'oracle') })
    const sides: Side[] = []
    try {
      await fill(oracle)
      const reading = await start(oracle, dir, 'ake:edges')
      sides.push(reading)
      const startedAt = performance.now()
      await untilRoles(reading.edge)
      say(`  roles were here after ${Math.round(performance.now() - startedAt)} ms`)
      const blind = await start(oracle, dir, 'blind')
      sides.push(blind)
      await pause(settleMs)
      return await measure(reading, blind, say)
    } finally {
      for (const { edge, link } of sides) {
        await edge.stop()
        await link.close()
      }
      oracle.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

async function measure(reading: Side, blind: Side, say: (line: string) => void): Promise<Figure[]> {
  const both = [reading, blind] as const
  const pair = (of: (side: Side) => number) => ({ ake: of(reading), 'without roles': of(blind) })
  const bytes = ({ link }: Side) => link.stats().bytesDown + link.stats().bytesUp
  const first = pair((side) => bytes(side) / 1e6)
  const most = pair(({ peak }) => peak.stop() / 1_000)
  const held = pair(({ edge }) => memoryKb(edge.pid, 'RssAnon') / 1_000)
  const passed = both.map((): number[] => [])
  for (let minute = 0; minute < minutes; minute++) {
    const before = both.map(bytes)
    await pause(minuteMs)
    for (const [at, side] of both.entries()) passed[at]!.push(bytes(side) - before[at]!)
  }
  const idle = pair((side) => (median(passed[both.indexOf(side)]!) * 60) / 1e6)
  say(`  bytes in each minute: ${passed[0]}; without roles: ${passed[1]}`)
  const objects = '5,000 bindings and 2,300 roles'
  say(`  ${objects}: ${first.ake.toFixed(2)} MB at first, ${idle.ake.toFixed(2)} MB/h, ${held.ake.toFixed(0)} MB held`)
  return [
    { name: `edge, ${objects}, line, first sync`, unit: 'MB', measured: first },
    { name: `edge, ${objects}, line, an idle hour without comparisons`, unit: 'MB', measured: idle },
    { name: `edge, ${objects}, memory, first sync, peak`, unit: 'MB RssAnon', measured: most },
    { name: `edge, ${objects}, memory`, unit: 'MB RssAnon', measured: held },
  ]
}

async function start(oracle: Oracle, dir: string, of: string): Promise<Side> {
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const name = `edge-of-${of.replace(':', '-')}`
  const { kubeconfig } = await oracle.userCredential(name, [of])
  const edge = await startEdge({ dir: join(dir, name), server: link.url, kubeconfig })
  return { edge, link, peak: peakKb(edge.pid) }
}

async function fill(oracle: Oracle): Promise<void> {
  await applyRbac(oracle)
  await makeBlindRole(oracle)
  const { url, ca, cert, key } = oracle
  const at = { url, tls: { ca, cert, key } }
  const post = (path: string, object: object): Ask => ({ method: 'POST', path, body: JSON.stringify(object) })
  const teams = Array.from({ length: teamCount }, (_, index) => ({ metadata: { name: teamName(index) } }))
  await sendAll(
    at,
    teams.map((one) => post('/api/v1/namespaces', one)),
    writers,
  )
  const create = ({ resource, namespace, name, content }: RoleObject) => {
    const place = namespace === '' ? resource : `namespaces/${namespace}/${resource}`
    return post(`${rbacPath}/${place}`, { metadata: { name }, ...content })
  }
  await sendAll(at, [...makeRoles()].map(create), writers)
}

/** What edges may read, but for roles. */
async function makeBlindRole(oracle: Oracle): Promise<void> {
  const make = creatorOf(oracle)
  const { body } = await ask(oracle, `${rbacPath}/clusterroles/ake-edge`)
  const { rules } = JSON.parse(body) as { rules: { apiGroups?: string[] }[] }
  const seen = rules.map((rule) => {
    return rule.apiGroups === undefined ? rule : { ...rule, apiGroups: rule.apiGroups.filter((one) => one !== group) }
  })
  await make(`${rbacPath}/clusterroles`, { metadata: { name: 'blind' }, rules: seen })
  await make(`${rbacPath}/clusterrolebindings`, {
    metadata: { name: 'blind' },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'blind' },
    subjects: [{ apiGroup: group, kind: 'Group', name: 'blind' }],
  })
}

async function untilRoles(edge: Target): Promise<void> {
  const connection = await connectTo(edge, 'h2')
  const give = performance.now() + syncedMsMax
  for (;;) {
    const { text = '{}' } = await connection.ask({ path: '/ake/status' }, true)
    const { interests = [] } = JSON.parse(text) as {
      interests?: { resource: string; state: string; objects?: number }[]
    }
    const of = interests.filter(({ resource, state }) => /roles$|rolebindings$/.test(resource) && state === 'synced')
    if (of.length === 4) break
    if (performance.now() > give) throw new Error(`${bindingCount} bindings did not come: ${text.slice(0, 1_000)}`)
    await pause(askAgainMs)
  }
  connection.close()
}
