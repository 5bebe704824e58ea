/** Replacing: preconditions, what may not change, no-op writes, generations, immutable things. */
import { type Group, get, post, put } from '../corpus.ts'
import { apps, configMap, core, deployment, lease, service } from './fixtures.ts'

const maps = core('updates', 'configmaps')
const deployments = apps('updates', 'deployments')
const leases = '/apis/coordination.k8s.io/v1/namespaces/updates/leases'
const taken = { take: { rv: 'metadata.resourceVersion', uid: 'metadata.uid' } }
const held = (name: string, metadata: object) => ({ ...configMap(name, { k: 'x' }), metadata: { name, ...metadata } })

export const updates: Group = {
  name: 'updates',
  cases: [
    post('make a', maps, configMap('a', { k: '1' }, { labels: { l: '1' }, annotations: { n: '1' } }), {
      take: { old: 'metadata.resourceVersion' },
    }),
    put('without a version', `${maps}/a`, configMap('a', { k: '2' }), taken),
    put('with the right version', `${maps}/a`, held('a', { resourceVersion: '<rv>' }), taken),
    put('with an old version', `${maps}/a`, held('a', { resourceVersion: '<old>' })),
    put('with a future version', `${maps}/a`, held('a', { resourceVersion: '999999999' })),
    put('with version 0', `${maps}/a`, held('a', { resourceVersion: '0' })),
    put('with an empty version', `${maps}/a`, held('a', { resourceVersion: '' })),
    put('with the right uid', `${maps}/a`, held('a', { uid: '<uid>' })),
    put('with another uid', `${maps}/a`, held('a', { uid: '11111111-2222-3333-4444-555555555555' })),
    put('the same again changes nothing', `${maps}/a`, held('a', {})),
    get('version after a no-op', `${maps}/a`),
    put('creationTimestamp is kept', `${maps}/a`, held('a', { creationTimestamp: '2001-02-03T04:05:06Z' })),
    put('creationTimestamp null', `${maps}/a`, held('a', { creationTimestamp: null })),
    put('deletionTimestamp is not taken', `${maps}/a`, held('a', { deletionTimestamp: '2001-02-03T04:05:06Z' })),
    put('generation on what has none', `${maps}/a`, held('a', { generation: 5 })),
    put('generateName changes', `${maps}/a`, held('a', { generateName: 'x-' })),
    put('labels and annotations', `${maps}/a`, held('a', { labels: { z: 'y' }, annotations: { q: 'r' } })),
    put('invalid labels', `${maps}/a`, held('a', { labels: { z: '-' } })),
    put('finalizers added', `${maps}/a`, held('a', { finalizers: ['example.com/hold'] })),
    put('finalizers removed', `${maps}/a`, held('a', {})),
    put('dryRun', `${maps}/a?dryRun=All`, configMap('a', { k: 'dry' })),
    get('after dryRun', `${maps}/a`),
    put('dryRun with an old version', `${maps}/a?dryRun=All`, held('a', { resourceVersion: '<old>' })),
    put('unknown field, Strict', `${maps}/a?fieldValidation=Strict`, { ...configMap('a', { k: '3' }), dat: {} }),
    put('unknown field, Warn', `${maps}/a?fieldValidation=Warn`, { ...configMap('a', { k: '3' }), dat: {} }),
    put('as Table', `${maps}/a`, configMap('a', { k: '4' }), {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    }),
    put('pretty', `${maps}/a?pretty=true`, configMap('a', { k: '5' })),
    put('no kind, no apiVersion', `${maps}/a`, { metadata: { name: 'a' }, data: { k: '6' } }),
    post('make deployment', deployments, deployment('d', 1), taken),
    put('spec raises the generation', `${deployments}/d`, deployment('d', 2)),
    put('the same spec does not', `${deployments}/d`, deployment('d', 2)),
    put('a label does not', `${deployments}/d`, deployment('d', 2, { labels: { a: 'b' } })),
    put('an annotation does', `${deployments}/d`, deployment('d', 2, { annotations: { a: 'b' } })),
    put('status is ignored', `${deployments}/d`, { ...deployment('d', 2), status: { replicas: 9 } }),
    put('generation is not taken', `${deployments}/d`, deployment('d', 3, { generation: 42 })),
    put('a wrong type', `${deployments}/d`, { ...deployment('d'), spec: { ...deployment('d').spec, paused: 'yes' } }),
    post('make lease', leases, lease('l', 'me'), taken),
    put('lease without a version', `${leases}/l`, lease('l', 'you')),
    put('lease created by PUT', `${leases}/new`, lease('new', 'me')),
    put('lease created by PUT with a version', `${leases}/new2`, {
      ...lease('new2', 'me'),
      metadata: { name: 'new2', resourceVersion: '5' },
    }),
    put('lease created by PUT with a uid', `${leases}/new3`, {
      ...lease('new3', 'me'),
      metadata: { name: 'new3', uid: '11111111-2222-3333-4444-555555555555' },
    }),
    put('lease created by PUT with a bad name', `${leases}/New_4`, lease('New_4', 'me')),
    put('lease created by PUT, dryRun', `${leases}/new5?dryRun=All`, lease('new5', 'me')),
    get('lease not created by dryRun', `${leases}/new5`),
    put('config map is not created by PUT', `${maps}/new`, configMap('new')),
    post('make service', core('updates', 'services'), service('web'), taken),
    put('service without a version', `${core('updates', 'services')}/web`, service('web', { labels: { a: 'b' } })),
    put('namespace labels', '/api/v1/namespaces/updates', { metadata: { name: 'updates', labels: { mine: 'yes' } } }),
    get('namespace keeps its own label', '/api/v1/namespaces/updates'),
  ],
}
