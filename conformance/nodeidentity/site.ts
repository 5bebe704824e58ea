/**
 * The node as docs/getting-started.md sets it up: `ake edge --node` on loopback and on an address that pods reach, a real kubelet
 * and a real kube-proxy behind it; CoreDNS and the operator as pods.
 */
import { open, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PodState } from '../incluster/podnode.ts'
import { nftables, proxyConfiguration } from '../incluster/proxymodes.ts'
import type { Machine } from '../node/machine.ts'
import { EdgeNode, edgeUrl, writeFor } from '../node/node.ts'
import { busybox } from '../node/packages.ts'
import type { Oracle } from '../oracle.ts'
import { dnsAddress, nodeName } from './objects.ts'

const podAddress = '169.254.77.1'
const edgePort = Number(new URL(edgeUrl).port)
/** Of a log's end: some lines of the operator. */
const tailBytes = 8 * 1024

type Parts = {
  readonly dir: string
  readonly bin: string
  readonly oracle: Oracle
  readonly images: readonly string[]
}

/** How the operator fares, by its own word. */
export type OperatorState = PodState & {
  readonly watches: number
  readonly read: number
  readonly refused: string
  readonly found: readonly string[] | null
  readonly missed: string
  readonly misses: number
  readonly lastMiss: string
}

export class IdentitySite {
  readonly node: EdgeNode
  readonly #parts: Parts
  #boots = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.node = new EdgeNode({
      ...parts,
      name: nodeName,
      edgeArgs: ['--node', nodeName, '--mirror', 'nodes', '--listen', `${podAddress}:${edgePort}`],
      // Its own word is how relists of the kubelet are counted.
      kubelet: { clusterDNS: [dnsAddress], clusterDomain: 'cluster.local', logging: { verbosity: 2 } },
      prepareNetwork,
    })
  }

  get machine(): Machine {
    return this.node.machine
  }

  /** Power on; resolves when kubelet and kube-proxy are started. */
  async boot(): Promise<{ readonly atMs: number }> {
    const { dir, bin, oracle } = this.#parts
    const booted = await this.node.boot({ through: 'edge' })
    const kubeconfig = join(dir, 'kube-proxy.kubeconfig')
    if (this.#boots++ === 0) {
      const token = await oracle.tokenFor('kube-system', 'kube-proxy', { expirationSeconds: 365 * 24 * 3_600 })
      await writeFor(kubeconfig, { server: edgeUrl, ca: await this.node.edgeCa(), token })
    }
    const config = join(dir, 'kube-proxy.json')
    const configuration = proxyConfiguration({ kubeconfig, nodeName, mode: nftables })
    await writeFile(config, JSON.stringify(configuration, null, 2))
    this.machine.start(join(bin, 'kube-proxy'), [`--config=${config}`, '--v=2'], this.#log('kube-proxy'))
    return booted
  }

  /** Of the container that runs, or ran last; undefined before its first word. */
  async operator(uid: string): Promise<OperatorState | undefined> {
    const folder = join(this.#parts.dir, 'machine', 'log', 'pods', `shop_operator_${uid}`, 'main')
    const numbers = (await readdir(folder).catch(() => [])).flatMap((name) => /^(\d+)\.log$/.exec(name)?.[1] ?? [])
    if (numbers.length === 0) return undefined
    const lines = (await tailOf(join(folder, `${Math.max(...numbers.map(Number))}.log`))).split('\n')
    // Each line is preceded by its time, its stream and whether it is whole.
    const last = lines.findLast((line) => / stdout F \{.*\}$/.test(line))
    return last === undefined ? undefined : JSON.parse(last.slice(last.indexOf('{')))
  }

  /** The authority that a container was given to trust its API server by. */
  mountedCa(pid: number): Promise<string> {
    const inside = join('/proc', String(pid), 'root')
    return this.machine.run('cat', [join(inside, 'var/run/secrets/kubernetes.io/serviceaccount/ca.crt')])
  }

  /** What the cluster's DNS answers at the address of its service, asked by the node. */
  async resolve(name: string): Promise<string[]> {
    const asked = this.machine.run(busybox, ['nslookup', '-type=a', `${name}.shop.svc.cluster.local`, dnsAddress])
    const said = await asked.catch((error: { stdout?: string }) => error.stdout ?? '')
    const [, answer = ''] = said.split(/\n\n/)
    return [...answer.matchAll(/^Address: ([0-9.]+)$/gm)].map(([, address]) => address as string)
  }

  rules(): Promise<string> {
    return nftables.rules(this.machine)
  }

  /** Whether these rules lead a service to the edge. */
  leadsHere(rules: string): boolean {
    return rules.includes(nftables.led(podAddress, edgePort))
  }

  /** As the kubelet, through the edge: what kubectl says, be it a refusal. */
  asKubelet(...args: readonly string[]): Promise<string> {
    const kubeconfig = join(this.#parts.dir, 'kubelet.kubeconfig')
    return this.node.kubectl(kubeconfig, ...args).catch((error: { stderr?: string }) => error.stderr ?? '')
  }

  async cloudState(): Promise<string> {
    return (JSON.parse(await this.node.page('/ake/status')) as { upstream: { state: string } }).upstream.state
  }

  /** How often informers of the kubelet and of kube-proxy began from nothing since the last boot. */
  async begun(): Promise<Readonly<Record<'kubelet' | 'kube-proxy', number>>> {
    const count = async (program: string) =>
      (await readFile(this.#log(program), 'utf8')).split('\n').filter((line) => line.includes('"Caches populated"'))
        .length
    return { kubelet: await count('kubelet'), 'kube-proxy': await count('kube-proxy') }
  }

  #log(program: string): string {
    return join(this.#parts.dir, `${program}-${this.#boots}.log`)
  }
}

/** The address that pods reach and no other machine: on a device of its own, or where the kernel has none such, on loopback. */
async function prepareNetwork(machine: Machine): Promise<void> {
  const ip = (...args: string[]) => machine.run('ip', args)
  const device = await ip('link', 'add', 'ake0', 'type', 'dummy').then(
    () => 'ake0',
    () => 'lo',
  )
  await ip('address', 'add', `${podAddress}/32`, 'dev', device)
  await ip('link', 'set', device, 'up')
}

async function tailOf(path: string): Promise<string> {
  const { size } = await stat(path)
  const file = await open(path)
  try {
    const bytes = Math.min(size, tailBytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, size - bytes)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}
