/** Which callers see what otherwise: this node's kubelet, and what leads its pods to services. */
import { hash } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import type { Scope } from '../../kube/scope.ts'
import { endpointsHere, type HereAddress, slicesHere, withAuthority } from './incluster.ts'
import { ClassView, type Rewriting } from './view.ts'
import { type Showing, ViewClass, type ViewRecords } from './viewclass.ts'

/** What pods need to find this edge by their in-cluster configuration; each may be missing. */
export type InCluster = {
  /** PEM. */
  readonly authority?: string | undefined
  readonly here?: readonly HereAddress[] | undefined
}

type Parts = {
  readonly kubelets: readonly string[]
  readonly proxies: readonly string[]
  readonly shown: () => InCluster
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
  readonly records: ViewRecords
  readonly newest: () => number
  readonly clock: Clock
}

/** An address of the machine comes and goes; nothing else changes while it runs. */
const lookEveryMs = 5_000

/** What one caller sees otherwise of what it reads. */
export type Seeing = { readonly view: ClassView; readonly of: ViewClass; readonly caller: string }

export class Views {
  readonly #parts: Parts
  readonly #kubelet: ViewClass
  readonly #proxy: ViewClass
  #byCaller = new Map<string, readonly ViewClass[]>()
  #last = ''

  constructor(parts: Parts) {
    this.#parts = parts
    const { stored, records, newest } = parts
    this.#kubelet = new ViewClass({ name: 'kubelet', callers: parts.kubelets, stored, records, newest })
    this.#proxy = new ViewClass({ name: 'proxy', callers: parts.proxies, stored, records, newest })
    this.look()
  }

  /** undefined for all but a few callers, and for what they see as it is. */
  of(caller: string, scope: Scope): Seeing | undefined {
    const classes = this.#byCaller.get(caller)
    if (classes === undefined) return undefined
    for (const one of classes) {
      const view = one.viewOf(`${scope.group}/${scope.resource}`)
      if (view?.concerns(scope) === true) return { view, of: one, caller }
    }
    return undefined
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#parts.clock, lookEveryMs, signal)
      this.look()
    }
  }

  /** Whether anything else is to be shown. */
  look(): void {
    const { authority = '', here = [] } = this.#parts.shown()
    const now = JSON.stringify([authority, here])
    if (now === this.#last) return
    this.#last = now
    // Without either they see things as they are.
    this.#kubelet.show(showing(authority, { '/configmaps': withAuthority(authority) }))
    this.#proxy.show(
      showing(here.map(({ host, port }) => `${host} ${port}`).join(), {
        '/endpoints': endpointsHere(here),
        'discovery.k8s.io/endpointslices': slicesHere(here),
      }),
    )
    this.#byCaller = new Map()
    for (const one of [this.#kubelet, this.#proxy]) {
      if (!one.isSeeing) continue
      for (const caller of one.callers) this.#byCaller.set(caller, [...(this.#byCaller.get(caller) ?? []), one])
    }
  }
}

function showing(what: string, sights: Readonly<Record<string, Rewriting>>): Showing {
  const views = Object.entries(sights).map(([resource, sight]) => [resource, new ClassView(sight)] as const)
  return { mark: what === '' ? '' : hash('sha256', what, 'base64url'), views: new Map(views) }
}
