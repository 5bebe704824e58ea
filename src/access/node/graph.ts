/**
 * What objects lead to which nodes, as far as the API server's authorizer of nodes goes by it: a pod to its node; an account,
 * Secret, ConfigMap, claim to the nodes of the pods that name it; a volume to where its claim leads, its Secrets to where the
 * volume does; attachments, slices and certificate requests to the node that they name. Told by objects as bytes, as they
 * come and go; of one node or of many. Pure.
 */
import { field, isObject, type Json, parseJson, text } from '../../kube/json/json.ts'
import { type Reference, referencesOf, referencesOfPod } from '../../kube/references.ts'

/** The resources whose objects say where something leads. */
export const leadingResources = [
  'pods',
  'persistentvolumes',
  'volumeattachments',
  'resourceslices',
  'podcertificaterequests',
] as const

type Leading = (typeof leadingResources)[number]

/** What is led to nodes: these, and what pods and volumes name. */
export type Led = Leading | Reference['resource']

/** Where one object leads. Counted: many pods of a node may name it, and a few that stay are enough. */
type Lead = {
  /** By node, how many say so. */
  readonly nodes: Map<string, number>
  /** Wherever these lead. */
  readonly through: Set<string>
}

/** What one object says: of each thing, that it leads to a node, or wherever another one does. */
type Saying = { readonly of: string; readonly node?: string; readonly through?: string }

const mirrorAnnotation = 'kubernetes.io/config.mirror'

export class NodeGraph {
  readonly #leads = new Map<string, Lead>()
  /** By object, so that it can be taken back. */
  readonly #said = new Map<string, readonly Saying[]>()

  /** An object as it is now, in place of what it was. Answers whether anything leads elsewhere now. */
  put(resource: Leading, bytes: Buffer): boolean {
    const object = parseJson(bytes)
    const [namespace, name] = [text(object, 'metadata', 'namespace'), text(object, 'metadata', 'name')]
    const own = placeOf(resource, namespace, name)
    return this.#take(own, sayings[resource](object, own))
  }

  remove(resource: Leading, namespace: string, name: string): boolean {
    return this.#take(placeOf(resource, namespace, name), [])
  }

  /** Whether an object leads to the node. */
  leads(resource: Led, namespace: string, name: string, node: string): boolean {
    return this.#isLed(placeOf(resource, namespace, name), node)
  }

  /** From a Secret it is three steps at most: what leads on leads to a pod's claim in the end, and never back. */
  #isLed(place: string, node: string): boolean {
    const lead = this.#leads.get(place)
    if (lead === undefined) return false
    if (lead.nodes.has(node)) return true
    for (const next of lead.through) if (this.#isLed(next, node)) return true
    return false
  }

  #take(own: string, saying: readonly Saying[]): boolean {
    const before = this.#said.get(own) ?? []
    if (isSame(before, saying)) return false
    for (const one of before) this.#forget(one)
    if (saying.length === 0) this.#said.delete(own)
    else this.#said.set(own, saying)
    for (const one of saying) this.#add(one)
    return true
  }

  #add({ of, node, through }: Saying): void {
    let lead = this.#leads.get(of)
    if (lead === undefined) {
      lead = { nodes: new Map(), through: new Set() }
      this.#leads.set(of, lead)
    }
    if (node !== undefined) lead.nodes.set(node, (lead.nodes.get(node) ?? 0) + 1)
    // Of one thing to another there is one way, which one object alone speaks of: the volume.
    if (through !== undefined) lead.through.add(through)
  }

  #forget({ of, node, through }: Saying): void {
    const lead = this.#leads.get(of)
    if (lead === undefined) return
    const left = node === undefined ? 0 : (lead.nodes.get(node) ?? 0) - 1
    if (node !== undefined && left > 0) lead.nodes.set(node, left)
    else if (node !== undefined) lead.nodes.delete(node)
    if (through !== undefined) lead.through.delete(through)
    if (lead.nodes.size === 0 && lead.through.size === 0) this.#leads.delete(of)
  }
}

const sayings: Readonly<Record<Leading, (object: Json, own: string) => readonly Saying[]>> = {
  pods: (pod, own) => {
    const node = text(pod, 'spec', 'nodeName')
    if (node === '') return []
    // A node makes mirror pods itself: what it writes into one must not lead it anywhere.
    const annotations = field(pod, 'metadata', 'annotations')
    const isMirror = isObject(annotations) && annotations.has(mirrorAnnotation)
    const named = isMirror ? [] : referencesOfPod(pod)
    return [{ of: own, node }, ...named.map((one) => ({ of: placeOf(one.resource, one.namespace, one.name), node }))]
  },
  persistentvolumes: (volume, own) => {
    const claim = field(volume, 'spec', 'claimRef')
    if (!isObject(claim)) return []
    const claimed = placeOf('persistentvolumeclaims', text(claim, 'namespace'), text(claim, 'name'))
    const secrets = referencesOf('persistentvolumes', volume, '').filter(({ resource }) => resource === 'secrets')
    const named = secrets.map(({ namespace, name }) => ({ of: placeOf('secrets', namespace, name), through: own }))
    return [{ of: own, through: claimed }, ...named]
  },
  volumeattachments: toNode,
  resourceslices: toNode,
  podcertificaterequests: toNode,
}

/** Most changes of a pod are of its status. */
function isSame(before: readonly Saying[], saying: readonly Saying[]): boolean {
  return (
    before.length === saying.length &&
    before.every(({ of, node, through }, i) => {
      const now = saying[i]
      return of === now?.of && node === now.node && through === now.through
    })
  )
}

function toNode(object: Json, own: string): readonly Saying[] {
  const node = text(object, 'spec', 'nodeName')
  return node === '' ? [] : [{ of: own, node }]
}

/** With its slash also where there is no namespace: names in questions may be anything, and must not pass for others. */
function placeOf(resource: Led, namespace: string, name: string): string {
  return `${resource} ${namespace}/${name}`
}
