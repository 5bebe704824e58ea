/** What Go prints as null when nothing was said about it, sent as null or left out. */
import { type Case, type Group, get, patch, post, put } from '../corpus.ts'

const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/nulls/roles'
const clusterRoles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'
const csiNodes = '/apis/storage.k8s.io/v1/csinodes'
const slices = '/apis/discovery.k8s.io/v1/namespaces/nulls/endpointslices'
const status = '/api/v1/namespaces/nulls/status'
const claims = '/api/v1/namespaces/nulls/persistentvolumeclaims'

const condition = (type: string, more: object = {}) => ({ status: { conditions: [{ type, status: 'True', ...more }] } })

const inBothWays = (name: string, path: string, type: string): readonly Case[] => [
  patch('strategic', `${name}, strategic`, path, condition(type)),
  patch('strategic', `${name}, strategic with nulls`, path, condition(type, { lastTransitionTime: null, reason: 'a' })),
  patch('merge', `${name}, merge`, path, condition(type, { reason: 'b' })),
  patch('merge', `${name}, merge with nulls`, path, condition(type, { lastTransitionTime: null, lastProbeTime: null })),
]

export const nulls: Group = {
  name: 'nulls',
  cases: [
    post('role', roles, { metadata: { name: 'a' } }, { take: { rv: 'metadata.resourceVersion' } }),
    get('role read', `${roles}/a`),
    put('role with null', `${roles}/a`, { metadata: { name: 'a', resourceVersion: '<rv>' }, rules: null }),
    patch('merge', 'role patched to null', `${roles}/a`, { rules: null }),
    patch('merge', 'role patched', `${roles}/a`, { metadata: { labels: { a: 'b' } } }),
    post('cluster role', clusterRoles, { metadata: { name: 'nulls' } }),
    post('csi node', csiNodes, { metadata: { name: 'nulls' }, spec: { drivers: [{ name: 'd', nodeID: 'x' }] } }),
    patch('merge', 'csi node patched', `${csiNodes}/nulls`, { metadata: { labels: { a: 'b' } } }),
    post('endpoint slice', slices, { metadata: { name: 'a' }, addressType: 'IPv4' }),
    post('endpoint slice with nulls', slices, {
      metadata: { name: 'b' },
      addressType: 'IPv4',
      endpoints: null,
      ports: null,
    }),
    ...inBothWays('condition of a namespace', status, 'Checked'),
    post('claim', claims, {
      metadata: { name: 'a' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeMode: 'Filesystem' },
    }),
    ...inBothWays('condition of a claim', `${claims}/a/status`, 'Resizing'),
  ],
}
