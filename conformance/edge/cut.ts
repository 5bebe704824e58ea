/**
 * What a person sees with kubectl while the line is cut: everything that was looked at before, as it was, and an honest
 * sentence for what cannot be done.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ake } from '../ake.ts'
import type { Command } from '../kubectl/command.ts'
import { interrupted, runCommand } from '../kubectl/shell.ts'
import { difference } from '../kubectl.ts'
import type { Oracle } from '../oracle.ts'

type Shell = Parameters<typeof runCommand>[0]
type Found = { readonly count: number; readonly faults: string[] }
type Expected = Command & { readonly expect: RegExp }

/** Two cores: more at once would only wait for each other. */
const atOnce = 3
const manifests = ['namespace', 'nodes', 'config', 'pods', 'web', 'crd', 'boats']
const aboutTheCopy = /^Warning: served from the local copy.*\n/gm
const s = '-n cut'
/** As much as a list shows: nothing changes while it is watched. */
const still = (line: string, lines: number): Command => ({ line, watch: { from: lines, until: lines, meanwhile: [] } })
const unreachable = /the API server cannot be reached, and nothing was written/

const seen: readonly Command[] = [
  ...[
    'kubectl version',
    'kubectl api-versions',
    'kubectl api-resources',
    'kubectl api-resources -o wide --api-group=kubectl.example',
    'kubectl explain pods.spec.containers',
    'kubectl explain boats.spec --recursive',
    'kubectl get --raw /version',
    'kubectl get --raw /apis/apps/v1',
    `kubectl get cm ${s}`,
    `kubectl get cm ${s} -o wide --show-labels`,
    `kubectl get cm ${s} -o yaml`,
    `kubectl get cm ${s} -o json`,
    `kubectl get cm ${s} --chunk-size=2 -o name`,
    `kubectl get cm ${s} --sort-by=.data.greeting`,
    `kubectl get cm ${s} -l 'color in (red,green)'`,
    `kubectl get cm ${s} --field-selector=metadata.name!=cm-a`,
    `kubectl get cm ${s} -o jsonpath='{range .items[*]}{.metadata.name}={.data.greeting}{"\\n"}{end}'`,
    `kubectl get cm cm-a ${s} -o yaml`,
    `kubectl get cm none ${s}`,
    `kubectl get cm none ${s} --ignore-not-found`,
    `kubectl get secret key ${s} -o jsonpath={.data.password}`,
    `kubectl get pods ${s} -o wide`,
    `kubectl get pods ${s} --field-selector=spec.nodeName=cut-a`,
    `kubectl get pod front-0 ${s} -o json`,
    `kubectl get deploy,svc ${s} -o wide`,
    `kubectl get deploy web ${s} --subresource=status`,
    `kubectl get deploy web ${s} --subresource=scale`,
    `kubectl get deploy web ${s} --subresource=scale -o yaml`,
    'kubectl get nodes cut-a cut-b -o wide',
    'kubectl get ns cut -o yaml',
    'kubectl get crd boats.kubectl.example',
    `kubectl get boats ${s}`,
    `kubectl get bt ${s} -o wide --sort-by=.spec.crew`,
    `kubectl get fleet ${s} -o name`,
    `kubectl get boat anna ${s} -o yaml`,
    `kubectl get boats ${s} --field-selector=spec.harbour=husum`,
    `kubectl describe cm/cm-a secret/key ${s}`,
    `kubectl describe pod front-0 ${s} --show-events=false`,
    `kubectl describe boat anna ${s} --show-events=false`,
    `kubectl wait pod/front-0 ${s} --for=condition=Ready --timeout=5s`,
    `kubectl wait pod/front-1 ${s} --for=condition=Ready --timeout=1s`,
    `kubectl wait cm/none ${s} --for=delete --timeout=5s`,
    `kubectl rollout status deploy/web ${s} --watch=false`,
  ].map((line) => ({ line })),
  still(`exec kubectl get cm ${s} -w --no-headers`, 5),
  still(`exec kubectl get pods ${s} -l app=front --output-watch-events -w`, 3),
]

const honest = (file: (name: string) => string): readonly Expected[] => [
  { line: `kubectl create -f ${file('config')}`, expect: /"cm-a" already exists[\s\S]*exit 1\n$/ },
  { line: `kubectl apply -f ${file('config')}`, expect: /cm-e unchanged[\s\S]*"key"[\s\S]*nothing was written/ },
  { line: `kubectl apply -f ${file('config-2')}`, expect: unreachable },
  { line: `kubectl create configmap fresh ${s} --from-literal=a=b`, expect: unreachable },
  { line: `kubectl create configmap cm-a ${s} --from-literal=a=b`, expect: /"cm-a" already exists/ },
  { line: `kubectl delete cm cm-a ${s}`, expect: unreachable },
  { line: `kubectl delete pod front-0 ${s} --grace-period=0 --force`, expect: unreachable },
  { line: `kubectl patch cm cm-a ${s} -p '{"data":{"x":"y"}}'`, expect: unreachable },
  { line: `kubectl label cm cm-a ${s} x=y`, expect: unreachable },
  { line: `kubectl scale deploy web ${s} --replicas=9`, expect: /the API server cannot be reached/ },
  {
    line: 'kubectl auth can-i create pods',
    expect: /the API server cannot be reached, and only it can answer this[\s\S]*exit 1\n$/,
  },
  {
    line: `kubectl logs front-0 ${s} -c main`,
    expect: /cannot be reached[\s\S]*crictl logs \$\(crictl ps -q[\s\S]*exit 1\n$/,
  },
  {
    line: `kubectl exec front-0 ${s} -c main -- true`,
    expect: /cannot be reached[\s\S]*crictl exec -it[\s\S]*exit 1\n$/,
  },
  {
    line: 'kubectl get --raw /api/v1/namespaces/cut/nosuch',
    expect: /the server could not find the requested resource[\s\S]*exit 1\n$/,
  },
  {
    line: 'kubectl get secrets -A',
    expect: /no local copy of all secrets[\s\S]*secrets in namespace cut[^;]* are held[^;]*: -n cut[\s\S]*exit 1\n$/,
  },
  { line: `kubectl get events ${s}`, expect: /there is no local copy[\s\S]*exit 1\n$/ },
  { line: `kubectl get controllerrevisions ${s}`, expect: /there is no local copy[\s\S]*exit 1\n$/ },
  { line: `kubectl get cm cm-a ${s} -o jsonpath={.data}`, expect: /^\{\s*"greeting": "hello",\s*"poem": "[^"]*"\s*\}/ },
]

type Parts = {
  readonly dir: string
  readonly shell: (name: string, kubeconfig: string) => Shell
  readonly signal: AbortSignal
}

export class Cut {
  readonly #parts: Parts
  readonly #before = new Map<Command, string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  readonly #file = (name: string) => join(this.#parts.dir, `cut-${name}.yaml`)

  /** Written and looked at twice through the edge, as people do; then asked of the API server itself. */
  async prepare(edge: Ake, oracle: Oracle): Promise<Found> {
    for (const name of [...manifests, 'config-2']) {
      const text = await readFile(join(import.meta.dirname, '..', 'kubectl', `${name}.yaml`), 'utf8')
      await writeFile(this.#file(name), text.replaceAll('shop', 'cut').replaceAll('10.96.40.', '10.96.41.'))
    }
    const faults: string[] = []
    const through = await this.#shell('cut-before', edge.kubeconfig)
    for (const line of this.#writes()) {
      const said = await runCommand(through, { line })
      if (!said.endsWith('--- exit 0\n')) faults.push(`${line}\n${said}`)
    }
    for (const _ of [1, 2]) await this.#each(seen, async (command) => void (await runCommand(through, command)))
    const direct = await this.#shell('cut-direct', oracle.kubeconfig)
    await this.#each(seen, async (command) => {
      const said = await runCommand(direct, command)
      this.#before.set(command, said)
      if (command.watch !== undefined && !said.includes(`exit ${interrupted}\n`))
        faults.push(`${command.line}\n${said}`)
    })
    return { count: manifests.length + seen.length, faults }
  }

  #writes(): string[] {
    const wait = 'kubectl wait crd/boats.kubectl.example --for=condition=Established --timeout=20s'
    // A new schema is published with a delay; the edge may add a moment, not more.
    const known = 'for i in $(seq 20); do kubectl explain boats >/dev/null 2>&1 && exit; sleep 0.5; done; exit 1'
    const status =
      '{"status":{"phase":"Running","podIP":"10.1.0.7","podIPs":[{"ip":"10.1.0.7"}],"conditions":[{"type":"Ready","status":"True"}]}}'
    const apply = (name: string) => `kubectl apply -f ${this.#file(name)}`
    return [
      ...manifests.flatMap((name) => (name === 'crd' ? [apply(name), wait, known] : [apply(name)])),
      `kubectl patch pod front-0 ${s} --subresource=status --type=merge -p '${status}'`,
    ]
  }

  /** A home of its own each time: what kubectl remembers of discovery must come through the edge. */
  async prove(phase: string, edge: Ake): Promise<Found> {
    const shell = await this.#shell(`cut-${phase}`, edge.kubeconfig)
    const faults: string[] = []
    await this.#each(seen, async (command) => {
      const said = (await runCommand(shell, command)).replaceAll(aboutTheCopy, '').replace('--- errors\n---', '---')
      const before = this.#before.get(command) as string
      if (said !== before) faults.push(`${phase}: ${command.line}\n${difference(said, before)}`)
    })
    const told = honest(this.#file)
    for (const { expect, ...command } of told) {
      const said = await runCommand(shell, command)
      if (!expect.test(said)) faults.push(`${phase}: ${command.line}\n  should be like ${expect}, is:\n${said}`)
    }
    return { count: seen.length + told.length, faults }
  }

  /** What could not be done before can be done now, and is seen at once. */
  async returned(edge: Ake): Promise<Found> {
    const shell = await this.#shell('cut-returned', edge.kubeconfig)
    const lines: Expected[] = [
      { line: `kubectl apply -f ${this.#file('config-2')}`, expect: /configmap\/cm-a configured/ },
      { line: `kubectl get cm cm-a ${s} -o jsonpath={.data.note}`, expect: /^new--- exit 0/ },
      { line: `kubectl delete cm cm-b ${s} && kubectl get cm cm-b ${s}`, expect: /NotFound/ },
      { line: 'kubectl auth can-i create pods', expect: /^yes\n/ },
    ]
    const faults: string[] = []
    for (const { expect, ...command } of lines) {
      const said = await runCommand(shell, command)
      if (!expect.test(said)) faults.push(`returned: ${command.line}\n  should be like ${expect}, is:\n${said}`)
    }
    return { count: lines.length, faults }
  }

  async #shell(name: string, kubeconfig: string): Promise<Shell> {
    const shell = this.#parts.shell(name, kubeconfig)
    await mkdir(shell.home, { recursive: true })
    return shell
  }

  async #each(commands: readonly Command[], run: (command: Command) => Promise<void>): Promise<void> {
    const open = [...commands]
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        for (let next = open.shift(); next !== undefined; next = open.shift()) await run(next)
      }),
    )
  }
}
