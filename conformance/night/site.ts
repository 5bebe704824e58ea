/** What the night happens to: an edge with a kubelet behind a line that can be cut, set up as docs/getting-started.md says. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'
import type { Ake } from '../ake.ts'
import { startEdge } from '../edge/edge.ts'
import { type Hollow, prepareHollow } from '../hollow/node.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Credential, type Oracle } from '../oracle.ts'
import { makeBriefClient } from '../pki.ts'
import type { StepContext } from '../step.ts'
import type { Transcript } from './transcript.ts'

const execute = promisify(execFile)
const deploy = join(import.meta.dirname, '..', '..', 'deploy')
const node = 'edge-1'
/** On a busy machine; usually some seconds. */
const waiting = { withinMs: 90_000, everyMs: 250 }
/** Longer than a reboot and a look around on a busy machine; the edge looks for what has ended every minute. */
const validSeconds = 50

type Parts = {
  readonly context: StepContext
  readonly bin: string
  readonly oracle: Oracle
  readonly transcript: Transcript
}

export class NightSite {
  readonly #parts: Parts
  readonly #kubeconfig: string
  readonly #ended: (() => Promise<unknown>)[] = []
  #link!: Link
  #edge!: Ake
  #kubelet!: Hollow
  #kubeletCredential!: Credential
  #expiresMs = 0
  #logBegun = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#kubeconfig = join(parts.context.dir, 'edge.kubeconfig')
  }

  /** Pods run, and all that they need is held; no person has asked for anything yet. */
  async begin(): Promise<void> {
    const { context, oracle, transcript } = this.#parts
    await this.#apply('-f', join(deploy, 'edge-rbac.yaml'), '-f', join(import.meta.dirname, 'shop.yaml'))
    await this.#apply('-n', 'shop', '-f', join(deploy, 'edge-secrets.yaml'))
    this.#link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
    this.#ended.push(() => this.#link.close())
    // In this order, in which they end: `ake check` names the first to end first.
    await this.#certify(await oracle.userCredential(node, ['ake:edges']))
    this.#kubeletCredential = await oracle.nodeCredential(node)
    await this.#start()
    const { url, ca, port } = this.#edge
    transcript.name('/var/lib/ake', this.#dir)
    transcript.name('127.0.0.1:10005', `127.0.0.1:${port}`)
    transcript.name('cloud.example:6443', `127.0.0.1:${this.#link.port}`)
    transcript.name('/etc/ake', context.dir)
    await this.#until('all are in step', () => this.#interestsAre('synced'))
    const kubeconfig = join(context.dir, 'kubelet.kubeconfig')
    await writeKubeconfig(kubeconfig, { url, ca, cert: this.#kubeletCredential.cert, key: this.#kubeletCredential.key })
    const { cert, key } = await oracle.userCredential('technician', ['shop'])
    await writeKubeconfig(join(context.dir, 'technician.kubeconfig'), { url, ca, cert, key })
    this.#kubelet = await prepareHollow({ dir: context.dir, morph: 'kubelet', node, kubeconfig })
    this.#kubelet.start()
    this.#ended.push(() => this.#kubelet.end())
    await this.#until('the node is there', async () => (await this.#asked(`/api/v1/nodes/${node}`)).status === 200)
    await this.#apply('-f', join(import.meta.dirname, 'web.yaml'))
    const name = await this.#until('the pod runs', () => this.#runningPod())
    transcript.name('web-<pod>', name)
    await this.#until('a reboot would do no harm', async () => (await this.#survives()) === 'yes')
  }

  async cut(): Promise<void> {
    await this.#link.set('blackhole')
    await this.#untilUpstream('unreachable')
  }

  /** By SIGKILL. The certificate that it finds has little time left, as after a long absence. */
  async reboot(): Promise<void> {
    const { context, oracle } = this.#parts
    await Promise.all([this.#edge.kill(), this.#kubelet.end()])
    const brief = { user: node, groups: ['ake:edges'], seconds: validSeconds }
    this.#expiresMs = Date.now() + validSeconds * 1_000
    await this.#certify(await makeBriefClient(oracle.dir, context.dir, brief))
    await this.#start()
    await this.#untilUpstream('unreachable')
    this.#kubelet.start()
    const started = /"Type":"ContainerStarted","Data":"web-/
    await this.#until('the pod runs again', async () => started.test(await this.#kubelet.said()))
  }

  async expire(): Promise<void> {
    await pause(Math.max(0, this.#expiresMs + 1_000 - Date.now()), undefined, { signal: this.#parts.context.signal })
    await this.#until('the end is logged', async () => (await this.#log()).includes('credential.expired'))
  }

  async returned(): Promise<void> {
    await this.#link.set('up')
    await this.#untilUpstream('reachable')
    await this.#until('all are refused', () => this.#interestsAre('refused'))
  }

  async renew(): Promise<void> {
    await this.#certify(await this.#parts.oracle.userCredential(node, ['ake:edges']))
    await this.#until('all are in step', () => this.#interestsAre('synced'))
    await this.#until('the pod is seen again', () => this.#isSeenAgain())
    await this.#until('it is logged', async () => (await this.#log()).includes('outage.caughtUp'))
  }

  /** The lines of the log since the last such look whose events begin with one of these words. */
  async logged(words: readonly string[]): Promise<string> {
    const text = await this.#log()
    const lines = text.slice(this.#logBegun).split('\n')
    this.#logBegun = text.length
    return lines.filter((line) => words.includes(/^\S+ \w+ (\w+)\./.exec(line)?.[1] ?? '')).join('\n')
  }

  async end(): Promise<void> {
    await Promise.all(this.#ended.map((end) => end()))
  }

  get #dir(): string {
    return join(this.#parts.context.dir, 'edge')
  }

  #log(): Promise<string> {
    return readFile(`${this.#dir}.log`, 'utf8')
  }

  async #start(): Promise<void> {
    const { context, oracle } = this.#parts
    const { certFile, keyFile } = this.#kubeletCredential
    const edge = await startEdge({
      dir: this.#dir,
      server: this.#link.url,
      kubeconfig: this.#kubeconfig,
      signal: context.signal,
      ...(this.#edge === undefined ? {} : { port: this.#edge.port }),
      args: [
        ...['--node', node, '--mirror', 'nodes', '--client-ca', join(oracle.dir, 'ca.crt')],
        ...['--client-credential', `system:node:${node}=${certFile},${keyFile}`],
      ],
    })
    this.#edge = edge
    this.#ended.push(() => edge.kill())
  }

  async #certify({ cert, key }: { readonly cert: string; readonly key: string }): Promise<void> {
    await writeKubeconfig(this.#kubeconfig, { url: this.#link.url, ca: this.#parts.oracle.ca, cert, key })
  }

  #asked(path: string): ReturnType<typeof ask> {
    return ask(this.#parts.oracle, path)
  }

  async #runningPod(): Promise<string | undefined> {
    const { items } = JSON.parse((await this.#asked('/api/v1/namespaces/shop/pods')).body) as {
      items: { metadata: { name: string }; status: { phase: string } }[]
    }
    return items.find(({ status }) => status.phase === 'Running')?.metadata.name
  }

  /** kubemark's runtime dies with its kubelet, so the second one counts a restart. */
  async #isSeenAgain(): Promise<boolean> {
    const { body } = await ask(this.#edge, `/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3D${node}`)
    const { items } = JSON.parse(body) as {
      items?: { status: { containerStatuses: { ready: boolean; restartCount: number }[] } }[]
    }
    return items?.[0]?.status.containerStatuses.every((one) => one.ready && one.restartCount === 1) ?? false
  }

  async #interestsAre(state: string): Promise<boolean> {
    const { interests } = JSON.parse((await ask(this.#edge, '/ake/status')).body) as { interests: { state: string }[] }
    return interests.length > 0 && interests.every((one) => one.state === state || one.state === 'fed')
  }

  async #survives(): Promise<string> {
    const check = execute(join(deploy, '..', 'bin', 'ake'), ['check', '--data', this.#dir])
    return check.then(
      () => 'yes',
      () => 'no',
    )
  }

  async #untilUpstream(state: string): Promise<void> {
    const now = async () =>
      (JSON.parse((await ask(this.#edge, '/ake/status')).body) as { upstream: { state: string } }).upstream.state
    await this.#until(`the API server is ${state}`, async () => (await now()) === state)
  }

  async #apply(...args: readonly string[]): Promise<void> {
    const { bin, oracle } = this.#parts
    await execute(join(bin, 'kubectl'), ['--kubeconfig', oracle.kubeconfig, 'apply', ...args])
  }

  #until<Found>(what: string, look: () => Promise<Found>) {
    return until(look, what, { ...waiting, signal: this.#parts.context.signal })
  }
}
