/**
 * What a node may read, as the API server would say: its authorizer of nodes over all pods and volumes of the cluster, then its
 * roles and bindings. Both are told from the hub's own mirror, so that no edge costs the API server a review.
 */
import { NodeGraph } from '../../access/node/graph.ts'
import { NodeAuthorizer, type NodeRelations } from '../../access/node/nodeauthorizer.ts'
import { type Asking, makeQuestion } from '../../access/question.ts'
import { type Opinion, Rbac, type RbacResource } from '../../access/rbac/rbac.ts'
import type { Clock } from '../../base/clock.ts'
import type { HubSources } from '../sources/sources.ts'
import { FollowedObjects } from './followed.ts'

const leading = {
  pods: { group: '', version: 'v1' },
  persistentvolumes: { group: '', version: 'v1' },
  volumeattachments: { group: 'storage.k8s.io', version: 'v1' },
} as const

type LeadingResource = keyof typeof leading

const roles: readonly RbacResource[] = ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings']

/** Where nothing was told yet, and how long that is waited for. */
const firstMsMax = 60_000

type Parts = {
  readonly sources: Pick<HubSources, 'open'>
  readonly clock: Clock
  readonly features?: ConstructorParameters<typeof NodeAuthorizer>[1]
}

export class NodeRights implements NodeRelations {
  readonly #parts: Parts
  readonly #graph = new NodeGraph()
  readonly #rbac = new Rbac()
  readonly #authorizer: NodeAuthorizer
  readonly #leading = new Map<LeadingResource, FollowedObjects>()
  readonly #roles: FollowedObjects[] = []
  readonly #waiting = new Set<() => void>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#authorizer = new NodeAuthorizer(this, parts.features)
    for (const resource of Object.keys(leading) as LeadingResource[])
      this.#leading.set(resource, this.#followLeading(resource))
    for (const resource of roles) this.#roles.push(this.#followRoles(resource))
  }

  start(): void {
    for (const followed of this.#all) followed.start()
  }

  stop(): void {
    for (const followed of this.#all) followed.stop()
  }

  /** Undefined: it cannot be told. Waits for the first reading of what it goes by. */
  async judge(node: string, asking: Asking): Promise<Opinion | undefined> {
    await this.#first()
    const caller = { name: `system:node:${node}`, uid: '', groups: ['system:nodes', 'system:authenticated'] }
    const question = makeQuestion(asking)
    const ofNode = this.#authorizer.judge(caller, question)
    if (ofNode?.allowed === true) return ofNode
    const ofRoles = this.#rbac.judge(caller, question)
    // A right that is read is one, also while other roles are not there.
    if (ofRoles.allowed) return ofRoles
    if (ofNode === undefined || this.#roles.some((followed) => !isTold(followed))) return undefined
    return { allowed: false, reason: ofNode.reason === '' ? ofRoles.reason : ofNode.reason }
  }

  leads(...[resource, namespace, name, node]: Parameters<NodeRelations['leads']>): boolean | undefined {
    if (this.#graph.leads(resource, namespace, name, node)) return true
    if (resource === 'resourceslices' || resource === 'podcertificaterequests') return undefined
    const isVolume = resource === 'secrets' || resource === 'persistentvolumes'
    const needed: readonly LeadingResource[] =
      resource === 'volumeattachments' ? [resource] : isVolume ? ['pods', 'persistentvolumes'] : ['pods']
    return needed.every((one) => this.#leading.get(one)?.isKnown) ? false : undefined
  }

  /** All that it goes by was read. */
  get isKnown(): boolean {
    return this.#all.every((followed) => followed.isKnown)
  }

  /** What keeps it from telling, as a sentence. */
  get why(): string {
    const refused = this.#all.find(({ isKnown, refusal }) => !isKnown && refusal !== undefined)
    return refused?.refusal?.sentence ?? 'the hub has not read yet what it goes by'
  }

  get #all(): readonly FollowedObjects[] {
    return [...this.#leading.values(), ...this.#roles]
  }

  #followLeading(resource: LeadingResource): FollowedObjects {
    const keys = new Set<string>()
    const remove = (key: string) => {
      keys.delete(key)
      const [name = '', namespace = ''] = key.split('/').reverse()
      this.#graph.remove(resource, namespace, name)
    }
    return new FollowedObjects({
      ...this.#parts,
      of: { ...leading[resource], resource },
      put: ({ key, bytes }) => {
        keys.add(key)
        this.#graph.put(resource, bytes)
      },
      remove,
      clear: () => {
        for (const key of [...keys]) remove(key)
      },
      told: () => this.#told(),
    })
  }

  #followRoles(resource: RbacResource): FollowedObjects {
    return new FollowedObjects({
      ...this.#parts,
      of: { group: 'rbac.authorization.k8s.io', version: 'v1', resource },
      put: ({ key, bytes }) => this.#rbac.put(resource, key, bytes),
      remove: (key) => this.#rbac.delete(resource, key),
      clear: () => this.#rbac.clear(resource),
      told: () => this.#told(),
    })
  }

  get #isTold(): boolean {
    return this.#all.every((followed) => followed.isKnown || followed.refusal !== undefined)
  }

  #told(): void {
    if (!this.#isTold) return
    for (const go of this.#waiting) go()
    this.#waiting.clear()
  }

  #first(): Promise<void> {
    if (this.#isTold) return Promise.resolve()
    return new Promise((resolve) => {
      const go = () => {
        cancel()
        this.#waiting.delete(go)
        resolve()
      }
      const cancel = this.#parts.clock.setTimer(firstMsMax, go)
      this.#waiting.add(go)
    })
  }
}

/** Roles that the hub may not read, or that its API server does not have, give no rights here: that is an answer. */
function isTold({ isKnown, refusal }: FollowedObjects): boolean {
  return isKnown || refusal?.reason === 'forbidden' || refusal?.reason === 'unknown'
}
