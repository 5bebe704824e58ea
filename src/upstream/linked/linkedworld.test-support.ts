/** The model API server, a hub that follows its pods, and an edge's link to that in memory, which comes back after a cut. */
import { silentLog } from '../../base/log.ts'
import type { LinkObject } from '../../link/session/session.ts'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { interestOf } from '../../mirror/interest.ts'
import { scopeOf } from '../../mirror/world.test-support.ts'
import { EdgeLink } from './edgelink.ts'
import { followLinked } from './followlinked.ts'
import { knownBy, MemoryLine, ModelHub } from './modelhub.test-support.ts'
import type { Handle } from './passon.test-support.ts'

export class LinkedWorld {
  readonly server: ApiServer
  readonly hub: ModelHub
  readonly lines: MemoryLine[] = []
  readonly link: EdgeLink
  readonly follow
  /** As on a disk. */
  readonly epochs = new Map<string, number>()

  constructor({ server = new ApiServer(), handle }: { server?: ApiServer; handle?: Handle } = {}) {
    this.server = server
    const { clock } = server
    const newest = () => this.server.version
    this.hub = new ModelHub({ clock, interest: interestOf(scopeOf({})).name, newest, ...(handle && { handle }) })
    const connect = async () => {
      const line = new MemoryLine()
      this.lines.push(line)
      this.hub.accept(line.hub)
      return line.edge
    }
    const hubs = { connect, lived: () => {}, moveOn: () => {}, leaveAlone: () => {} }
    const link = new EdgeLink({ hubs, edge: 'e1', release: '1', ...knownBy(this.epochs), clock, log: silentLog })
    this.link = link
    void link.run(new AbortController().signal)
    const limits = { objects: 1_000, bytes: 1 << 20 }
    const nameOf: Parameters<typeof followLinked>[0]['nameOf'] = (scope) => interestOf(scope).name
    const epochs = {
      of: (name: string) => this.epochs.get(name),
      reached: (name: string, epoch: number) => void this.epochs.set(name, epoch),
    }
    this.follow = followLinked({ link, epochs, upstream: this.server, nameOf, limits, clock })
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
    this.hub.restore(this.#objects(), version)
  }

  /** The same while no hub runs, whose state is put back with the cluster: the one that starts then knows nothing of it. */
  restoreUnseen(version: number, bumpedBy = 0): void {
    this.cut()
    this.server.restore(version, bumpedBy)
    this.hub.restart(this.#objects(), this.server.version)
  }

  cut(): void {
    this.lines.at(-1)?.cut()
  }

  /** What the API server has of a key reaches the hub, and goes on to the edge. */
  tell(key: string, version: number): number {
    this.hub.change(key, this.#object(key), version)
    return version
  }

  /** The hub has what the API server has of a key, and its edge never hears of it. */
  keepFromEdge(key: string, version: number): void {
    this.hub.change(key, this.#object(key), version, false)
  }

  #objects(): LinkObject[] {
    return [...this.server.listed('pods').keys()].map((key) => this.#object(key) as LinkObject)
  }

  #object(key: string): LinkObject | undefined {
    const stored = this.server.get('pods', key)
    return stored && { key, uid: stored.uid, version: stored.version, bytes: Buffer.from(stored.text) }
  }
}
