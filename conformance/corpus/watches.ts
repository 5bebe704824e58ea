/** WATCH: where it begins, what it says of each change, how selectors and forms change that, and how it ends. */
import { type Case, del, type Group, get, patch, post, put, watch } from '../corpus.ts'
import { configMap, core, node } from './fixtures.ts'

const maps = core('watches', 'configmaps')
const legacy = '/api/v1/watch/namespaces/watches/configmaps'

let serial = 0
/** A few writes that every kind of watch is shown, each time to another object. */
function life(): { name: string; writes: Case[] } {
  const name = `w${++serial}`
  const writes = [
    post(`create ${name}`, maps, configMap(name, { k: '1' }, { labels: { on: 'yes' } })),
    put(`update ${name}`, `${maps}/${name}`, configMap(name, { k: '2' }, { labels: { on: 'yes' } })),
    patch('merge', `unlabel ${name}`, `${maps}/${name}`, { metadata: { labels: { on: null } } }),
    patch('merge', `change ${name} unlabelled`, `${maps}/${name}`, { data: { k: '3' } }),
    patch('merge', `label ${name} again`, `${maps}/${name}`, { metadata: { labels: { on: 'yes' } } }),
    del(`delete ${name}`, `${maps}/${name}`),
  ]
  return { name, writes }
}

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const initial = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
const since = 'watch=true&resourceVersion=<rv>'

const lived = (name: string, query: string, frames: number, headers: Record<string, string> = {}): Case =>
  watch(name, `${maps}?${query}`, life().writes, { frames, headers })

/** Ends by itself: what is refused, or says all it has at once. */
const short = (name: string, path: string, headers: Record<string, string> = {}): Case =>
  watch(name, path, [], { headers })

export const watches: Group = {
  name: 'watches',
  cases: [
    post('make one', maps, configMap('one', { k: 'v' }, { labels: { on: 'yes' } })),
    post('make two', maps, configMap('two', { k: 'v' })),
    get('list to start from', maps, {}, { take: { rv: 'metadata.resourceVersion' } }),
    lived('from a version', since, 6),
    lived('from a version by label', `${since}&labelSelector=on%3Dyes&fieldSelector=metadata.name%3Dw2`, 5),
    ...['', '&labelSelector=on%3Dyes', '&fieldSelector=metadata.name%3Done'].map((selector) =>
      short(`state of now${selector}`, `${maps}?watch=true&timeoutSeconds=2${selector}`),
    ),
    short('from version 0', `${maps}?watch=true&resourceVersion=0&timeoutSeconds=2`),
    short('history replayed', `${maps}?${since}&timeoutSeconds=2`),
    short('history replayed by label', `${maps}?${since}&timeoutSeconds=2&labelSelector=on`),
    short('history replayed by name', `${maps}?${since}&timeoutSeconds=2&fieldSelector=metadata.name%3Dw1`),
    short(
      'history replayed as PartialObjectMetadata',
      `${maps}?${since}&timeoutSeconds=2&fieldSelector=metadata.name%3Dw1`,
      { accept: partial },
    ),
    short('history replayed as Table', `${maps}?${since}&timeoutSeconds=2&fieldSelector=metadata.name%3Dw1`, {
      accept: table,
    }),
    short('Table without the object', `${maps}?watch=true&timeoutSeconds=2&includeObject=None`, { accept: table }),
    short('Table with the object', `${maps}?watch=true&timeoutSeconds=2&includeObject=Object`, { accept: table }),
    short('as yaml', `${maps}?watch=true&timeoutSeconds=2`, { accept: 'application/yaml' }),
    short('pretty', `${maps}?watch=true&timeoutSeconds=2&pretty=true`),
    short('as stream=watch', `${maps}?watch=true&timeoutSeconds=2`, { accept: 'application/json;stream=watch' }),
    short('as text', `${maps}?watch=true&timeoutSeconds=2`, { accept: 'text/plain' }),
    short('initial events', `${maps}?${initial}&timeoutSeconds=2`),
    short('initial events by label', `${maps}?${initial}&timeoutSeconds=2&labelSelector=on%3Dyes`),
    short('initial events of nothing', `${maps}?${initial}&timeoutSeconds=2&labelSelector=on%3Dnever`),
    short('initial events from version 0', `${maps}?${initial}&timeoutSeconds=2&resourceVersion=0`),
    short('initial events from a version', `${maps}?${initial}&timeoutSeconds=2&resourceVersion=<rv>`),
    short('initial events as Table', `${maps}?${initial}&timeoutSeconds=2`, { accept: table }),
    short('initial events as PartialObjectMetadata', `${maps}?${initial}&timeoutSeconds=2`, { accept: partial }),
    short(
      'initial events without bookmarks',
      `${maps}?${initial.replace('&allowWatchBookmarks=true', '')}&timeoutSeconds=2`,
    ),
    lived('initial events, then changes', initial, 9),
    lived('initial events by label, then changes', `${initial}&labelSelector=on%3Dyes`, 7),
    short('initial events without match', `${maps}?watch=true&sendInitialEvents=true`),
    short('initial events with Exact', `${maps}?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact`),
    short(
      'no initial events with match',
      `${maps}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=2`,
    ),
    short('no initial events without match', `${maps}?watch=true&sendInitialEvents=false`),
    short('match without initial events', `${maps}?watch=true&resourceVersionMatch=NotOlderThan`),
    short('match Exact', `${maps}?watch=true&resourceVersionMatch=Exact&resourceVersion=<rv>`),
    short('limit on a watch', `${maps}?watch=true&limit=1&timeoutSeconds=2`),
    short('continue on a watch', `${maps}?watch=true&continue=abc&timeoutSeconds=2`),
    short(
      'sendInitialEvents no boolean',
      `${maps}?watch=true&sendInitialEvents=perhaps&resourceVersionMatch=NotOlderThan&timeoutSeconds=1`,
    ),
    short('bad version', `${maps}?watch=true&resourceVersion=abc`),
    short('negative version', `${maps}?watch=true&resourceVersion=-5`),
    short('bad label selector', `${maps}?watch=true&labelSelector=a%3D%3D%3Db`),
    short('bad field selector', `${maps}?watch=true&fieldSelector=data.k%3Dv`),
    short('timeoutSeconds no number', `${maps}?watch=true&timeoutSeconds=soon`),
    short('version far ahead', `${maps}?watch=true&resourceVersion=99999999&timeoutSeconds=2`),
    short('initial events from far ahead', `${maps}?${initial}&resourceVersion=99999999&timeoutSeconds=2`),
    short('version 1', `${maps}?watch=true&resourceVersion=1&timeoutSeconds=2`),
    short('watch=1', `${maps}?watch=1&timeoutSeconds=1`),
    short('watch empty', `${maps}?watch=&timeoutSeconds=1`),
    short('watch=yes', `${maps}?watch=yes&timeoutSeconds=1`),
    short('in a namespace that is not there', `${core('nope', 'configmaps')}?watch=true&timeoutSeconds=1`),
    short(
      'bookmarks at the end',
      `${maps}?watch=true&allowWatchBookmarks=true&timeoutSeconds=4&labelSelector=on%3Dyes`,
    ),
    short('legacy collection', `${legacy}?timeoutSeconds=2`),
    short('legacy object', `${legacy}/one?timeoutSeconds=2`),
    short('legacy object that is not there', `${legacy}/nope?timeoutSeconds=1`),
    short('legacy across namespaces', '/api/v1/watch/configmaps?timeoutSeconds=2&labelSelector=on'),
    short('legacy from a version', `${legacy}?resourceVersion=<rv>&timeoutSeconds=2&fieldSelector=metadata.name%3Dw2`),
    short('legacy cluster-scoped', '/api/v1/watch/nodes?timeoutSeconds=1&labelSelector=watches'),
    short('legacy in a group', '/apis/apps/v1/watch/namespaces/watches/deployments?timeoutSeconds=1'),
    short('legacy of an unknown resource', '/api/v1/watch/nonsense'),
    short('one object by watch=true', `${maps}/one?watch=true&timeoutSeconds=2`),
    short(
      'one object that another selector excludes',
      `${maps}/one?watch=true&fieldSelector=metadata.name%3Dtwo&timeoutSeconds=1`,
    ),
    watch(
      'cluster-scoped',
      `/api/v1/nodes?watch=true&labelSelector=watches`,
      [
        post('create node', '/api/v1/nodes', node('watches-node', { watches: 'yes' })),
        patch('merge', 'patch node', '/api/v1/nodes/watches-node', { metadata: { annotations: { a: 'b' } } }),
        del('delete node', '/api/v1/nodes/watches-node'),
      ],
      { frames: 3 },
    ),
    watch(
      'across namespaces',
      '/api/v1/configmaps?watch=true&labelSelector=cross',
      [
        post('create in this one', maps, configMap('cross', { k: 'v' }, { labels: { cross: 'a' } })),
        post(
          'create in default',
          core('default', 'configmaps'),
          configMap('cross', { k: 'v' }, { labels: { cross: 'b' } }),
        ),
        del('delete in default', `${core('default', 'configmaps')}/cross`),
        del('delete in this one', `${maps}/cross`),
      ],
      { frames: 4 },
    ),
    watch(
      'a no-op is no event',
      `${maps}?watch=true&labelSelector=noop`,
      [
        post('create noop', maps, configMap('noop', { k: 'v' }, { labels: { noop: 'x' } })),
        patch('merge', 'patch to the same', `${maps}/noop`, { data: { k: 'v' } }),
        patch('merge', 'patch to another', `${maps}/noop`, { data: { k: 'w' } }),
      ],
      { frames: 2 },
    ),
    watch(
      'a finalizer makes MODIFIED, then DELETED',
      `${maps}?watch=true&labelSelector=final`,
      [
        post(
          'create with finalizer',
          maps,
          configMap('final', { k: 'v' }, { labels: { final: 'x' }, finalizers: ['example.com/hold'] }),
        ),
        del('delete held', `${maps}/final`),
        patch('merge', 'release', `${maps}/final`, { metadata: { finalizers: null } }),
      ],
      { frames: 3 },
    ),
    watch(
      'field selector transitions',
      `${core('watches', 'events')}?watch=true&fieldSelector=type%3DWarning`,
      [
        post('create event', core('watches', 'events'), {
          metadata: { name: 'e' },
          involvedObject: { kind: 'Pod', namespace: 'watches', name: 'x' },
          type: 'Normal',
          firstTimestamp: '2001-02-03T04:05:06Z',
          lastTimestamp: '2001-02-03T04:05:06Z',
        }),
        patch('merge', 'event becomes a warning', `${core('watches', 'events')}/e`, { type: 'Warning' }),
        patch('merge', 'event is counted', `${core('watches', 'events')}/e`, { count: 2 }),
        patch('merge', 'event calms down', `${core('watches', 'events')}/e`, { type: 'Normal' }),
      ],
      { frames: 3 },
    ),
    watch(
      'deletecollection',
      `${maps}?watch=true&labelSelector=many`,
      [
        ...['m1', 'm2', 'm3'].map((name) =>
          post(`create ${name}`, maps, configMap(name, { k: 'v' }, { labels: { many: 'x' } })),
        ),
        del('delete the collection', `${maps}?labelSelector=many`),
      ],
      { frames: 6 },
    ),
  ],
}
