/**
 * What does a hub take for a cluster of many pods, all of which it mirrors? With one edge, and another number of them each time;
 * beside it kube-apiserver, which holds the same. `AKE_BENCH_PODS=5000,200000` says with how many.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Hub } from '../../conformance/hubs.ts'
import { startOracle } from '../../conformance/oracle.ts'
import { fillEtcd, isBuilt, storeUrl, untilVisible } from '../apiserver.ts'
import type { Figure, Question } from '../bench.ts'
import { makePods } from '../fixture.ts'
import { memoryKb } from '../process.ts'
import { Fleet } from './fleetprocess.ts'

const podCounts = (process.env.AKE_BENCH_PODS ?? '5000,50000').split(',').map(Number)
const settleMs = 10_000
/** 200,000 pods are 700 MB of JSON, which kube-apiserver makes meanwhile. */
const mirroredMsMax = 300_000
const pollMs = 500

const nameOf = (pods: number) => `hub, ${pods.toLocaleString('en')} pods`

export const hubpods: Question = {
  name: 'hubpods',
  keeps: ({ name }) => !podCounts.some((pods) => name.startsWith(`${nameOf(pods)},`)),
  ask: async ({ say }) => {
    if (!(await isBuilt('kube-apiserver', 'etcd'))) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-hubpods-'))
    const oracle = await startOracle({ dir: join(dir, 'oracle') })
    const ending = new AbortController()
    try {
      const { url, ca, cert, key, kubeconfig } = oracle
      const all = makePods(Math.max(...podCounts))
      const figures: Figure[] = []
      let filled = 0
      for (const pods of podCounts) {
        await fillEtcd(storeUrl(oracle.pids.etcd), all.slice(filled, pods))
        filled = pods
        await untilVisible({ url, tls: { ca, cert, key } }, pods)
        const hubDir = join(dir, `hub-${pods}`)
        const args = ['--trust-edges']
        const began = performance.now()
        const hub = await Hub.start({ dir: hubDir, kubeconfig, args, signal: ending.signal }, 'hub')
        await untilMirrored(hub, pods)
        const mirroredMs = performance.now() - began
        const fleet = new Fleet(join(hubDir, 'state'), hub.port)
        await fleet.order({ edges: 1, interests: 'forty' })
        await fleet.untilWhole(1)
        await pause(settleMs)
        const mb = (pid: number) => memoryKb(pid, 'RssAnon') / 1e3
        const measured = { ake: mb(hub.pid), 'kube-apiserver': mb(oracle.pids.apiserver) }
        say(
          `  ${pods} pods: ${JSON.stringify(measured)} MB, all of them were mirrored after ${(mirroredMs / 1e3).toFixed(1)} s`,
        )
        const name = nameOf(pods)
        figures.push(
          { name: `${name}, memory`, unit: 'MB RssAnon', measured },
          {
            name: `${name}, from its start until all are mirrored`,
            unit: 's',
            measured: { ake: mirroredMs / 1e3 },
          },
        )
        await fleet.stop()
        await hub.end('kill')
      }
      return figures
    } finally {
      ending.abort()
      oracle.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

async function untilMirrored(hub: Hub, pods: number): Promise<void> {
  const give = performance.now() + mirroredMsMax
  for (;;) {
    const metrics = await hub.metrics()
    const found = /^ake_objects\{[^}]*resource="pods"[^}]*\} (\d+)$/m.exec(metrics)?.[1]
    if (Number(found) >= pods) return
    if (performance.now() > give) throw new Error(`the hub has ${found} of ${pods} pods`)
    await pause(pollMs)
  }
}
