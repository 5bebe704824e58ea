/** kubectl by certificates through an edge behind a hub that speaks for their callers, and straight to the API server: the same is printed. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from '../build.ts'
import type { Findings } from '../findings.ts'
import { shop } from '../hub/objects.ts'
import type { HubbedWorld } from '../hub/world.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import type { Command } from '../kubectl/command.ts'
import { runCommand } from '../kubectl/shell.ts'
import { difference, endsAsTold } from '../kubectl.ts'
import { creatorOf } from '../rights/objects.ts'
import { startStandIn } from '../standin.ts'

const pod = 'spoken-to'

/** By who asks. */
const lines: Readonly<Record<string, readonly Command[]>> = {
  mary: [
    { line: `kubectl -n ${shop} wait pod/${pod} --for=condition=Ready` },
    { line: `kubectl -n ${shop} exec ${pod} -- echo hello` },
    { line: `echo typed | kubectl -n ${shop} exec -i ${pod} -- cat` },
    { line: `kubectl -n ${shop} logs --tail=1 ${pod}` },
    { line: `kubectl -n ${shop} get pod ${pod} -o yaml` },
    { line: `kubectl -n ${shop} get secrets`, fails: true },
  ],
  idle: [{ line: `kubectl -n ${shop} exec ${pod} -- echo hello`, fails: true }],
  lead: [
    { line: 'kubectl auth whoami -o json --as bob' },
    { line: 'kubectl auth whoami -o json --as bob --as-group qa --as-uid uid-of-bob' },
    { line: `kubectl -n ${shop} get pods --as bob --as-group qa` },
    { line: `kubectl -n ${shop} exec ${pod} --as bob --as-group qa -- echo hello`, fails: true },
  ],
}

/** What else is printed than straight from the API server: a hub's role has no such part of a caller. */
const extra: Command = {
  line: `kubectl -n ${shop} create configmap never --dry-run=server --as bob --as-user-extra example.com/team=blue`,
  fails: true,
}
const sentence =
  'the API server does not let its hub be that caller: the role of the hub (ake-hub-as-callers of deploy/hub.yaml) lacks'

export async function checkSpokenLines(world: HubbedWorld, findings: Findings): Promise<void> {
  const { dir, signal, progress } = world.context
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const standIn = await startStandIn({ oracle: world.oracle, dir, signal, progress })
  const containers = [{ name: 'main', image: 'none' }]
  const spec = { nodeName: standIn.node, serviceAccountName: 'bare', automountServiceAccountToken: false, containers }
  await creatorOf(world.oracle)(`/api/v1/namespaces/${shop}/pods`, { metadata: { name: pod }, spec })
  const shellOf = async (who: string, side: string, server: { url: string; ca: string }) => {
    const home = join(dir, `shell-${who}-${side}`)
    await mkdir(home, { recursive: true })
    const kubeconfig = join(home, 'kubeconfig')
    await writeKubeconfig(kubeconfig, { url: server.url, ca: server.ca, ...world.person(who) })
    return { bin, kubeconfig, home, signal }
  }
  try {
    for (const [who, commands] of Object.entries(lines)) {
      const shells = await Promise.all([
        shellOf(who, 'ours', world.edge('edge-1').ake),
        shellOf(who, 'real', world.oracle),
      ])
      for (const command of commands) {
        const [ours = '', real = ''] = await Promise.all(
          shells.map(async (shell) => (await runCommand(shell, command)).replaceAll(shell.home, 'HOME')),
        )
        findings.check(endsAsTold(command, real), `the API server's own answer shows nothing: ${command.line}`, real)
        findings.check(ours === real, `${who}: ${command.line}`, difference(ours, real))
      }
      if (who !== 'lead') continue
      const told = await runCommand(shells[0], extra)
      findings.check(told.includes(sentence), `lead: ${extra.line}`, told)
    }
  } finally {
    await standIn.stop()
  }
}
