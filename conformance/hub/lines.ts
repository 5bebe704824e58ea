/** kubectl with a person's token through an edge behind a hub, and straight to the API server: the same is printed. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from '../build.ts'
import type { Findings } from '../findings.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import type { Command } from '../kubectl/command.ts'
import { runCommand } from '../kubectl/shell.ts'
import { difference, endsAsTold } from '../kubectl.ts'
import { startStandIn } from '../standin.ts'
import { shop } from './objects.ts'
import type { HubbedWorld } from './world.ts'

/** Each side writes objects of its own name, which is left out of what is compared. */
const sides = ['ours', 'real'] as const
type Side = (typeof sides)[number]

export async function checkLines(world: HubbedWorld, findings: Findings): Promise<void> {
  const { dir, signal, progress } = world.context
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const standIn = await startStandIn({ oracle: world.oracle, dir, signal, progress })
  const person = world.person('keeper')
  const servers = { ours: world.edge('edge-1').ake, real: world.oracle }
  const shells = await Promise.all(
    sides.map(async (side) => {
      const home = join(dir, `shell-${side}`)
      await mkdir(home, { recursive: true })
      const kubeconfig = join(home, 'kubeconfig')
      await writeKubeconfig(kubeconfig, { url: servers[side].url, ca: servers[side].ca, ...person })
      await writeFile(join(home, 'objects.json'), JSON.stringify(objects(side, standIn.node)))
      return { side, shell: { bin, kubeconfig, home, signal } }
    }),
  )
  try {
    const scripts = shells.map(({ side, shell }) => script(side, shell.home))
    for (const at of (scripts[0] as Command[]).keys()) {
      const [ours = '', real = ''] = await Promise.all(
        shells.map(async ({ side, shell }, of) => {
          const said = await runCommand(shell, scripts[of]?.[at] as Command)
          return said.replaceAll(shell.home, 'HOME').replaceAll(side, 'SIDE')
        }),
      )
      const command = scripts[0]?.[at] as Command
      findings.check(endsAsTold(command, real), `the API server's own answer shows nothing: ${command.line}`, real)
      findings.check(ours === real, `kubectl through the hub: ${command.line}`, difference(ours, real))
    }
  } finally {
    await standIn.stop()
  }
}

function script(side: Side, home: string): Command[] {
  const kubectl = (words: string) => `kubectl -n ${shop} ${words}`
  return [
    { line: kubectl(`apply -f ${home}/objects.json`) },
    { line: kubectl(`wait pod/talker-${side} --for=condition=Ready`) },
    { line: kubectl(`get configmap box-${side} -o yaml`) },
    { line: kubectl(`get pod talker-${side}`) },
    { line: kubectl(`get endpointslices -l kubernetes.io/service-name=web`) },
    { line: kubectl(`describe configmap box-${side}`) },
    { line: kubectl('describe serviceaccount keeper') },
    { line: kubectl(`exec talker-${side} -- echo hello`) },
    {
      line: `exec kubectl -n ${shop} logs -f --tail=1 talker-${side}`,
      watch: { from: 1, until: 2, meanwhile: [kubectl(`exec talker-${side} -- log said`)] },
    },
    { line: kubectl(`label configmap box-${side} colour=blue`) },
    { line: kubectl(`get configmap box-${side} --show-labels`) },
    { line: kubectl('auth can-i list secrets') },
    { line: kubectl('auth can-i list deployments.apps'), fails: true },
    { line: kubectl('auth whoami -o json') },
    { line: 'kubectl get nodes', fails: true },
    { line: kubectl('get configmap never'), fails: true },
    { line: kubectl(`delete -f ${home}/objects.json --wait=false`) },
    { line: kubectl(`get configmap box-${side}`), fails: true },
  ]
}

function objects(side: Side, nodeName: string): object {
  const containers = [{ name: 'main', image: 'none' }]
  const pod = { nodeName, serviceAccountName: 'keeper', automountServiceAccountToken: false, containers }
  const items = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `box-${side}` }, data: { colour: 'red' } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: `talker-${side}` }, spec: pod },
  ]
  return { apiVersion: 'v1', kind: 'List', items }
}
