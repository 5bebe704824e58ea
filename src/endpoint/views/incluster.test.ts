/** What a kubelet and a kube-proxy of this node are shown, object by object. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeItem } from '../../cache/item.ts'
import { noFields } from '../../kube/object.ts'
import { endpointsHere, slicesHere, withAuthority } from './incluster.ts'
import { ClassView, type Rewriting } from './view.ts'

const cluster = '-----BEGIN CERTIFICATE-----\nY2x1c3Rlcg==\n-----END CERTIFICATE-----\n'
const ours = '-----BEGIN CERTIFICATE-----\nb3Vycw==\n-----END CERTIFICATE-----\n'
const here = [
  { host: '169.254.77.1', port: 10005 },
  { host: 'fd00::1', port: 10006 },
]

const itemOf = (object: object, version = 7) => makeItem(Buffer.from(JSON.stringify(object)), version, noFields)

/** As it is seen: the same item, another one's content, or nothing. */
function seen(sight: Rewriting, object: { metadata: object }): 'same' | 'hidden' | Record<string, unknown> {
  const item = itemOf(object)
  const shown = new ClassView(sight).see(item)
  if (shown === undefined) return 'hidden'
  if (shown === item) return 'same'
  assert.deepEqual([shown.key, shown.version, shown.uid], [item.key, item.version, item.uid])
  return JSON.parse(shown.bytes.toString())
}

const rootCa = (data: object) => ({
  metadata: { name: 'kube-root-ca.crt', namespace: 'shop', uid: 'u', resourceVersion: '7', labels: { a: 'b' } },
  data,
})

test('kube-root-ca.crt has our authority behind the cluster’s, and nothing else of it is touched', () => {
  const sight = withAuthority(ours)
  const object = rootCa({ 'ca.crt': cluster, other: '<&>' })
  assert.deepEqual(seen(sight, object), { ...object, data: { 'ca.crt': cluster + ours, other: '<&>' } })
  const cut = rootCa({ 'ca.crt': cluster.trimEnd() })
  assert.deepEqual(seen(sight, cut), rootCa({ 'ca.crt': cluster + ours }))
})

test('what holds it already, holds none, or is another ConfigMap is the very same item', () => {
  const sight = withAuthority(ours)
  assert.equal(seen(sight, rootCa({ 'ca.crt': cluster + ours })), 'same')
  assert.equal(seen(sight, rootCa({})), 'same')
  assert.equal(seen(sight, { metadata: rootCa({}).metadata }), 'same')
  assert.equal(
    seen(sight, { metadata: { name: 'settings', namespace: 'shop' }, ...{ data: { 'ca.crt': cluster } } }),
    'same',
  )
  assert.equal(seen(withAuthority(''), rootCa({ 'ca.crt': cluster })), 'same')
})

const slice = (more: object = {}) => ({
  metadata: {
    ...{ name: 'kubernetes', namespace: 'default', uid: 'u', resourceVersion: '7' },
    labels: { 'kubernetes.io/service-name': 'kubernetes' },
  },
  endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true }, nodeName: 'cp' }],
  addressType: 'IPv4',
  ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  ...more,
})

test('the slices of the service have our address of their family, under the same port names', () => {
  const sight = slicesHere(here)
  assert.deepEqual(seen(sight, slice()), {
    ...slice(),
    endpoints: [{ addresses: ['169.254.77.1'], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 10005, protocol: 'TCP' }],
  })
  const six = slice({ addressType: 'IPv6' })
  assert.deepEqual(seen(sight, six), {
    ...six,
    endpoints: [{ addresses: ['fd00::1'], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 10006, protocol: 'TCP' }],
  })
})

test('a slice of another service, of another namespace or of a family that we lack is the very same item', () => {
  const sight = slicesHere(here.slice(0, 1))
  const { metadata } = slice()
  assert.equal(
    seen(sight, { ...slice(), metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'dns' } } }),
    'same',
  )
  assert.equal(seen(sight, { ...slice(), metadata: { ...metadata, labels: undefined } }), 'same')
  assert.equal(seen(sight, { ...slice(), metadata: { ...metadata, namespace: 'shop' } }), 'same')
  assert.equal(seen(sight, slice({ addressType: 'IPv6' })), 'same')
  assert.equal(seen(slicesHere([]), slice()), 'same')
})

test('the Endpoints of the service have our address, too', () => {
  const metadata = { name: 'kubernetes', namespace: 'default', uid: 'u', resourceVersion: '7' }
  const endpoints = {
    metadata,
    subsets: [
      {
        addresses: [{ ip: '192.0.2.1' }, { ip: '192.0.2.2' }],
        ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
      },
    ],
  }
  assert.deepEqual(seen(endpointsHere(here), endpoints), {
    metadata,
    subsets: [{ addresses: [{ ip: '169.254.77.1' }], ports: [{ name: 'https', port: 10005, protocol: 'TCP' }] }],
  })
  assert.equal(seen(endpointsHere(here.slice(1)), endpoints), 'same')
  assert.equal(seen(endpointsHere(here), { metadata }), 'same')
  assert.equal(seen(endpointsHere(here), { ...endpoints, metadata: { ...metadata, name: 'other' } }), 'same')
})
