/**
 * What a node may do, as kube-apiserver's authorizer of nodes decides it (1.34 and later): its own objects, what its pods lead
 * to (`graph.ts`), and a few things that every node may. It allows or has no opinion, for a reason in its own words, which
 * the API server repeats in refusals; it never denies, since another authorizer may allow. Pure.
 */
import type { AccessAttributes } from '../../kube/accessreview.ts'
import type { Caller } from '../../kube/caller.ts'
import { parseFieldSelector } from '../../kube/fieldselector.ts'
import { quoted } from '../../kube/json/gotext.ts'
import type { Led } from './graph.ts'

/** What a node wants to do, as far as it counts here. */
export type NodeWish = Omit<AccessAttributes, 'version' | 'labels' | 'path'>

/** `allowed: false` is no opinion. */
export type NodeOpinion = { readonly allowed: boolean; readonly reason: string }

/** What leads to which node; undefined where that is not known. */
export interface NodeRelations {
  leads(resource: Led, namespace: string, name: string, node: string): boolean | undefined
}

/** What the API server has switched on that is off unless its operator wants it. */
export type NodeFeatures = {
  readonly clusterTrustBundles?: boolean
  readonly podCertificateRequests?: boolean
}

const allowed: NodeOpinion = { allowed: true, reason: '' }
const silent = no('')

const userPrefix = 'system:node:'
const nodesGroup = 'system:nodes'
const leaseNamespace = 'kube-node-lease'

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
const owning: ReadonlySet<string> = new Set(['get', 'create', 'update', 'patch', 'delete'])
const updating: ReadonlySet<string> = new Set(['update', 'patch'])
const selecting: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])

/** What every node may, whichever it is; by group, resource and subresource. */
const everyNode: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['authentication.k8s.io/tokenreviews', new Set(['create'])],
  ['authorization.k8s.io/subjectaccessreviews', new Set(['create'])],
  ['authorization.k8s.io/localsubjectaccessreviews', new Set(['create'])],
  ['/services', reading],
  ['/endpoints', new Set(['get'])],
  ['/events', new Set(['create', 'update', 'patch'])],
  ['events.k8s.io/events', new Set(['create', 'update', 'patch'])],
  ['certificates.k8s.io/certificatesigningrequests', new Set(['create', 'get', 'list', 'watch'])],
  ['storage.k8s.io/csidrivers', reading],
  ['node.k8s.io/runtimeclasses', reading],
])

/** The name of the node that a caller is; '' for one that is a node without a name, undefined for any other caller. */
export function nodeNameOf({ name, groups }: Caller): string | undefined {
  return name.startsWith(userPrefix) && groups.includes(nodesGroup) ? name.slice(userPrefix.length) : undefined
}

export class NodeAuthorizer {
  readonly #relations: NodeRelations
  readonly #features: NodeFeatures

  constructor(relations: NodeRelations, features: NodeFeatures = {}) {
    this.#relations = relations
    this.#features = features
  }

  /** Undefined where that hangs on a relation that is not known. */
  judge(caller: Caller, wish: NodeWish): NodeOpinion | undefined {
    const node = nodeNameOf(caller)
    if (node === undefined) return silent
    if (node === '') return no(`unknown node for user ${quoted(caller.name)}`)
    const { group, resource } = wish
    const own = this.#subdivided[`${group}/${resource}`]
    return own === undefined ? this.#everyNode(wish) : own(node, wish)
  }

  /** Resources of which each node may only do something with what concerns it. */
  readonly #subdivided: Readonly<Record<string, (node: string, wish: NodeWish) => NodeOpinion | undefined>> = {
    '/secrets': (node, wish) => this.#read('secrets', node, wish),
    '/configmaps': (node, wish) => this.#read('configmaps', node, wish),
    '/persistentvolumeclaims': (node, wish) => {
      if (wish.subresource !== 'status') return this.#get('persistentvolumeclaims', node, wish)
      if (!updating.has(wish.verb)) return no('can only get/update/patch this type')
      return this.#named('persistentvolumeclaims', node, wish)
    },
    '/persistentvolumes': (node, wish) => this.#get('persistentvolumes', node, wish),
    'resource.k8s.io/resourceclaims': (node, wish) => this.#get('resourceclaims', node, wish),
    'storage.k8s.io/volumeattachments': (node, wish) => this.#get('volumeattachments', node, wish),
    '/serviceaccounts': (node, wish) => this.#account(node, wish),
    'coordination.k8s.io/leases': lease,
    'storage.k8s.io/csinodes': csiNode,
    'resource.k8s.io/resourceslices': (node, wish) => this.#slice(node, wish),
    '/nodes': ownNode,
    '/pods': (node, wish) => this.#pod(node, wish),
    'certificates.k8s.io/podcertificaterequests': (node, wish) =>
      this.#features.podCertificateRequests === true ? this.#certificateRequest(node, wish) : silent,
  }

  #everyNode({ verb, group, resource, subresource }: NodeWish): NodeOpinion {
    const key = `${group}/${resource}${subresource === '' ? '' : `/${subresource}`}`
    if (everyNode.get(key)?.has(verb) === true) return allowed
    const isBundle = key === 'certificates.k8s.io/clustertrustbundles' && reading.has(verb)
    return isBundle && this.#features.clusterTrustBundles === true ? allowed : silent
  }

  /** By name, where that leads to the node. */
  #named(resource: Led, node: string, { namespace, name }: NodeWish): NodeOpinion | undefined {
    if (name === '') return no('No Object name found')
    return this.#related(resource, namespace, name, node)
  }

  #get(resource: Led, node: string, wish: NodeWish): NodeOpinion | undefined {
    if (wish.verb !== 'get') return no('can only get individual resources of this type')
    if (wish.subresource !== '') return no('cannot get subresource')
    return this.#named(resource, node, wish)
  }

  #read(resource: Led, node: string, wish: NodeWish): NodeOpinion | undefined {
    if (!reading.has(wish.verb)) return no('can only read resources of this type')
    if (wish.subresource !== '') return no('cannot read subresource')
    if (wish.namespace === '') return no('can only read namespaced object of this type')
    return this.#named(resource, node, wish)
  }

  #account(node: string, wish: NodeWish): NodeOpinion | undefined {
    const { verb, subresource, namespace, name } = wish
    if (verb === 'get' && subresource === '') return this.#read('serviceaccounts', node, wish)
    if (verb !== 'create' || name === '') return no('can only create tokens for individual service accounts')
    if (subresource !== 'token') return no('can only create token subresource of serviceaccount')
    return this.#related('serviceaccounts', namespace, name, node)
  }

  #related(resource: Led, namespace: string, name: string, node: string): NodeOpinion | undefined {
    const isLed = this.#relations.leads(resource, namespace, name, node)
    if (isLed === undefined || isLed) return isLed && allowed
    return no(`no relationship found between node '${node}' and this object`)
  }

  /** Whose slice is made is looked at when it is admitted. */
  #slice(node: string, wish: NodeWish): NodeOpinion | undefined {
    const { verb, subresource } = wish
    if (subresource !== '') return no('cannot authorize ResourceSlice subresources')
    if (verb === 'create') return allowed
    if (owning.has(verb)) return this.#named('resourceslices', node, wish)
    if (!selecting.has(verb))
      return no(
        'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
      )
    if (isOfNode(wish, node)) return allowed
    return no('can only list/watch/deletecollection resourceslices with nodeName field selector')
  }

  /** A node makes, reports on and ends mirror pods and pods of its own: whose a pod is is looked at when that is admitted. */
  #pod(node: string, wish: NodeWish): NodeOpinion | undefined {
    const { verb, subresource, name } = wish
    if (subresource === 'status') return updating.has(verb) ? allowed : silent
    if (subresource === 'eviction') return verb === 'create' ? allowed : silent
    if (subresource !== '') return silent
    if (verb === 'create' || verb === 'delete') return allowed
    if (verb === 'get') return this.#named('pods', node, wish)
    if (verb !== 'list' && verb !== 'watch') return silent
    if (isOfNode(wish, node)) return allowed
    if (name !== '') return this.#named('pods', node, wish)
    return no('can only list/watch pods with spec.nodeName field selector')
  }

  #certificateRequest(node: string, wish: NodeWish): NodeOpinion | undefined {
    const { verb, subresource } = wish
    if (subresource !== '') return no('nodes may not access the status subresource of PodCertificateRequests')
    if (verb === 'create') return allowed
    if (verb === 'get') return this.#named('podcertificaterequests', node, wish)
    if (verb !== 'list' && verb !== 'watch') return no(`nodes may not ${verb} podcertificaterequests`)
    if (isOfNode(wish, node)) return allowed
    return no('can only list/watch podcertificaterequests with nodeName field selector')
  }
}

function lease(node: string, { verb, namespace, name }: NodeWish): NodeOpinion {
  if (!owning.has(verb)) return no('can only get, create, update, patch, or delete a node lease')
  if (namespace !== leaseNamespace) return no(`can only access leases in the "${leaseNamespace}" system namespace`)
  // Of one that is created no name is known yet: it is looked at when that is admitted, as with each that follows.
  if (verb !== 'create' && name !== node)
    return no('can only access node lease with the same name as the requesting node')
  return allowed
}

function csiNode(node: string, { verb, subresource, name }: NodeWish): NodeOpinion {
  if (!owning.has(verb)) return no('can only get, create, update, patch, or delete a CSINode')
  if (subresource !== '') return no('cannot authorize CSINode subresources')
  if (verb !== 'create' && name !== node) return no('can only access CSINode with the same name as the requesting node')
  return allowed
}

/** By its name alone: a kubelet looks for its Node before it makes it. */
function ownNode(node: string, { verb, subresource, name }: NodeWish): NodeOpinion {
  if (subresource === 'status') return updating.has(verb) ? allowed : silent
  if (subresource !== '') return silent
  if (verb === 'create' || updating.has(verb)) return allowed
  if (!reading.has(verb)) return silent
  if (name === node) return allowed
  const what = name === '' ? 'all nodes' : `'${name}'`
  return no(`node '${node}' cannot read ${what}, only its own Node object`)
}

/** Whether a field selector demands the node. One that only the API server can read demands nothing. */
function isOfNode({ fields }: NodeWish, value: string): boolean {
  // Cheaper than reading it.
  if (!fields.includes('spec.nodeName=')) return false
  try {
    return parseFieldSelector(fields).has({ field: 'spec.nodeName', operator: '=', value })
  } catch {
    return false
  }
}

function no(reason: string): NodeOpinion {
  return { allowed: false, reason }
}
