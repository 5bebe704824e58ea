/** The model API server, two hubs that follow its pods, and an edge's link to one of them in memory, which comes back after a cut. */
import { sleep } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import type { Scope } from '../../kube/scope.ts'
import type { LinkObject } from '../../link/session/session.ts'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { identityPath } from '../../mirror/cluster.ts'
import type { ClusterGate } from '../../mirror/clustergate.ts'
import { interestOf } from '../../mirror/interest.ts'
import { scopeOf } from '../../mirror/world.test-support.ts'
import type { OpenFollow } from '../follow/follow.ts'
import type { Arrival } from '../upstream.ts'
import { EdgeLink } from './edgelink.ts'
import { followLinked } from './followlinked.ts'
import { type HubState, MemoryLine, ModelHub } from './modelhub.test-support.ts'
import type { Handle } from './passon.test-support.ts'

type LinkedParts = {
  readonly server?: ApiServer
  readonly handle?: Handle
  /** What judges of which cluster a hub is; without it any is of the edge's own. */
  readonly gate?: () => Pick<ClusterGate, 'admit' | 'known'>
}

export class LinkedWorld {
  /** Of the cluster that the hubs stand before. */
  server: ApiServer
  readonly hubs: readonly ModelHub[]
  readonly lines: MemoryLine[] = []
  readonly link: EdgeLink
  /** As on a disk. */
  readonly epochs = new Map<string, number>()
  /** Of each hub whose watch hangs, what it has not heard yet. */
  readonly #unheard = new Map<ModelHub, (() => void)[]>()
  readonly #ending = new AbortController()
  #at = 0
  #aloneUntil = 0

  constructor({ server = new ApiServer(), handle, gate }: LinkedParts = {}) {
    this.server = server
    const { clock } = server
    const newest = () => this.server.version
    const interest = interestOf(scopeOf({})).name
    const hub = () => new ModelHub({ clock, interest, newest, ...(handle && { handle }) })
    this.hubs = [hub(), hub()]
    const connect = async (signal: AbortSignal) => {
      const waitMs = this.#aloneUntil - clock.steady()
      if (waitMs > 0) await sleep(clock, waitMs, signal)
      const line = new MemoryLine()
      this.lines.push(line)
      this.hub.accept(line.hub)
      return line.edge
    }
    const hubs = {
      ...{ connect, lived: () => {}, moveOn: () => this.#moveOn() },
      leaveAlone: (_address: string, ms: number) => {
        this.#aloneUntil = clock.steady() + ms
      },
      hurry: () => {
        this.#aloneUntil = 0
      },
    }
    const known = () => {
      const epoch = Math.max(0, ...this.epochs.values())
      const cluster = gate === undefined ? 'c1' : (gate().known?.uid ?? '')
      return { cluster: epoch === 0 ? '' : cluster, epoch }
    }
    const admit = async (seen: { address: string; cluster: string }) => await gate?.().admit(arrivalOf(seen))
    const link = new EdgeLink({ hubs, edge: 'e1', release: '1', known, admit, clock, log: silentLog })
    this.link = link
    void link.run(this.#ending.signal)
  }

  /** What is not told over a link is asked of the cluster that the hubs stand before now. */
  get follow(): OpenFollow {
    const { link, server } = this
    const epochs = {
      of: (name: string) => this.epochs.get(name),
      reached: (name: string, epoch: number) => void this.epochs.set(name, epoch),
    }
    const limits = { objects: 1_000, bytes: 1 << 20 }
    const nameOf = (scope: Scope) => interestOf(scope).name
    return followLinked({ link, epochs, upstream: server, nameOf, limits, clock: server.clock })
  }

  /** The one that the edge is led to. */
  get hub(): ModelHub {
    return this.hubs[this.#at] as ModelHub
  }

  #moveOn(): void {
    this.#at = 1 - this.#at
  }

  /** The edge comes to the other hub, with its versions. */
  move(): void {
    this.#moveOn()
    this.cut()
  }

  /** The watch of the other hub hangs: what happens from now on it hears later. */
  lag(): void {
    const other = this.hubs[1 - this.#at] as ModelHub
    if (!this.#unheard.has(other)) this.#unheard.set(other, [])
  }

  /** Hubs hear what they have not. */
  catchUp(): void {
    const unheard = [...this.#unheard.values()]
    this.#unheard.clear()
    for (const hear of unheard.flat()) hear()
  }

  put(key: string, value: string): number {
    return this.tell(key, this.server.put('pods', key, { value }))
  }

  remove(key: string): number {
    return this.tell(key, this.server.remove('pods', key))
  }

  forget(): void {
    this.server.compact()
    this.hub.forget()
  }

  restore(version: number): void {
    this.server.restore(version)
    this.#anew((hub, objects) => hub.restore(objects, version))
  }

  /** The same while no hub runs, whose state is put back with the cluster: those that start then know nothing of it. */
  restoreUnseen(version: number, bumpedBy = 0): void {
    this.cut()
    this.server.restore(version, bumpedBy)
    this.#anew((hub, objects) => hub.restart(objects, this.server.version))
  }

  /** Under versions that go on, while the hubs run, which list all of it anew. */
  restoreBumped(version: number, by = 1_000): void {
    this.server.restore(version, by)
    this.#anew((hub, objects) => hub.differ(objects, this.server.version))
  }

  /** The hubs' watches missed what happened at the API server, and that forgot it. */
  relist(): void {
    this.server.compact()
    this.#anew((hub, objects) => hub.differ(objects, this.server.version))
  }

  /** Another process in the place of the edge's hub. */
  restart(): void {
    this.cut()
    this.#unheard.delete(this.hub)
    this.hub.restart(this.#objects(), this.server.version)
  }

  /** Another cluster stands in the place of the one there was: the hubs end, and those that start know nothing else. */
  replace(server: ApiServer, state: HubState): void {
    this.cut()
    this.server = server
    this.#anew((hub, objects) => hub.stand(state, objects, server.version))
  }

  stop(): void {
    this.#ending.abort()
  }

  cut(): void {
    this.lines.at(-1)?.cut()
  }

  /** What the API server has of a key reaches the hubs, and goes on to the edge. */
  tell(key: string, version: number): number {
    const item = this.#object(key)
    for (const hub of this.hubs) {
      const hear = () => hub.change(key, item, version)
      const unheard = this.#unheard.get(hub)
      if (unheard === undefined) hear()
      else unheard.push(hear)
    }
    return version
  }

  /** The hub has what the API server has of a key, and its edge never hears of it. */
  keepFromEdge(key: string, version: number): void {
    this.hub.change(key, this.#object(key), version, false)
  }

  /** Watches are over: hubs read everything. */
  #anew(read: (hub: ModelHub, objects: LinkObject[]) => void): void {
    this.#unheard.clear()
    for (const hub of this.hubs) read(hub, this.#objects())
  }

  #objects(): LinkObject[] {
    return [...this.server.listed('pods').keys()].map((key) => this.#object(key) as LinkObject)
  }

  #object(key: string): LinkObject | undefined {
    const stored = this.server.get('pods', key)
    return stored && { key, uid: stored.uid, version: stored.version, bytes: Buffer.from(stored.text) }
  }
}

/** The hub says of which cluster it is before anything else is asked. */
function arrivalOf({ address, cluster }: { readonly address: string; readonly cluster: string }): Arrival {
  const body = JSON.stringify({ kind: 'Namespace', metadata: { name: 'kube-system', uid: cluster } })
  const get = async (path: string) =>
    path === identityPath ? { status: 200, body: Buffer.from(body) } : { status: 404, body: Buffer.alloc(0) }
  return { address, server: '', isOwn: true, addresses: [address], authorities: ['hubs'], get }
}
