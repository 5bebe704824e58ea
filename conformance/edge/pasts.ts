/**
 * Troubles in which the cloud becomes another under its edge: set back to a backup and found behind what the edge has seen, or
 * already beyond it; and a kubeconfig that is re-pointed to another cluster, and back. What clients were told before the backup
 * stays; of what came after it, and of the other cluster, nothing is shown once the edge has found out.
 */
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import { type Informers, startInformers } from '../phases.ts'
import type { Listed, Truth } from '../shown.ts'
import { type Random, type Site, untilReachable } from '../site.ts'
import { prepareProbing, type Through } from '../soakers.ts'
import type { Trouble } from './trouble.ts'
import { untilEdges } from './troubles.ts'

/** What is lost with a restore: enough that no interest is without a change, and that the API server's own start is fewer. */
const lostWrites = { least: 60, more: 200 }
/** Writes at a time, until the restored cluster has overtaken what the edge has seen. */
const overtakingWrites = 50
/** Of the other cluster: each name that it has the first one has, too. */
const otherKeys = 60
/** An edge has found out: a line that is noticed, witnesses, lists of everything, on a busy machine. */
const foundMsMax = 60_000
const askAgainMs = 100
const paths = ['/api/v1/pods', '/api/v1/namespaces/churn-1/configmaps', '/api/v1/secrets']

export type Clients = {
  readonly informers: Informers
  readonly truth: Truth
  readonly through: Through
  /** The kubeconfig that the edges were started with. */
  readonly pointed: string
  readonly progress: (line: string) => void
  /** Ends what was started for them. */
  readonly signal: AbortSignal
}

async function lists(oracle: Oracle): Promise<Listed[]> {
  const answers = await Promise.all(paths.map((path) => ask(oracle, path)))
  return answers.map(({ body }) => JSON.parse(body) as Listed)
}

async function listsOfEdge(site: Site): Promise<Listed[]> {
  const found: Listed[] = []
  for (const edge of site.edges()) {
    const client = edge.client()
    try {
      for (const path of paths) found.push(await client.json<Listed>('GET', `${path}?resourceVersion=0`))
    } finally {
      client.close()
    }
  }
  return found
}

const texts = (all: readonly Listed[]) => all.flatMap(({ items }) => items.map((one) => JSON.stringify(one)))
const uids = (all: readonly Listed[]) => new Set(all.flatMap(({ items }) => items.map(({ metadata }) => metadata.uid)))
const newest = (all: readonly Listed[]) => Math.max(...all.map(({ metadata }) => Number(metadata.resourceVersion)))

/** While no one writes there, an edge shows what the API server has, object for object. */
export async function untilSame(site: Site): Promise<void> {
  const isSame = async () => {
    const [have, want] = [texts(await listsOfEdge(site)), texts(await lists(site.oracle))]
    return (
      have.join() ===
      site
        .edges()
        .flatMap(() => want)
        .join()
    )
  }
  const waiting = { withinMs: foundMsMax, everyMs: askAgainMs, signal: site.signal }
  await until(isSame, 'the edge shows what the API server has', waiting)
}

function setBack({ informers, truth, through, progress }: Clients, found: 'behind' | 'ahead'): Trouble {
  const run = async (site: Site, random: Random) => {
    const { oracle, link, signal } = site
    through.mark()
    const copy = await oracle.snapshot()
    await informers.write(lostWrites.least + random.below(lostWrites.more))
    // The edge has seen all that will be lost.
    await untilReachable(site, true, foundMsMax)
    await untilSame(site)
    await link.set('refuse')
    await untilReachable(site, false, foundMsMax)
    const before = await lists(oracle)
    truth.changes()
    await oracle.restore(copy)
    rmSync(copy, { recursive: true })
    const after = await lists(oracle)
    through.setBack()
    await informers.restored()
    if (found === 'ahead') {
      while (newest(await lists(oracle)) <= newest(before)) await informers.write(overtakingWrites)
    }
    progress(`set back from ${newest(before)} to ${newest(after)}, found at ${newest(await lists(oracle))}`)
    await link.set('up')
    await untilReachable(site, true, foundMsMax)
    const kept = new Set(texts(after))
    const lost = new Set(texts(before).filter((text) => !kept.has(text)))
    const isForgotten = async () => !texts(await listsOfEdge(site)).some((text) => lost.has(text))
    const what = 'the edge shows nothing of the lost past'
    await until(isForgotten, what, { withinMs: foundMsMax, everyMs: askAgainMs, signal })
    truth.changed({ lost })
    await through.prove()
  }
  // Once for the restore, and once for a client that stood at a version of either past when the new one grew beyond both.
  return { name: `the API server is set back, and found ${found}`, run, relists: found === 'behind' ? 2 : 1 }
}

/** Running or stopped: an edge reads the file again. Of one edge, which alone has this file. */
function repointed({ informers, truth, through, pointed, progress, signal }: Clients): Trouble {
  let other: Promise<Oracle> | undefined
  const start = async ({ dir }: Site) => {
    const made = await startOracle({ dir: join(dir, 'other'), signal, progress })
    await prepareProbing(made)
    const asked = { kubeconfig: made.kubeconfig, direct: made.kubeconfig, dir: join(dir, 'other'), keys: otherKeys }
    await (await startInformers({ ...asked, signal, progress })).finish()
    return made
  }
  const point = async (site: Site, random: Random, oracle: Oracle, url: string) => {
    await writeKubeconfig(`${pointed}.next`, { ...oracle, url })
    const replace = () => renameSync(`${pointed}.next`, pointed)
    const how = random.of(['running', 'kill', 'orderly'] as const)
    progress(`re-pointed, ${how}`)
    if (how === 'running') replace()
    else for (const edge of site.edges()) await edge.restart(how, replace)
    const uid = await clusterUid(oracle)
    await untilEdges(site, 'the cluster of the kubeconfig is believed in', (cluster) => cluster.uid === uid)
    await untilReachable(site, true, foundMsMax)
  }
  const run = async (site: Site, random: Random) => {
    other ??= start(site)
    const there = await other
    const [own, strange] = [uids(await lists(site.oracle)), uids(await lists(there))]
    through.mark()
    await informers.restored()
    truth.changes()
    await point(site, random, there, there.url)
    through.forget()
    truth.changed({ strangers: own })
    await pause(1_000 + random.below(4_000), undefined, { signal: site.signal })
    truth.changes()
    await point(site, random, site.oracle, site.link.url)
    through.setBack()
    truth.changed({ strangers: strange })
    await through.prove()
  }
  // Once at each of the two clusters; the way back may cut a list that is under way.
  return { name: 'the kubeconfig is re-pointed to another cluster, and back', run, relists: 3 }
}

async function clusterUid(oracle: Oracle): Promise<string> {
  const { body } = await ask(oracle, '/api/v1/namespaces/kube-system')
  return (JSON.parse(body) as { metadata: { uid: string } }).metadata.uid
}

/** Each has to be followed by a comparison: until then informers are forgiven what goes back. */
export function pasts(clients: Clients): readonly Trouble[] {
  return [setBack(clients, 'behind'), setBack(clients, 'ahead'), repointed(clients)]
}
