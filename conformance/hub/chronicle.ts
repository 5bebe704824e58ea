/** When what was first seen at the API server of the node behind the cut line and of the pods on it. */
import type { HollowView } from '../hollow/view.ts'
import { podsPath } from './workloads.ts'

export type SeenPod = {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly labels: { readonly app: string }
    readonly deletionTimestamp?: string
  }
  readonly spec: { readonly nodeName?: string }
  readonly status: { readonly phase: string; readonly conditions?: readonly Condition[] }
}

type Condition = { readonly type: string; readonly status: string }

type SeenNode = {
  readonly spec: { readonly taints?: readonly { readonly key: string; readonly effect: string }[] }
  readonly status: { readonly conditions?: readonly Condition[] }
}

type Parts = { readonly view: Pick<HollowView, 'read'>; readonly node: string }

export class Chronicle {
  readonly #parts: Parts
  readonly #startedMs = performance.now()
  /** In seconds since its start. */
  readonly #first = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get seconds(): number {
    return (performance.now() - this.#startedMs) / 1_000
  }

  /** When something was first seen; never is NaN, which no comparison holds for. */
  at(what: string): number {
    return this.#first.get(what) ?? Number.NaN
  }

  /** The uids of the pods that were seen marked for deletion. */
  get marked(): string[] {
    return [...this.#first.keys()].flatMap((what) => (what.startsWith('marked ') ? [what.slice(7)] : [])).sort()
  }

  async look(): Promise<SeenPod[]> {
    const { view, node } = this.#parts
    const { spec, status } = (await view.read(`/api/v1/nodes/${node}`)) as SeenNode
    this.#note(`ready ${conditionOf(status.conditions)}`)
    for (const { key, effect } of spec.taints ?? []) this.#note(`taint ${key}:${effect}`)
    if ((spec.taints ?? []).length === 0) this.#note('no taint')
    const pods = await readPods(view)
    for (const { metadata, status, spec } of pods) {
      if (metadata.deletionTimestamp !== undefined) this.#note(`marked ${metadata.uid}`)
      if (spec.nodeName === node && !isReady({ status })) this.#note('pods not ready')
    }
    return pods
  }

  #note(what: string): void {
    if (!this.#first.has(what)) this.#first.set(what, this.seconds)
  }
}

export async function readPods(view: Parts['view']): Promise<SeenPod[]> {
  return ((await view.read(podsPath)) as { items: SeenPod[] }).items
}

export function isReady({ status }: Pick<SeenPod, 'status'>): boolean {
  return conditionOf(status.conditions) === 'True'
}

function conditionOf(conditions: readonly Condition[] = []): string {
  return conditions.find(({ type }) => type === 'Ready')?.status ?? ''
}
