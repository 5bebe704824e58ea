/** Deleting one and many: preconditions, grace, propagation, finalizers, dry runs. */
import { type Case, del, type Group, get, patch, post } from '../corpus.ts'
import { apps, configMap, core, deployment, job, pod, replicationController, service } from './fixtures.ts'

const maps = core('deletes', 'configmaps')
const pods = core('deletes', 'pods')
const deployments = apps('deletes', 'deployments')
let serial = 0
/** One object each, deleted in one way. */
const once = (name: string, query: string, body?: unknown): Case[] => {
  const made = `m${++serial}`
  return [
    post(`make for ${name}`, maps, configMap(made, { k: 'v' }, { labels: { once: 'x' } }), {
      take: { rv: 'metadata.resourceVersion', uid: 'metadata.uid' },
    }),
    del(name, `${maps}/${made}${query}`, body),
    get(`after ${name}`, `${maps}/${made}`),
  ]
}
const options = (fields: object) => ({ kind: 'DeleteOptions', apiVersion: 'v1', ...fields })
const other = '11111111-2222-3333-4444-555555555555'

const held = (name: string, query: string): Case[] => [
  post(`make deployment for ${name}`, deployments, deployment(name)),
  del(`deployment ${name}`, `${deployments}/${name}${query}`),
  get(`deployment after ${name}`, `${deployments}/${name}`),
]

export const deletes: Group = {
  name: 'deletes',
  cases: [
    del('what is not there', `${maps}/nope`),
    ...once('plain', ''),
    ...once('with empty options', '', {}),
    ...once('with full options', '', options({ gracePeriodSeconds: 0, propagationPolicy: 'Background' })),
    ...once('right uid', '', options({ preconditions: { uid: '<uid>' } })),
    ...once('wrong uid', '', options({ preconditions: { uid: other } })),
    ...once('right version', '', options({ preconditions: { resourceVersion: '<rv>' } })),
    ...once('wrong version', '', options({ preconditions: { resourceVersion: '1' } })),
    ...once('dryRun in the query', '?dryRun=All'),
    ...once('dryRun in the body', '', options({ dryRun: ['All'] })),
    ...once('bad dryRun', '', options({ dryRun: ['Some'] })),
    ...once('bad propagation', '?propagationPolicy=Sideways'),
    ...once('both policies', '', options({ orphanDependents: true, propagationPolicy: 'Orphan' })),
    ...once('orphanDependents', '', options({ orphanDependents: true })),
    ...once('orphanDependents in the query', '?orphanDependents=true'),
    ...once('grace of 30', '?gracePeriodSeconds=30'),
    ...once('grace that is negative', '?gracePeriodSeconds=-5'),
    ...once('grace that is no number', '?gracePeriodSeconds=abc'),
    ...once('options of another kind', '', { kind: 'Pod', apiVersion: 'v1' }),
    ...once('options of an unknown version', '', { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1' }),
    ...once('options without kind', '', { gracePeriodSeconds: 0 }),
    ...once('half of the options', '', '{"kind":'),
    ...once('an unknown field in the options', '', options({ nonsense: 1 })),
    ...once('a wrong type in the options', '', options({ gracePeriodSeconds: 'soon' })),
    ...once('foreground', '?propagationPolicy=Foreground'),
    ...once('orphan', '?propagationPolicy=Orphan'),
    ...held('plain', ''),
    ...held('foreground', '?propagationPolicy=Foreground'),
    ...held('orphan', '?propagationPolicy=Orphan'),
    ...held('background', '?propagationPolicy=Background'),
    del('foreground once more', `${deployments}/foreground?propagationPolicy=Foreground`),
    del('foreground, now in the background', `${deployments}/foreground?propagationPolicy=Background`),
    get('after that', `${deployments}/foreground`),
    patch('merge', 'orphan finalizer taken off', `${deployments}/orphan`, { metadata: { finalizers: null } }),
    get('orphan is gone', `${deployments}/orphan`),
    post('make job', '/apis/batch/v1/namespaces/deletes/jobs', job('j')),
    del('job by default', '/apis/batch/v1/namespaces/deletes/jobs/j'),
    post('make replication controller', core('deletes', 'replicationcontrollers'), replicationController('rc')),
    del('replication controller by default', `${core('deletes', 'replicationcontrollers')}/rc`),
    post('make service', core('deletes', 'services'), service('web')),
    del('service answers with itself', `${core('deletes', 'services')}/web`),
    post('make held', maps, configMap('held', { k: 'v' }, { finalizers: ['example.com/a', 'example.com/b'] })),
    del('held', `${maps}/held`),
    del('held once more', `${maps}/held`),
    patch('merge', 'held: a label', `${maps}/held`, { metadata: { labels: { a: 'b' } } }),
    patch('merge', 'held: one more finalizer', `${maps}/held`, {
      metadata: { finalizers: ['example.com/a', 'example.com/b', 'example.com/c'] },
    }),
    patch('merge', 'held: one finalizer less', `${maps}/held`, { metadata: { finalizers: ['example.com/b'] } }),
    patch('merge', 'held: dry release', `${maps}/held?dryRun=All`, { metadata: { finalizers: [] } }),
    post('held: create again', maps, configMap('held', { k: 'w' })),
    patch('merge', 'held: release', `${maps}/held`, { metadata: { finalizers: [] } }),
    get('held is gone', `${maps}/held`),
    post('make pod', pods, pod('graceful')),
    del('pod that runs nowhere', `${pods}/graceful`),
    get('pod that ran nowhere', `${pods}/graceful`),
    post('make pod on a node', pods, pod('placed', {}, { nodeName: 'somewhere' })),
    del('pod on a node', `${pods}/placed`),
    get('pod on a node is ending', `${pods}/placed`),
    del('pod on a node, sooner', `${pods}/placed?gracePeriodSeconds=5`),
    del('pod on a node, later', `${pods}/placed?gracePeriodSeconds=50`),
    del('pod on a node, now', `${pods}/placed?gracePeriodSeconds=0`),
    get('pod on a node is gone', `${pods}/placed`),
    post('make pod with own grace', pods, pod('own', {}, { nodeName: 'somewhere', terminationGracePeriodSeconds: 7 })),
    del('pod with own grace', `${pods}/own`),
    ...['c1', 'c2', 'c3'].map((name) =>
      post(`make ${name}`, maps, configMap(name, { k: 'v' }, { labels: { many: name } })),
    ),
    post('make c4, held', maps, configMap('c4', { k: 'v' }, { labels: { many: 'c4' }, finalizers: ['example.com/a'] })),
    del('collection of nothing', `${maps}?labelSelector=many%3Dnothing`),
    del('collection, dry', `${maps}?labelSelector=many&dryRun=All`),
    get('collection after dry', `${maps}?labelSelector=many`),
    del('collection by label', `${maps}?labelSelector=many%3Dc1`),
    del('collection by field', `${maps}?fieldSelector=metadata.name%3Dc2`),
    del('collection with a bad selector', `${maps}?labelSelector=%3D%3D`),
    del('collection with an unknown field', `${maps}?fieldSelector=data.k%3Dv`),
    del('collection with a bad body', `${maps}?labelSelector=many`, '{'),
    del('collection with bad options', `${maps}?labelSelector=many`, options({ propagationPolicy: 'Sideways' })),
    del('collection', `${maps}?labelSelector=many`),
    get('what a finalizer holds', `${maps}?labelSelector=many`),
    del('collection once more', `${maps}?labelSelector=many`),
    del('collection across namespaces', '/api/v1/configmaps?labelSelector=many'),
    del('collection of pods', `${pods}?labelSelector=none`),
    del('collection as Table', `${maps}?labelSelector=none`, undefined, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    }),
    ...once('as Table', '', undefined),
    get('all that is left', `${maps}?labelSelector=once`),
  ],
}
