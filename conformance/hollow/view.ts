/** How the hollow node stands: by the API server's word, by the edge's, and by what its kubelet and kube-proxy say. */
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import type { Oracle } from '../oracle.ts'
import type { Hollow, HollowPod as Pod } from './node.ts'

export const node = 'hollow-1'
const pods = '/api/v1/namespaces/hollow/pods'
const caches = ['service config', 'endpoint slice config', 'serviceCIDR config']

type Parts = { readonly oracle: Oracle; readonly edge: Ake; readonly kubelet: Hollow; readonly proxy: Hollow }

export class HollowView {
  readonly #parts: Parts
  readonly #direct: Seat
  readonly #administrator: Seat

  constructor(parts: Parts) {
    this.#parts = parts
    this.#direct = new Seat(parts.oracle, parts.oracle)
    this.#administrator = new Seat(parts.edge, parts.edge)
  }

  close(): void {
    this.#direct.close()
    this.#administrator.close()
  }

  async read(path: string): Promise<unknown> {
    const { status, body } = await this.#direct.ask(path)
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${body}`)
    return JSON.parse(body)
  }

  async running(): Promise<Pod[]> {
    const { items } = (await this.read(pods)) as { items: Pod[] }
    return items.filter(({ status }) => status.phase === 'Running')
  }

  async pods(): Promise<Standing[]> {
    return standing(await this.running())
  }

  /** By the kubelet's own word. */
  async held(): Promise<Standing[]> {
    const all = await this.#parts.kubelet.pods()
    return standing(all.filter(({ status }) => status.phase === 'Running'))
  }

  /** What befell containers since the kubelet's start, by its runtime's own word. */
  async befell(): Promise<string[]> {
    const said = await this.#parts.kubelet.said()
    const events = said.matchAll(/"Type":"(Container\w+)","Data":"([^"_]+)_[^"]+_main_\d+"/g)
    return [...new Set([...events].map(([, type, pod]) => `${type} ${pod}`))].sort()
  }

  /** Tells which pods were deleted since. */
  async deletions(): Promise<() => string[]> {
    const { metadata } = (await this.read(pods)) as { metadata: { resourceVersion: string } }
    const stream = await this.#direct.open(`${pods}?watch=1&resourceVersion=${metadata.resourceVersion}`)
    let text = ''
    stream.setEncoding('utf8')
    stream.on('error', () => {})
    stream.on('data', (chunk: string) => {
      text += chunk
    })
    return () => {
      const frames = text.split('\n').filter((line) => line.endsWith('}'))
      const events = frames.map((line) => JSON.parse(line) as { type: string; object: Pod })
      return events
        .filter(({ type, object }) => type === 'DELETED' || type === 'ERROR' || object.metadata.deletionTimestamp)
        .map(({ type, object }) => `${type} ${object.metadata.name}`)
    }
  }

  async isReady(): Promise<boolean> {
    const { status, body } = await this.#direct.ask(`/api/v1/nodes/${node}`)
    if (status !== 200) return false
    const { conditions = [] } = (JSON.parse(body) as { status: { conditions?: { type: string; status: string }[] } })
      .status
    return conditions.some((one) => one.type === 'Ready' && one.status === 'True')
  }

  async isRenewed(): Promise<boolean> {
    const lease = await this.read(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`)
    const { renewTime } = (lease as { spec: { renewTime: string } }).spec
    return Date.now() - Date.parse(renewTime) < 12_000
  }

  async isProgrammed(services: number): Promise<boolean> {
    const said = await this.#parts.proxy.said()
    return caches.every((cache) => said.includes(synced(cache))) && (await this.added()) >= services
  }

  /** Services that kube-proxy was told of since its start. */
  async added(): Promise<number> {
    return (await this.#parts.proxy.said()).split('Calling handler.OnServiceAdd').length - 1
  }

  /** How often reflectors of either have begun from nothing since their start. */
  async lists(): Promise<number[]> {
    const { kubelet, proxy } = this.#parts
    const said = await Promise.all([kubelet.said(), proxy.said()])
    return said.map((text) => text.split('"Listing and watching"').length - 1)
  }

  async state(): Promise<string> {
    const { body } = await this.#administrator.ask('/ake/status')
    return (JSON.parse(body) as { upstream: { state: string } }).upstream.state
  }
}

function synced(cache: string): string {
  return `"Caches are synced" controller="${cache}"`
}

/** What must not change: the pod's name, its uid, the restarts of its container. */
export type Standing = readonly [name: string, uid: string, restarts: number]

function standing(all: readonly Pod[]): Standing[] {
  const one = ({ metadata, status }: Pod): Standing => {
    return [metadata.name, metadata.uid, status.containerStatuses?.[0]?.restartCount ?? -1]
  }
  return all.map(one).sort(([a], [b]) => (a < b ? -1 : 1))
}
