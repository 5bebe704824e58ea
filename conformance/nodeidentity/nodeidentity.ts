/**
 * A whole node behind one `ake edge --node` with everybody's identity: a real kubelet with containerd under NodeRestriction, a real
 * kube-proxy, CoreDNS and an operator in pods that have nothing but their in-cluster configuration. Online; with the line cut, the
 * edge killed alone; after a power cut without the cloud; and back. The API server's own address in its service leads nowhere,
 * so nothing of this works by another way. Needs root and some packages (`--node`).
 */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { buildGoProgram } from '../goprogram.ts'
import { makeProgramImage } from '../node/image.ts'
import { install, missing, nodePackages, type Package } from '../node/packages.ts'
import { namespace, needed } from '../node/pods.ts'
import { type Oracle, startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { auditArguments } from './audit.ts'
import { corednsImage, operated, operatorImage, system } from './objects.ts'
import { type Create, NodeScene } from './scene.ts'
import { IdentitySite } from './site.ts'

const execute = promisify(execFile)
const packages: readonly Package[] = [...nodePackages, { name: 'nftables', file: '/usr/sbin/nft' }]
const deployed = (file: string) => join(import.meta.dirname, '..', '..', 'deploy', file)

export const step: Step = { name: 'node-identity', tier: 'node', minutes: 5, missing: () => missing(packages), run }

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  if (process.getuid?.() !== 0) throw new Error('this proof needs root: it makes namespaces and containers')
  await mkdir(dir, { recursive: true })
  await install(progress, packages)
  const { bin } = await buildKubernetes({ only: ['kubelet', 'kube-proxy', 'kubectl'], progress })
  const images = await makeImages(dir, progress)
  const home = join(dir, 'oracle')
  // From the machine's network it is not on loopback.
  const extraArgs = ['--bind-address=0.0.0.0', ...(await auditArguments(home))]
  const oracle = await startOracle({ dir: home, controllers: true, extraArgs, signal, progress })
  const site = new IdentitySite({ dir, bin, oracle, images })
  const end = () => site.machine.stop()
  process.once('exit', end)
  signal.addEventListener('abort', end, { once: true })
  const findings = new Findings()
  try {
    const create = creator(oracle, bin)
    await create(['-f', deployed('edge-rbac.yaml')])
    await create([...needed(), ...operated(), ...system(oracle)])
    for (const within of [namespace, 'kube-system']) await create(['-n', within, '-f', deployed('edge-secrets.yaml')])
    await site.node.prepare()
    await new NodeScene({ context, oracle, site, findings, create }).play()
    return findings.result
  } finally {
    signal.removeEventListener('abort', end)
    await site.machine.cut()
    process.removeListener('exit', end)
    oracle.stop()
  }
}

async function makeImages(dir: string, progress: (line: string) => void): Promise<string[]> {
  const made: string[] = []
  for (const [module, name] of [
    ['podclient', operatorImage],
    ['coredns', corednsImage],
  ] as const) {
    const program = await buildGoProgram(module, progress)
    const folder = join(dir, `image-${module}`)
    await mkdir(folder, { recursive: true })
    made.push(await makeProgramImage(folder, { name, program, as: module, entrypoint: [`/bin/${module}`] }))
  }
  return made
}

function creator(oracle: Oracle, bin: string): Create {
  const isWords = (all: readonly object[] | readonly string[]): all is readonly string[] => typeof all[0] === 'string'
  return async (what) => {
    const words = isWords(what) ? what : ['-f', '-']
    const applied = execute(join(bin, 'kubectl'), ['--kubeconfig', oracle.kubeconfig, 'apply', ...words])
    if (!isWords(what)) applied.child.stdin?.write(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: what }))
    applied.child.stdin?.end()
    await applied
  }
}
