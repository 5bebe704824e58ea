/**
 * A real kubelet with containerd, under its own certificate, behind `ake edge --hub`: hubs die and are replaced, the API server dies, the line is cut and
 * edge and kubelet are killed and start again without it. Pods run on through all of it, no informer of the kubelet begins anew but by the kubelet's own
 * start, and in the end everybody has the same. Needs root and some packages (`--node`).
 */
import { mkdir } from 'node:fs/promises'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { install, missing } from '../node/packages.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { HubNodeScene } from './nodescene.ts'
import { HubNodeSite } from './nodesite.ts'

export const step: Step = { name: 'hub-node', tier: 'node', minutes: 5, missing: () => missing(), run }

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  if (process.getuid?.() !== 0) throw new Error('this proof needs root: it makes namespaces and containers')
  await mkdir(dir, { recursive: true })
  await install(progress)
  const { bin } = await buildKubernetes({ only: ['kubelet', 'kubectl'], progress })
  const site = await HubNodeSite.open(context, bin)
  const end = () => site.node.machine.stop()
  process.once('exit', end)
  signal.addEventListener('abort', end, { once: true })
  const findings = new Findings()
  try {
    await new HubNodeScene({ context, site, findings }).play()
    return findings.result
  } finally {
    signal.removeEventListener('abort', end)
    await site.stop()
    process.removeListener('exit', end)
  }
}
