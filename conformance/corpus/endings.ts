/** Namespaces that end, definitions that end with all their objects, and cluster-scoped custom resources. */
import { del, established, type Group, get, patch, post, put, until } from '../corpus.ts'
import { crds, definition } from './definitions.ts'
import { configMap, core } from './fixtures.ts'

const stars = '/apis/conf.example.com/v1/stars'
const star = (name: string) => ({
  apiVersion: 'conf.example.com/v1',
  kind: 'Star',
  metadata: { name },
  spec: { any: ['thing', 1] },
})
const gone = `${core('endings', 'configmaps')}`

export const endings: Group = {
  name: 'endings',
  cases: [
    post('define', crds, definition('stars', 'Star', { scope: 'Cluster' })),
    until('defined', `${crds}/stars.conf.example.com`, established),
    until('served', stars, (answer) => answer.includes('StarList')),
    post('create', stars, star('sun')),
    get('read', `${stars}/sun`),
    get('in a namespace', '/apis/conf.example.com/v1/namespaces/endings/stars'),
    post('create in a namespace', '/apis/conf.example.com/v1/namespaces/endings/stars', star('moon')),
    get('status without the subresource', `${stars}/sun/status`),
    get('scale without the subresource', `${stars}/sun/scale`),
    post('a status is kept without the subresource', stars, { ...star('nova'), status: { bright: true } }),
    del('delete the definition', `${crds}/stars.conf.example.com`),
    until('objects are gone', `${crds}/stars.conf.example.com`, (answer) => answer.includes('NotFound')),
    get('the definition is gone', `${crds}/stars.conf.example.com`),
    until('no longer served', stars, (answer) => !answer.includes('StarList')),
    get('after the definition', stars),
    get('an object after the definition', `${stars}/sun`),
    post('create in the namespace', gone, configMap('a', { k: 'v' }, { finalizers: ['example.com/hold'] })),
    put('finalize while active', '/api/v1/namespaces/endings/finalize', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'endings' },
      spec: { finalizers: ['kubernetes', 'example.com/mine'] },
    }),
    patch('merge', 'finalizers are not patched', '/api/v1/namespaces/endings', { spec: { finalizers: [] } }),
    del('delete the namespace', '/api/v1/namespaces/endings'),
    get('the namespace is ending', '/api/v1/namespaces/endings'),
    post('create in an ending namespace', gone, configMap('late', { k: 'v' })),
    patch('merge', 'patch in an ending namespace', `${gone}/a`, { data: { k: 'w' } }),
    del('delete the namespace again', '/api/v1/namespaces/endings'),
    del('default cannot be deleted', '/api/v1/namespaces/default'),
    del('kube-system cannot be deleted', '/api/v1/namespaces/kube-system'),
    del('a namespace that is not there', '/api/v1/namespaces/nope'),
    del('all namespaces at once', '/api/v1/namespaces'),
  ],
}
