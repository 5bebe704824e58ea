/** A whole edge node in a machine of its own: containerd, `ake edge` and a real kubelet, started as an init system would. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import type { Credential, Oracle } from '../oracle.ts'
import { type Configured, configure, kubeletPort } from './configured.ts'
import { Containers, ctr } from './containers.ts'
import { makeImage } from './image.ts'
import { Machine } from './machine.ts'
import { busybox } from './packages.ts'

const starting = { withinMs: 30_000, everyMs: 20 }
export const edgeUrl = 'https://127.0.0.1:10005'
const edgeData = '/var/lib/ake'
const ake = join(import.meta.dirname, '..', '..', 'bin', 'ake')

type Parts = {
  readonly dir: string
  readonly bin: string
  readonly name: string
  readonly oracle: Oracle
  /** Besides what every edge of such a node is told. */
  readonly edgeArgs?: readonly string[]
  /** Fields of the kubelet's configuration. */
  readonly kubelet?: object
  /** Archives of what its pods run, besides busybox. */
  readonly images?: readonly string[]
  /** What an init system does between the network and the edge. */
  readonly prepareNetwork?: (machine: Machine) => Promise<void>
}

export class EdgeNode {
  readonly name: string
  readonly machine: Machine
  readonly containers: Containers
  readonly #parts: Parts
  #configured: Configured | undefined
  #credentials: { readonly node: Credential; readonly edge: Credential } | undefined
  #images: readonly string[] = []
  #boots = 0
  #edges = 0
  #edgePid = () => Promise.resolve(0)

  constructor(parts: Parts) {
    this.#parts = parts
    this.name = parts.name
    this.machine = new Machine({ dir: join(parts.dir, 'machine'), name: `ake${process.pid}` })
    this.containers = new Containers(this.machine)
  }

  async prepare(): Promise<void> {
    const { dir, oracle, name, kubelet = {}, images = [] } = this.#parts
    await mkdir(join(dir, 'image'), { recursive: true })
    this.#images = [await makeImage(join(dir, 'image'), busybox), ...images]
    this.#configured = await configure(this.machine, dir, { clientCa: join(oracle.dir, 'ca.crt'), kubelet })
    const edge = await oracle.userCredential('edge-1', ['ake:edges'])
    this.#credentials = { node: await oracle.nodeCredential(name), edge }
    await this.#writeDirect('edge.kubeconfig', edge)
    await this.#writeDirect('direct.kubeconfig', this.#credentials.node)
  }

  /** Power on; resolves when the kubelet is started, with that moment. */
  async boot({ through }: { readonly through: 'edge' | 'nothing' }): Promise<{ readonly atMs: number }> {
    const { dir, bin, name } = this.#parts
    await this.machine.boot()
    this.#boots++
    await this.#parts.prepareNetwork?.(this.machine)
    this.machine.start('containerd', ['--config', this.#configured!.containerd], this.#log('containerd'))
    if (through === 'edge') this.startEdge()
    await until(() => ctr(this.machine, 'version').catch(() => undefined), 'containerd has started', starting)
    for (const image of this.#images) await ctr(this.machine, 'images', 'import', image)
    this.#images = []
    if (through === 'edge') await this.#writeThroughEdge()
    const kubeconfig = join(dir, through === 'edge' ? 'kubelet.kubeconfig' : 'direct.kubeconfig')
    const args = [
      `--config=${this.#configured!.kubelet}`,
      `--kubeconfig=${kubeconfig}`,
      `--hostname-override=${name}`,
      `--node-ip=${this.machine.address}`,
    ]
    const atMs = performance.now()
    this.machine.start(join(bin, 'kubelet'), args, this.#log('kubelet'))
    return { atMs }
  }

  /** What `ake status` prints. */
  status(): Promise<string> {
    return this.machine.run(ake, ['status', '--data', edgeData])
  }

  /** What `ake check` prints; throws where the node would not survive a reboot. */
  check(): Promise<string> {
    return this.machine.run(ake, ['check', '--data', edgeData])
  }

  /** The edge's own metrics. */
  metrics(): Promise<string> {
    return this.page('/metrics')
  }

  /** What the edge tells of itself. */
  page(path: string): Promise<string> {
    return this.kubectl(`${edgeData}/admin.kubeconfig`, 'get', '--raw', path)
  }

  /** On the node. */
  kubectl(kubeconfig: string, ...args: readonly string[]): Promise<string> {
    return this.machine.run(join(this.#parts.bin, 'kubectl'), ['--kubeconfig', kubeconfig, ...args])
  }

  /** The authority that the edge has made for itself. */
  edgeCa(): Promise<string> {
    return readFile(join(this.machine.lib, 'ake', 'pki', 'ca.crt'), 'utf8')
  }

  /** The outcomes of probes, as the kubelet counts them. */
  probes(): Promise<string> {
    return this.machine.run(busybox, ['wget', '-q', '-O', '-', `http://127.0.0.1:${kubeletPort}/metrics/probes`])
  }

  /** In MB: the edge's memory that is not a file's. */
  async edgeMemory(): Promise<number> {
    const text = await readFile(`/proc/${await this.#edgePid()}/status`, 'utf8')
    return Math.round(Number(/RssAnon:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1024)
  }

  /** By SIGKILL, alone: the rest of the node goes on. */
  async killEdge(): Promise<void> {
    const pid = await this.#edgePid()
    if (pid === 0) throw new Error('the edge had ended before: see its log')
    process.kill(pid, 'SIGKILL')
    await until(async () => (await this.#edgePid()) === 0, 'the edge has ended', starting)
  }

  /** Without waiting for it. */
  startEdge(): void {
    const { dir, oracle, name, edgeArgs = [] } = this.#parts
    const { node } = this.#credentials!
    const callers = ['--client-credential', `system:node:${name}=${node.certFile},${node.keyFile}`]
    const upstream = ['--kubeconfig', join(dir, 'edge.kubeconfig')]
    const listen = ['--listen', new URL(edgeUrl).host, '--data', edgeData]
    const args = ['edge', ...upstream, ...listen, '--client-ca', join(oracle.dir, 'ca.crt'), ...callers, ...edgeArgs]
    this.#edgePid = this.machine.start(ake, args, join(dir, `edge-${++this.#edges}.log`)).pid
  }

  #log(program: string): string {
    return join(this.#parts.dir, `${program}-${this.#boots}.log`)
  }

  /** The API server as it is reached from the machine; its certificate does not name that address. */
  #writeDirect(file: string, { ca, cert, key }: Credential): Promise<void> {
    const { dir, oracle } = this.#parts
    const server = `https://${this.machine.host}:${oracle.port}`
    return writeFor(join(dir, file), { server, 'tls-server-name': 'localhost', ca, cert, key })
  }

  /** Waits for the edge's certificate, which its first start makes, and not for the edge: neither does an init system. */
  async #writeThroughEdge(): Promise<void> {
    const ca = await until(() => this.edgeCa().catch(() => undefined), 'ake edge has started', starting)
    const { cert, key } = this.#credentials!.node
    await writeFor(join(this.#parts.dir, 'kubelet.kubeconfig'), { server: edgeUrl, ca, cert, key })
  }
}

type NodeCaller = {
  readonly server: string
  readonly 'tls-server-name'?: string
  readonly ca: string
  readonly cert?: string
  readonly key?: string
  readonly token?: string
}

/** A kubeconfig of one caller, of a server that may be named otherwise than it is reached. */
export function writeFor(path: string, { ca, cert, key, token, ...cluster }: NodeCaller): Promise<void> {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const certified = { 'client-certificate-data': base64(cert ?? ''), 'client-key-data': base64(key ?? '') }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'one', cluster: { ...cluster, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'one', user: token === undefined ? certified : { token } }],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    'current-context': 'one',
  }
  return writeFile(path, JSON.stringify(config, null, 2), { mode: 0o600 })
}
