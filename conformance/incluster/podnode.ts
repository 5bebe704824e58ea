/**
 * An edge node in a network of its own: `ake edge` on its address, a real kube-proxy, and a pod with a network of its own again, which knows nothing but its in-cluster configuration. No container: the pod is a process, and what a
 * kubelet would mount into it is read as the kubelet and written where client-go looks for it.
 */
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import type { Link } from '../link.ts'
import { Machine } from '../node/machine.ts'
import { writeFor } from '../node/node.ts'
import type { Credential, Oracle } from '../oracle.ts'
import { type ProxyMode, proxyConfiguration } from './proxymodes.ts'

export const nodeName = 'in-cluster-1'
export const namespace = 'in-cluster'
export const account = 'robot'

const ake = join(import.meta.dirname, '..', '..', 'bin', 'ake')
const edgePort = 10005
const edgeData = '/var/lib/ake'
const podNetwork = { gateway: '10.88.0.1', address: '10.88.0.2' }
const mounted = '/run/secrets/kubernetes.io/serviceaccount'
const starting = { withinMs: 30_000, everyMs: 100 }

type Parts = {
  readonly dir: string
  readonly bin: string
  readonly oracle: Oracle
  /** The pod's program. */
  readonly program: string
}

type Started = { readonly pid: () => Promise<number> }

/** How the pod fares, by its own word. */
export type PodState = {
  readonly host: string
  /** How often it has looked at everything. */
  readonly rounds: number
  readonly synced: boolean
  readonly lists: number
  readonly values: Readonly<Record<string, string>>
  readonly wrote: number
  readonly write: string
  readonly secret: number
}

export class PodNode {
  readonly machine: Machine
  readonly #parts: Parts
  #node: Credential | undefined
  #edge: Started | undefined
  #proxy: Started | undefined
  #starts = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.machine = new Machine({ dir: join(parts.dir, 'machine'), name: `inc${process.pid}` })
  }

  /** Its network, and that of its pod: the only way out of the pod leads over the node. */
  async boot(): Promise<void> {
    await this.machine.boot()
    const ip = (...args: string[]) => this.machine.run('ip', args)
    await ip('netns', 'add', 'pod')
    await ip('link', 'add', 'pod0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', 'pod')
    await ip('address', 'add', `${podNetwork.gateway}/24`, 'dev', 'pod0')
    await ip('link', 'set', 'pod0', 'up')
    const inPod = (...args: string[]) => ip('-n', 'pod', ...args)
    await inPod('link', 'set', 'lo', 'up')
    await inPod('address', 'add', `${podNetwork.address}/24`, 'dev', 'eth0')
    await inPod('link', 'set', 'eth0', 'up')
    await inPod('route', 'add', 'default', 'via', podNetwork.gateway)
  }

  async prepare(link: Link): Promise<void> {
    const { dir, oracle } = this.#parts
    this.#node = await oracle.nodeCredential(nodeName)
    const { cert, key } = await oracle.userCredential('edge-in-cluster', ['ake:edges'])
    const server = { server: link.url, 'tls-server-name': 'localhost', ca: oracle.ca }
    await writeFor(join(dir, 'edge.kubeconfig'), { ...server, cert, key })
  }

  /** Resolves when it serves. */
  async startEdge(): Promise<void> {
    const { dir, oracle } = this.#parts
    const { certFile, keyFile } = this.#node as Credential
    const listen = ['127.0.0.1', this.machine.address].flatMap((host) => ['--listen', `${host}:${edgePort}`])
    const args = [
      ...['edge', '--kubeconfig', join(dir, 'edge.kubeconfig'), '--data', edgeData, '--node', nodeName, ...listen],
      ...['--client-ca', join(oracle.dir, 'ca.crt'), '--probe-every', '500ms'],
      ...['--client-credential', `system:node:${nodeName}=${certFile},${keyFile}`],
    ]
    this.#edge = this.machine.start(ake, args, this.#log('edge'))
    await until(() => this.#administrator('/readyz').catch(() => undefined), 'ake edge has started', starting)
  }

  async startProxy(mode: ProxyMode): Promise<void> {
    const { dir, bin, oracle } = this.#parts
    const kubeconfig = this.#proxyKubeconfig
    if (!(await isThere(kubeconfig))) {
      const token = await oracle.tokenFor('kube-system', 'kube-proxy')
      await writeFor(kubeconfig, { server: `https://127.0.0.1:${edgePort}`, ca: await this.#edgeCa(), token })
    }
    const config = join(dir, 'proxy.json')
    await writeFile(config, JSON.stringify(proxyConfiguration({ kubeconfig, nodeName, mode }), null, 2))
    this.#proxy = this.machine.start(join(bin, 'kube-proxy'), [`--config=${config}`, '--v=2'], this.#log('kube-proxy'))
  }

  /** By SIGKILL. */
  async kill(...which: ('edge' | 'proxy')[]): Promise<void> {
    for (const one of which) {
      const started = one === 'edge' ? this.#edge : this.#proxy
      const pid = (await started?.pid()) ?? 0
      if (pid === 0) throw new Error(`the ${one} had ended before: see its log`)
      process.kill(pid, 'SIGKILL')
      await until(async () => (await started?.pid()) === 0, `the ${one} has ended`, starting)
    }
  }

  /** What a kubelet would mount into its pod: asked through the edge, as the kubelet. */
  async mount(podUid: string): Promise<void> {
    const { dir } = this.#parts
    const { cert, key } = this.#node as Credential
    const kubelet = join(dir, 'kubelet.kubeconfig')
    await writeFor(kubelet, { server: `https://127.0.0.1:${edgePort}`, ca: await this.#edgeCa(), cert, key })
    const authority = await until(
      () => this.#kubectl(kubelet, 'get', '--raw', rootCaPath).catch(() => undefined),
      'the kubelet reads kube-root-ca.crt',
      starting,
    )
    const request = join(dir, 'tokenrequest.json')
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'pod', uid: podUid }
    const spec = { expirationSeconds: 3_600, boundObjectRef }
    await writeFile(request, JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }))
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
    const issued = await this.#kubectl(kubelet, 'create', '--raw', path, '-f', request)
    const files = {
      'ca.crt': (JSON.parse(authority) as { data: Record<string, string> }).data['ca.crt'] ?? '',
      token: (JSON.parse(issued) as { status: { token: string } }).status.token,
      namespace,
    }
    await this.machine.run('mkdir', ['-p', mounted])
    for (const [name, text] of Object.entries(files)) {
      const file = join(dir, `mounted-${name}`)
      await writeFile(file, text, { mode: 0o600 })
      await this.machine.run('cp', [file, `${mounted}/${name}`])
    }
  }

  /** Tells how it fares, as often as it is asked. */
  startPod(name: string, service: string): () => Promise<PodState | undefined> {
    const log = join(this.#parts.dir, `${name}.log`)
    const env = [`KUBERNETES_SERVICE_HOST=${service}`, 'KUBERNETES_SERVICE_PORT=443']
    const program = [this.#parts.program, '-namespace', namespace]
    this.machine.start('ip', ['netns', 'exec', 'pod', 'env', '-i', ...env, ...program], log)
    return async () => {
      const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n').filter((line) => line.startsWith('{'))
      const last = lines.at(-1)
      return last?.endsWith('}') === true ? (JSON.parse(last) as PodState) : undefined
    }
  }

  /** Whether the edge sees its API server. */
  async cloudState(): Promise<string> {
    return (JSON.parse(await this.#administrator('/ake/status')) as { upstream: { state: string } }).upstream.state
  }

  /** Whether kube-proxy's rules lead a service to the edge. */
  async isLedHere(mode: ProxyMode): Promise<boolean> {
    return (await mode.rules(this.machine)).includes(mode.led(this.machine.address, edgePort))
  }

  async forgetRules(): Promise<void> {
    await this.machine.run('nft', ['flush', 'ruleset'])
  }

  /** What kube-proxy is told of services, in its own name. */
  async toldProxy(): Promise<string> {
    return await this.#kubectl(this.#proxyKubeconfig, 'get', '--raw', slicesPath)
  }

  /** What the edge tells of itself. */
  page(path: string): Promise<string> {
    return this.#administrator(path)
  }

  get #proxyKubeconfig(): string {
    return join(this.#parts.dir, 'proxy.kubeconfig')
  }

  #administrator(path: string): Promise<string> {
    return this.#kubectl(`${edgeData}/admin.kubeconfig`, 'get', '--raw', path)
  }

  #kubectl(kubeconfig: string, ...args: string[]): Promise<string> {
    return this.machine.run(join(this.#parts.bin, 'kubectl'), ['--kubeconfig', kubeconfig, ...args])
  }

  #edgeCa(): Promise<string> {
    return readFile(join(this.machine.lib, 'ake', 'pki', 'ca.crt'), 'utf8')
  }

  #log(program: string): string {
    return join(this.#parts.dir, `${program}-${++this.#starts}.log`)
  }
}

/** As kube-proxy lists them. */
const selector = '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name'
const slicesPath = `/apis/discovery.k8s.io/v1/endpointslices?resourceVersion=0&labelSelector=${encodeURIComponent(selector)}`
const rootCaPath = `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt?resourceVersion=0`

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
