/**
 * What the node of this edge may do, as the API server's authorizer of nodes would say, from what is mirrored for it: its pods,
 * their claims and the volumes of those. Of other nodes too little is here, and what is not mirrored leads nowhere that is known:
 * neither is an answer.
 */
import { NodeGraph } from '../access/node/graph.ts'
import { NodeAuthorizer, type NodeOpinion, type NodeRelations, nodeNameOf } from '../access/node/nodeauthorizer.ts'
import type { Question } from '../access/question.ts'
import type { Clock } from '../base/clock.ts'
import type { Item } from '../cache/item.ts'
import type { Caller } from '../kube/caller.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { parseJson } from '../kube/json/json.ts'
import { type Reference, referencesOf, referencesOfPod } from '../kube/references.ts'
import { objectKey } from '../kube/resource.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { interestOf, scopeOfName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Reachability } from '../upstream/upstream.ts'

/** From then on nodes are judged as here: by selectors, and with their pods' accounts. */
const minorMin = 34
/** As new as a list that is answered as the most recent one. */
const currentMs = 5_000
/** What is no longer held says so to none. */
const lookAgainMs = 1_000

type Parts = {
  readonly interests: Interests
  readonly catalog: Pick<CloudCatalog, 'find'>
  readonly release: { readonly minor: number | undefined }
  readonly reachability: Pick<Reachability, 'state'>
  readonly node: string
  readonly clock: Clock
  /** Hears that opinions may be other than before. */
  readonly changed: () => void
}

type ToldObjects = Map<string, readonly [resource: 'pods' | 'persistentvolumes' | 'volumeattachments', item: Item]>

export class OwnNode implements NodeRelations {
  readonly #parts: Parts
  readonly #pods: string
  readonly #graph = new NodeGraph()
  readonly #authorizer: NodeAuthorizer
  /** What the graph was told of, by resource and key. */
  #told: ToldObjects = new Map()
  readonly #references = new WeakMap<Item, readonly Reference[]>()
  #isOld = true
  #lookedAt = Number.NEGATIVE_INFINITY
  /** Whether every volume of the pods' claims is here. */
  #isWhole = false
  /** When anything last came to lead elsewhere, by the steady clock. */
  changedAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
    const { catalog, node } = parts
    const fields = parseFieldSelector(`spec.nodeName=${node}`)
    this.#pods = interestOf({ group: '', version: 'v1', resource: 'pods', namespace: '', fields }).name
    // Which features are on shows in what is served.
    const isServed = (resource: string) =>
      ['v1', 'v1beta1', 'v1alpha1'].some(
        (version) => catalog.find('certificates.k8s.io', version, resource) !== undefined,
      )
    this.#authorizer = new NodeAuthorizer(this, {
      get clusterTrustBundles() {
        return isServed('clustertrustbundles')
      },
      get podCertificateRequests() {
        return isServed('podcertificaterequests')
      },
    })
    for (const resource of ['pods', 'persistentvolumeclaims', 'persistentvolumes']) this.#observe(`v1/${resource}`)
    this.#observe('storage.k8s.io/v1/volumeattachments')
  }

  judge(caller: Caller, question: Question): NodeOpinion | undefined {
    const { release } = this.#parts
    const isJudged = nodeNameOf(caller) === undefined || (release.minor ?? 0) >= minorMin
    return isJudged ? this.#authorizer.judge(caller, question) : undefined
  }

  leads(
    resource: Parameters<NodeRelations['leads']>[0],
    namespace: string,
    name: string,
    node: string,
  ): boolean | undefined {
    if (node !== this.#parts.node || !this.#isKnown()) return undefined
    if (this.#graph.leads(resource, namespace, name, node)) return true
    switch (resource) {
      case 'secrets':
      case 'persistentvolumes':
        return this.#isWhole ? false : undefined
      case 'volumeattachments':
      case 'resourceslices':
      case 'podcertificaterequests':
        return undefined
      default:
        return false
    }
  }

  #observe(resource: string): void {
    const { interests, changed } = this.#parts
    interests.onResource(resource, (cache) => {
      if (resource === 'v1/pods' && cache.interest !== this.#pods) return
      const note = () => {
        this.#isOld = true
        changed()
      }
      cache.observe(note)
      note()
    })
  }

  /** Brings the graph to what is here now. */
  #isKnown(): boolean {
    const { interests, reachability, clock } = this.#parts
    const mirrored = interests.named(this.#pods)
    const pods = mirrored?.readable
    const now = clock.steady()
    if (mirrored === undefined || pods === undefined || pods.isDamaged) return false
    if (reachability.state === 'reachable' && now - mirrored.heardAt > currentMs) return false
    if (!this.#isOld && now - this.#lookedAt < lookAgainMs) return true
    this.#isOld = false
    this.#lookedAt = now
    this.#tell(pods.all(), now)
    return true
  }

  #tell(pods: Iterable<Item>, now: number): void {
    const there: ToldObjects = new Map()
    this.#isWhole = true
    for (const pod of pods) {
      there.set(`pods ${pod.key}`, ['pods', pod])
      for (const claim of this.#referencesOf('pods', pod)) {
        if (claim.resource === 'persistentvolumeclaims') this.#addVolume(claim, there)
      }
    }
    let isOther = false
    for (const [at, [resource, item]] of there) {
      if (this.#told.get(at)?.[1] !== item) isOther = this.#graph.put(resource, item.bytes) || isOther
    }
    for (const [at, [resource, { namespace, name }]] of this.#told) {
      if (!there.has(at)) isOther = this.#graph.remove(resource, namespace, name) || isOther
    }
    this.#told = there
    if (isOther) this.changedAt = now
  }

  /** The volume that a claim names, which the graph looks at for whose it is, and the attachment of that. */
  #addVolume(claim: Reference, there: ToldObjects): void {
    const held = this.#find(claim)
    const [volume] = held === undefined ? [] : this.#referencesOf('persistentvolumeclaims', held)
    const found = volume === undefined ? undefined : this.#find(volume)
    // One that is bound to nothing yet leads nowhere.
    if (held === undefined || (volume !== undefined && found === undefined)) this.#isWhole = false
    if (found === undefined) return
    there.set(`persistentvolumes ${found.key}`, ['persistentvolumes', found])
    for (const named of this.#referencesOf('persistentvolumes', found)) {
      const attachment = named.resource === 'volumeattachments' ? this.#find(named) : undefined
      if (attachment !== undefined) there.set(`volumeattachments ${attachment.key}`, ['volumeattachments', attachment])
    }
  }

  #referencesOf(resource: 'pods' | 'persistentvolumeclaims' | 'persistentvolumes', item: Item): readonly Reference[] {
    const known = this.#references.get(item)
    if (known !== undefined) return known
    const object = parseJson(item.bytes)
    const found = resource === 'pods' ? referencesOfPod(object) : referencesOf(resource, object, this.#parts.node)
    this.#references.set(item, found)
    return found
  }

  #find({ group, resource, namespace, name }: Reference): Item | undefined {
    const scope = interestOf(scopeOfName({ group, version: 'v1', resource, namespace }, name))
    const key = objectKey(namespace, name)
    return this.#parts.interests.holding(scope, key)?.readable?.get(key)
  }
}
