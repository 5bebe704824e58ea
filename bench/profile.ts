/**
 * `node bench/profile.ts list|get|watch|edgewatch…`: runs `ake serve` or `ake edge` under that load with V8's sampling
 * profiler on, and prints where the time of its threads went, by function, without what it called.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fillByWriting, startAke } from './ake.ts'
import type { Target } from './bench.ts'
import { type Profile, readProfiles } from './cpuprofile.ts'
import { edgeLoads, loadEdge } from './edge/profile.ts'
import { makePods, podCount } from './fixture.ts'
import { type Load, startLoad } from './load.ts'
import { currentVersion } from './watch.ts'
import { writeSteadily } from './writer.ts'

const rowsShown = 25
const loadForMs = 8_000

const pods = makePods(podCount)
const first = pods[0]!

const loads: Record<string, (target: Target, load: Load) => Promise<unknown>> = {
  list: (target, load) => read(target, load, '/api/v1/pods', 1),
  list1: (target, load) => read(target, load, '/api/v1/pods', 1, 'h1'),
  get: (target, load) => read(target, load, `/api/v1/namespaces/${first.namespace}/pods/${first.name}`, 32),
  get1: (target, load) => read(target, load, `/api/v1/namespaces/${first.namespace}/pods/${first.name}`, 32, 'h1'),
  nodename: (target, load) => read(target, load, '/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-007', 8),
  watch: async (target, load) => {
    const path = `/api/v1/pods?watch=true&resourceVersion=${await currentVersion(target)}&timeoutSeconds=3600`
    const at = { url: target.url, tls: target.tls }
    await load.order({ kind: 'watch', at, path, connections: 100, streams: 10 })
    await writeSteadily({ at: target, pods, perSecond: 100, forMs: loadForMs })
    await load.order({ kind: 'close' })
  },
  write: (target) => writeSteadily({ at: target, pods, perSecond: 1_000, forMs: loadForMs }),
}

async function read(
  target: Target,
  load: Load,
  path: string,
  clients: number,
  protocol: 'h1' | 'h2' = 'h2',
): Promise<void> {
  const at = { url: target.url, tls: target.tls }
  await load.order({ kind: 'open', at, protocol, path, connections: clients, streams: 1 })
  await load.order({ kind: 'run', forMs: loadForMs })
  await load.order({ kind: 'close' })
}

/** Rows of `share, ms, function, place`, the most costly first; idle time is left out. */
function selfTimes({ nodes, samples, timeDeltas }: Profile): string[] {
  const byNode = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const spent = new Map<string, number>()
  let busy = 0
  for (const [index, id] of samples.entries()) {
    const { functionName, url, lineNumber } = byNode.get(id)!
    if (functionName === '(idle)') continue
    const place = url.startsWith('file:') ? relative(process.cwd(), new URL(url).pathname) : url
    const name = `${functionName || '(anonymous)'}  ${place}${place === '' ? '' : `:${lineNumber + 1}`}`
    const us = timeDeltas[index] ?? 0
    spent.set(name, (spent.get(name) ?? 0) + us)
    busy += us
  }
  const rows = [...spent].sort(([, one], [, other]) => other - one).slice(0, rowsShown)
  return rows.map(([name, us]) => {
    return `${((us * 100) / busy).toFixed(1).padStart(5)} %  ${(us / 1_000).toFixed(0).padStart(6)} ms  ${name}`
  })
}

async function loadServe(nodeOptions: string): Promise<void> {
  // Filled by one process and profiled in the next, so that creating the pods is not in the picture.
  const filler = await startAke({ dir: join(dir, 'store') })
  await fillByWriting(filler, pods)
  await filler.stop()
  const target = await startAke({ dir: join(dir, 'store'), nodeOptions })
  await loads[choice]?.(target, load)
  await target.stop()
}

const choice = process.argv[2] ?? ''
if (!(choice in loads) && !(choice in edgeLoads)) {
  console.error(`usage: node bench/profile.ts ${[...Object.keys(loads), ...Object.keys(edgeLoads)].join('|')}`)
  process.exit(2)
}
const dir = await mkdtemp(join(tmpdir(), 'ake-profile-'))
const load = startLoad()
try {
  const nodeOptions = `--cpu-prof --cpu-prof-dir=${join(dir, 'profile')}`
  if (choice in loads) await loadServe(nodeOptions)
  else await loadEdge(choice, { dir: join(dir, 'edge'), load, nodeOptions })
  for (const { thread, profile } of await readProfiles(join(dir, 'profile'))) {
    console.log(`${thread} thread`)
    for (const row of selfTimes(profile)) console.log(row)
  }
} finally {
  load.stop()
  await rm(dir, { recursive: true, force: true })
}
process.exit()
