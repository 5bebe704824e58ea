import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtinFacts } from '../kube/builtin.ts'
import { fromPlain, type JsonObject, parseJson, printJson } from '../kube/json/json.ts'
import { decodeMessage, messageOf } from '../kube/protobuf/protobuf.ts'
import { nothingOf, withoutZeros, withZeros } from './zeros.ts'

const kind = (group: string, name: string) => ({ group, version: 'v1', kind: name })
const filled = (group: string, name: string, object: unknown) =>
  JSON.parse(printJson(withZeros(fromPlain(object) as JsonObject, kind(group, name))))

test('structs and required lists are there, as in Go', () => {
  assert.deepEqual(filled('apps', 'Deployment', {}), {
    metadata: {},
    spec: { selector: null, strategy: {}, template: { metadata: {}, spec: { containers: null } } },
    status: {},
  })
  assert.deepEqual(filled('', 'Service', { spec: { type: 'ClusterIP' }, metadata: { name: 'a' } }), {
    spec: { type: 'ClusterIP' },
    metadata: { name: 'a' },
    status: { loadBalancer: {} },
  })
  assert.deepEqual(filled('', 'ConfigMap', {}), { metadata: {} })
})

test('so they are inside of lists; what was sent stays', () => {
  const spec = { containers: [{ name: 'a' }, { name: 'b', resources: { limits: { cpu: 1 } } }] }
  assert.deepEqual(filled('', 'Pod', { metadata: {}, spec, status: {} }).spec.containers, [
    { name: 'a', resources: {} },
    { name: 'b', resources: { limits: { cpu: 1 } } },
  ])
})

test('what needs nothing is not copied', () => {
  const tree = parseJson('{"metadata":{"name":"a"},"data":{}}') as JsonObject
  assert.equal(withZeros(tree, kind('', 'ConfigMap')), tree)
  assert.equal(withZeros(tree, { group: 'we.dev', version: 'v1', kind: 'Widget' }), tree)
})

test('what was filled in can be taken out, and nothing else', () => {
  const source = '{"metadata":{},"spec":{"containers":[{"name":"a"},{"name":"b","resources":{}}]}}'
  const tree = parseJson(source) as JsonObject
  const full = withZeros(tree, kind('', 'Pod'))
  assert.notEqual(printJson(full), source)
  assert.equal(printJson(withoutZeros(full)), source)
  assert.equal(printJson(tree), source)
})

test('an object before there is anything in it has nothing that Go would leave out', () => {
  const lacking = (zero: unknown, ours: unknown, path: string): string[] => {
    if (typeof ours !== 'object' || ours === null) return []
    return Object.entries(ours).flatMap(([name, value]) => {
      const inner = (zero as Record<string, unknown> | null)?.[name]
      return inner === undefined ? [`${path}.${name}`] : lacking(inner, value, `${path}.${name}`)
    })
  }
  const found = builtinFacts().resources.flatMap(({ group, version, kind: name }) => {
    const apiVersion = group === '' ? version : `${group}/${version}`
    const message = messageOf(apiVersion, name)
    if (message === undefined) return []
    const zero = decodeMessage(message, Buffer.alloc(0), { apiVersion, kind: name })
    const ours = printJson(nothingOf({ group, version, kind: name }))
    return lacking(JSON.parse(zero.toString()), JSON.parse(ours), `${apiVersion} ${name}`)
  })
  assert.deepEqual(found, [])
})
