/**
 * A real node behind hubs: `ake edge --hub`, a kubelet under its own certificate and containerd in a machine of their own; the line from it to the
 * hubs, which can be cut; two hubs with the rights of `deploy/hub.yaml`, which do not trust their edges; and a cluster with its controllers.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Hub, issueEdge } from '../hubs.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { Machine } from '../node/machine.ts'
import { EdgeNode, edgeData, edgeUrl } from '../node/node.ts'
import { auditArguments } from '../nodeidentity/audit.ts'
import { type Oracle, startOracle } from '../oracle.ts'
import { freePorts } from '../ports.ts'
import type { StepContext } from '../step.ts'
import { applyManifest, state } from './objects.ts'

export const nodeName = 'edge-node'

/** None before the first boot. */
type Line = { link?: Link }

type Parts = {
  readonly oracle: Oracle
  readonly hubs: readonly [Hub, Hub]
  readonly node: EdgeNode
  readonly line: Line
}

export class HubNodeSite {
  readonly oracle: Oracle
  readonly hubs: readonly [Hub, Hub]
  readonly node: EdgeNode
  readonly #line: Line

  private constructor({ oracle, hubs, node, line }: Parts) {
    this.oracle = oracle
    this.hubs = hubs
    this.node = node
    this.#line = line
  }

  static async open({ dir, signal, progress }: StepContext, bin: string): Promise<HubNodeSite> {
    const home = join(dir, 'oracle')
    await mkdir(home, { recursive: true, mode: 0o700 })
    const extraArgs = await auditArguments(home)
    const oracle = await startOracle({ dir: home, controllers: true, extraArgs, signal, progress })
    try {
      await applyManifest(oracle)
      const machine = new Machine({ dir: join(dir, 'machine'), name: `hub${process.pid}` })
      const kubeconfig = join(dir, 'hub.kubeconfig')
      const token = await oracle.tokenFor('ake-system', 'ake-hub')
      await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, token })
      const args = ['--drain', '1s', '--host', machine.host, '--host', '127.0.0.1']
      const of = { dir, state, kubeconfig, args, signal }
      const hubs = (await Promise.all(['hub-1', 'hub-2'].map((name) => Hub.start(of, name)))) as [Hub, Hub]
      const credential = await issueEdge(dir, nodeName, { state, kubeconfig: oracle.kubeconfig })
      const [port] = (await freePorts(1)) as [number]
      const edge = [
        ...['--hub', `wss://${machine.host}:${port}`, '--credential', credential, '--data', edgeData],
        ...['--listen', new URL(edgeUrl).host, '--client-ca', join(oracle.dir, 'ca.crt')],
      ]
      // Its own word is how relists of the kubelet are counted.
      const kubelet = { logging: { verbosity: 2 } }
      const line: Line = {}
      // On the address by which the machine reaches us, and no other: it is there once the machine has its network.
      const prepareNetwork = async () => {
        const target = { host: '127.0.0.1', port: hubs[0].port }
        line.link ??= await startLink({ target, host: machine.host, port })
      }
      const parts = { dir, bin, name: nodeName, oracle, machine, way: { edge }, kubelet, prepareNetwork }
      return new HubNodeSite({ oracle, hubs, line, node: new EdgeNode(parts) })
    } catch (error) {
      oracle.stop()
      throw error
    }
  }

  get link(): Link {
    if (this.#line.link === undefined) throw new Error('the machine has not booted')
    return this.#line.link
  }

  /** Connections from now on end at this hub. */
  lead({ port }: Hub): void {
    this.link.lead({ host: '127.0.0.1', port })
  }

  async cloudState(): Promise<string> {
    return (JSON.parse(await this.node.page('/ake/status')) as { upstream: { state: string } }).upstream.state
  }

  async stop(): Promise<void> {
    await this.node.machine.cut()
    await Promise.all(this.hubs.map((hub) => hub.end('kill')))
    await this.#line.link?.close()
    this.oracle.stop()
  }
}
