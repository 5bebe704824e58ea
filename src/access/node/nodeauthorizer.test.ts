/** What nodes may do: a row for each rule, in the words of kube-apiserver (conformance asks the real one). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Asking, makeQuestion } from '../question.ts'
import { NodeGraph } from './graph.ts'
import { NodeAuthorizer } from './nodeauthorizer.ts'

const n1 = { name: 'system:node:n1', uid: '', groups: ['system:nodes', 'system:authenticated'] }
const bytes = (object: object) => Buffer.from(JSON.stringify(object))

function world(): NodeGraph {
  const graph = new NodeGraph()
  const pod = (name: string, spec: object, more: object = {}) =>
    graph.put('pods', bytes({ metadata: { name, namespace: 'a', ...more }, spec }))
  pod('web', {
    nodeName: 'n1',
    serviceAccountName: 'robot',
    volumes: [
      { name: 's', secret: { secretName: 'key' } },
      { name: 'c', configMap: { name: 'settings' } },
      { name: 'd', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'e', ephemeral: {} },
    ],
    resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }],
  })
  pod('other', { nodeName: 'n2', volumes: [{ name: 's', secret: { secretName: 'others' } }] })
  pod('unbound', { volumes: [{ name: 's', secret: { secretName: 'early' } }] })
  const mirrored = { annotations: { 'kubernetes.io/config.mirror': '' } }
  pod('static', { nodeName: 'n1', volumes: [{ name: 'c', configMap: { name: 'grabbed' } }] }, mirrored)
  const csi = { driver: 'd', nodeStageSecretRef: { name: 'stage', namespace: 'b' } }
  const secret = { controllerPublishSecretRef: { name: 'controller', namespace: 'b' } }
  const claimRef = { namespace: 'a', name: 'data' }
  graph.put('persistentvolumes', bytes({ metadata: { name: 'pv' }, spec: { csi: { ...csi, ...secret }, claimRef } }))
  graph.put('persistentvolumes', bytes({ metadata: { name: 'free' }, spec: { csi } }))
  graph.put('volumeattachments', bytes({ metadata: { name: 'va' }, spec: { nodeName: 'n1' } }))
  graph.put('resourceslices', bytes({ metadata: { name: 'slice' }, spec: { nodeName: 'n1' } }))
  graph.put('resourceslices', bytes({ metadata: { name: 'shared' }, spec: { allNodes: true } }))
  return graph
}

const unrelated = "no relationship found between node 'n1' and this object"
const inA = { namespace: 'a' }
const secrets = { ...inA, resource: 'secrets' }
const leases = { group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease' }
const csinodes = { group: 'storage.k8s.io', resource: 'csinodes' }
const slices = { group: 'resource.k8s.io', resource: 'resourceslices' }
const requests = { ...inA, group: 'certificates.k8s.io', resource: 'podcertificaterequests' }

/** Undefined: allowed. */
const rows: readonly (readonly [asking: Asking, reason: string | undefined])[] = [
  [{ verb: 'get', ...secrets, name: 'key' }, undefined],
  [{ verb: 'watch', ...secrets, name: 'key', fields: 'metadata.name=key' }, undefined],
  [{ verb: 'get', ...secrets, name: 'others' }, unrelated],
  [{ verb: 'get', ...secrets, name: 'early' }, unrelated],
  [{ verb: 'get', ...secrets, name: 'unheard-of' }, unrelated],
  [{ verb: 'get', ...secrets, namespace: 'b', name: 'key' }, unrelated],
  [{ verb: 'get', ...secrets, namespace: 'b', name: 'stage' }, undefined],
  [{ verb: 'get', ...secrets, namespace: 'b', name: 'controller' }, unrelated],
  [{ verb: 'list', ...secrets }, 'No Object name found'],
  [{ verb: 'update', ...secrets, name: 'key' }, 'can only read resources of this type'],
  [{ verb: 'get', ...secrets, name: 'key', subresource: 'x' }, 'cannot read subresource'],
  [{ verb: 'get', resource: 'secrets', name: 'a/key' }, 'can only read namespaced object of this type'],
  [{ verb: 'list', ...inA, resource: 'configmaps', name: 'settings' }, undefined],
  [{ verb: 'get', ...inA, resource: 'configmaps', name: 'grabbed' }, unrelated],
  [{ verb: 'get', ...inA, resource: 'persistentvolumeclaims', name: 'data' }, undefined],
  [{ verb: 'get', ...inA, resource: 'persistentvolumeclaims', name: 'web-e' }, undefined],
  [{ verb: 'patch', ...inA, resource: 'persistentvolumeclaims', subresource: 'status', name: 'data' }, undefined],
  [
    { verb: 'get', ...inA, resource: 'persistentvolumeclaims', subresource: 'status', name: 'data' },
    'can only get/update/patch this type',
  ],
  [{ verb: 'list', ...inA, resource: 'persistentvolumeclaims' }, 'can only get individual resources of this type'],
  [{ verb: 'get', resource: 'persistentvolumes', name: 'pv' }, undefined],
  [{ verb: 'get', resource: 'persistentvolumes', name: 'free' }, unrelated],
  [{ verb: 'get', resource: 'persistentvolumes', name: 'pv', subresource: 'status' }, 'cannot get subresource'],
  [{ verb: 'get', ...inA, group: 'resource.k8s.io', resource: 'resourceclaims', name: 'gpu' }, undefined],
  [{ verb: 'get', group: 'storage.k8s.io', resource: 'volumeattachments', name: 'va' }, undefined],
  [{ verb: 'get', group: 'storage.k8s.io', resource: 'volumeattachments', name: 'vb' }, unrelated],
  [{ verb: 'get', ...inA, resource: 'serviceaccounts', name: 'robot' }, undefined],
  [{ verb: 'create', ...inA, resource: 'serviceaccounts', subresource: 'token', name: 'robot' }, undefined],
  [{ verb: 'create', ...inA, resource: 'serviceaccounts', subresource: 'token', name: 'root' }, unrelated],
  [
    { verb: 'create', ...inA, resource: 'serviceaccounts', subresource: 'token' },
    'can only create tokens for individual service accounts',
  ],
  [
    { verb: 'create', ...inA, resource: 'serviceaccounts', name: 'robot' },
    'can only create token subresource of serviceaccount',
  ],
  [{ verb: 'update', ...leases, name: 'n1' }, undefined],
  [{ verb: 'create', ...leases }, undefined],
  [{ verb: 'get', ...leases, name: 'n2' }, 'can only access node lease with the same name as the requesting node'],
  [
    { verb: 'get', ...leases, namespace: 'a', name: 'n1' },
    'can only access leases in the "kube-node-lease" system namespace',
  ],
  [{ verb: 'list', ...leases }, 'can only get, create, update, patch, or delete a node lease'],
  [{ verb: 'patch', ...csinodes, name: 'n1' }, undefined],
  [{ verb: 'get', ...csinodes, name: 'n2' }, 'can only access CSINode with the same name as the requesting node'],
  [{ verb: 'watch', ...csinodes }, 'can only get, create, update, patch, or delete a CSINode'],
  [{ verb: 'get', ...csinodes, name: 'n1', subresource: 'x' }, 'cannot authorize CSINode subresources'],
  [{ verb: 'create', ...slices }, undefined],
  [{ verb: 'delete', ...slices, name: 'slice' }, undefined],
  [{ verb: 'get', ...slices, name: 'shared' }, unrelated],
  [{ verb: 'deletecollection', ...slices, fields: 'spec.nodeName=n1' }, undefined],
  [
    { verb: 'list', ...slices, fields: 'spec.nodeName=n2' },
    'can only list/watch/deletecollection resourceslices with nodeName field selector',
  ],
  [{ verb: 'get', ...slices, name: 'slice', subresource: 'x' }, 'cannot authorize ResourceSlice subresources'],
  [
    { verb: 'escalate', ...slices },
    'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
  ],
  [{ verb: 'get', resource: 'nodes', name: 'n1' }, undefined],
  [{ verb: 'update', resource: 'nodes', name: 'n2' }, undefined],
  [{ verb: 'patch', resource: 'nodes', subresource: 'status', name: 'n1' }, undefined],
  [{ verb: 'get', resource: 'nodes', subresource: 'proxy', name: 'n1' }, ''],
  [{ verb: 'delete', resource: 'nodes', name: 'n1' }, ''],
  [{ verb: 'list', resource: 'nodes' }, "node 'n1' cannot read all nodes, only its own Node object"],
  [{ verb: 'get', resource: 'nodes', name: 'n2' }, "node 'n1' cannot read 'n2', only its own Node object"],
  [{ verb: 'list', resource: 'pods', fields: 'spec.nodeName=n1,status.phase!=Failed' }, undefined],
  [
    { verb: 'list', resource: 'pods', fields: 'spec.nodeName!=n1' },
    'can only list/watch pods with spec.nodeName field selector',
  ],
  [
    { verb: 'watch', resource: 'pods', fields: 'spec.nodeName=n1\\' },
    'can only list/watch pods with spec.nodeName field selector',
  ],
  [{ verb: 'watch', ...inA, resource: 'pods', name: 'web', fields: 'metadata.name=web' }, undefined],
  [{ verb: 'watch', ...inA, resource: 'pods', name: 'other', fields: 'metadata.name=other' }, unrelated],
  [{ verb: 'get', ...inA, resource: 'pods', name: 'static' }, undefined],
  [{ verb: 'get', ...inA, resource: 'pods', name: 'other' }, unrelated],
  [{ verb: 'get', resource: 'pods', name: 'a/web' }, unrelated],
  [{ verb: 'create', ...inA, resource: 'pods', subresource: 'eviction', name: 'web' }, undefined],
  [{ verb: 'get', ...inA, resource: 'pods', subresource: 'log', name: 'web' }, ''],
  [{ verb: 'patch', ...inA, resource: 'pods', subresource: 'status', name: 'web' }, undefined],
  [{ verb: 'get', ...inA, resource: 'pods', subresource: 'status', name: 'web' }, ''],
  [{ verb: 'deletecollection', ...inA, resource: 'pods' }, ''],
  [{ verb: 'list', resource: 'services' }, undefined],
  [{ verb: 'get', ...inA, resource: 'services', subresource: 'proxy', name: 'web' }, ''],
  [{ verb: 'create', group: 'authorization.k8s.io', resource: 'subjectaccessreviews' }, undefined],
  [{ verb: 'get', resource: 'namespaces', name: 'a' }, ''],
  [{ verb: '*', group: '*', resource: '*' }, ''],
  [{ verb: 'get', path: '/metrics' }, ''],
  [{ verb: 'list', group: 'certificates.k8s.io', resource: 'clustertrustbundles' }, ''],
  [{ verb: 'create', ...requests }, ''],
]

for (const [asking, reason] of rows) {
  const { verb, group = '', resource = '', subresource = '', name = '', fields = '', path = '' } = asking
  const what = [verb, group, resource, subresource, name, fields, path].filter((part) => part !== '').join(' ')
  test(`${what}: ${reason === undefined ? 'allowed' : reason || 'no opinion'}`, () => {
    const opinion = new NodeAuthorizer(world()).judge(n1, makeQuestion(asking))
    assert.deepEqual(opinion, { allowed: reason === undefined, reason: reason ?? '' })
  })
}

test('what an operator switches on is allowed where it is on', () => {
  const graph = world()
  graph.put('podcertificaterequests', bytes({ metadata: { name: 'r', namespace: 'a' }, spec: { nodeName: 'n1' } }))
  const authorizer = new NodeAuthorizer(graph, { clusterTrustBundles: true, podCertificateRequests: true })
  const told = (asking: Asking) => authorizer.judge(n1, makeQuestion(asking))
  const yes = { allowed: true, reason: '' }
  assert.deepEqual(told({ verb: 'list', group: 'certificates.k8s.io', resource: 'clustertrustbundles' }), yes)
  assert.deepEqual(told({ verb: 'create', ...requests }), yes)
  assert.deepEqual(told({ verb: 'get', ...requests, name: 'r' }), yes)
  assert.equal(told({ verb: 'get', ...requests, name: 'q' })?.reason, unrelated)
  assert.deepEqual(told({ verb: 'watch', ...requests, fields: 'spec.nodeName=n1' }), yes)
  assert.match(told({ verb: 'list', ...requests })?.reason ?? '', /^can only list.watch podcertificaterequests/)
  assert.equal(told({ verb: 'delete', ...requests, name: 'r' })?.reason, 'nodes may not delete podcertificaterequests')
  assert.match(
    told({ verb: 'get', ...requests, name: 'r', subresource: 'status' })?.reason ?? '',
    /^nodes may not access/,
  )
})

test('a node is a user of that name in the group of nodes, and nothing else', () => {
  const question = makeQuestion({ verb: 'list', resource: 'services' })
  const told = (name: string, groups: string[]) =>
    new NodeAuthorizer(world()).judge({ name, uid: '', groups }, question)
  assert.deepEqual(told('system:node:n9', ['system:nodes']), { allowed: true, reason: '' })
  for (const [name, groups] of [
    ['system:node:n1', ['system:authenticated']],
    ['n1', ['system:nodes']],
    ['system:serviceaccount:a:robot', ['system:nodes']],
  ] as const) {
    assert.deepEqual(told(name, [...groups]), { allowed: false, reason: '' }, name)
  }
  const reason = 'unknown node for user "system:node:"'
  assert.deepEqual(told('system:node:', ['system:nodes']), { allowed: false, reason })
})

test('where it is not known what leads to a node there is no answer, but for what needs none', () => {
  const authorizer = new NodeAuthorizer({ leads: () => undefined })
  const told = (asking: Asking) => authorizer.judge(n1, makeQuestion(asking))
  assert.equal(told({ verb: 'get', ...secrets, name: 'key' }), undefined)
  assert.equal(
    told({ verb: 'create', ...inA, resource: 'serviceaccounts', subresource: 'token', name: 'r' }),
    undefined,
  )
  assert.equal(told({ verb: 'list', ...secrets })?.reason, 'No Object name found')
  assert.equal(told({ verb: 'get', resource: 'nodes', name: 'n1' })?.allowed, true)
})
