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
/** As the machine names it. */
export const edgeData = '/var/lib/ake'
export const ake = join(import.meta.dirname, '..', '..', 'bin', 'ake')

/** What the edge and its kubelet are started from, where the edge does not ask the API server itself. */
export type NodeWay = {
  /** All that `ake edge` is told, but for `edgeArgs`. */
  readonly edge: readonly string[]
  /** Of the kubelet, written by `ake join`; without it one is written, with a certificate of the oracle. */
  readonly kubeconfig?: string
  /** A file that the edge writes and the kubelet does not start without. */
  readonly awaited?: string
}

type Parts = {
  readonly dir: string
  readonly bin: string
  readonly name: string
  readonly oracle: Oracle
  /** Straight to the API server unless told. */
  readonly way?: NodeWay
  /** Besides what every edge of such a node is told. */
  readonly edgeArgs?: readonly string[]
  /** Fields of the kubelet's configuration. */
  readonly kubelet?: object
  /** A machine of its own unless told. */
  readonly machine?: Machine
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
  #kubelets = 0
  #edgePid = () => Promise.resolve(0)
  #kubeletPid = () => Promise.resolve(0)

  constructor(parts: Parts) {
    this.#parts = parts
    this.name = parts.name
    this.machine = parts.machine ?? new Machine({ dir: join(parts.dir, 'machine'), name: `ake${process.pid}` })
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
    await this.machine.boot()
    this.#boots++
    await this.#parts.prepareNetwork?.(this.machine)
    this.machine.start('containerd', ['--config', this.#configured!.containerd], this.#log('containerd'))
    if (through === 'edge') this.startEdge()
    await until(() => ctr(this.machine, 'version').catch(() => undefined), 'containerd has started', starting)
    for (const image of this.#images) await ctr(this.machine, 'images', 'import', image)
    this.#images = []
    if (through === 'edge') await this.#writeThroughEdge()
    const atMs = performance.now()
    this.startKubelet({ through })
    return { atMs }
  }

  /** What it is told of its API server, as the machine names the file. */
  get kubeconfig(): string {
    return this.#parts.way?.kubeconfig ?? join(this.#parts.dir, 'kubelet.kubeconfig')
  }

  /** Of the kubelet that was started last. */
  get kubeletLog(): string {
    return join(this.#parts.dir, `kubelet-${this.#kubelets}.log`)
  }

  /** Without waiting for it. */
  startKubelet({ through }: { readonly through: 'edge' | 'nothing' } = { through: 'edge' }): void {
    const { dir, bin, name } = this.#parts
    const args = [
      `--config=${this.#configured!.kubelet}`,
      `--kubeconfig=${through === 'edge' ? this.kubeconfig : join(dir, 'direct.kubeconfig')}`,
      `--hostname-override=${name}`,
      `--node-ip=${this.machine.address}`,
    ]
    this.#kubelets++
    this.#kubeletPid = this.machine.start(join(bin, 'kubelet'), args, this.kubeletLog).pid
  }

  /** By SIGKILL, alone: what runs in containers goes on. */
  killKubelet(): Promise<void> {
    return this.#kill('the kubelet', this.#kubeletPid)
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
  killEdge(): Promise<void> {
    return this.#kill('the edge', this.#edgePid)
  }

  async #kill(who: string, pidOf: () => Promise<number>): Promise<void> {
    const pid = await pidOf()
    if (pid === 0) throw new Error(`${who} had ended before: see its log`)
    process.kill(pid, 'SIGKILL')
    await until(async () => (await pidOf()) === 0, `${who} has ended`, starting)
  }

  /** Without waiting for it. */
  startEdge(): void {
    const { dir, way, edgeArgs = [] } = this.#parts
    const args = ['edge', ...(way?.edge ?? this.#straight()), ...edgeArgs]
    this.#edgePid = this.machine.start(ake, args, join(dir, `edge-${++this.#edges}.log`)).pid
  }

  #straight(): string[] {
    const { dir, oracle, name } = this.#parts
    const { node } = this.#credentials!
    const callers = ['--client-credential', `system:node:${name}=${node.certFile},${node.keyFile}`]
    const upstream = ['--kubeconfig', join(dir, 'edge.kubeconfig')]
    const listen = ['--listen', new URL(edgeUrl).host, '--data', edgeData]
    return [...upstream, ...listen, '--client-ca', join(oracle.dir, 'ca.crt'), ...callers]
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
    const { awaited, kubeconfig } = this.#parts.way ?? {}
    const isThere = async (path: string) => this.machine.run('test', ['-s', path]).then(() => true)
    if (awaited !== undefined) await until(() => isThere(awaited).catch(() => false), `${awaited} is there`, starting)
    if (kubeconfig !== undefined) return
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
