import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtinSchemas } from '../../kube/builtin.ts'
import { parseJson } from '../../kube/json/json.ts'
import type { Components } from '../../kube/schema/gostruct.ts'
import { admit } from './admit.ts'
import { fieldsOf } from './fieldsof.ts'
import { deducedType, type FieldType } from './fieldtype.ts'
import { printPath } from './pathelement.ts'
import { FieldTypes } from './typesfrom.ts'

const types = new FieldTypes(builtinSchemas() as Components)

/** `spec.containers[].ports`: through members, items and values of maps. */
function at(component: string, path: string): FieldType {
  let type = types.component(component)
  for (const step of path.split(/\.|(?=\[\])/)) {
    const next = step === '[]' ? type.list?.element : (type.map?.fields.get(step)?.type ?? type.map?.element)
    assert.ok(next !== undefined, `${component} has no ${path}`)
    type = next
  }
  return type
}

function described(type: FieldType): string {
  const forms: string[] = []
  if (type.map !== undefined) forms.push(type.map.atomic ? 'atomic map' : 'map')
  if (type.list !== undefined)
    forms.push(type.list.atomic ? 'atomic list' : `list by ${type.list.keys.join(',') || 'value'}`)
  if (type.scalar !== undefined) forms.push(type.scalar)
  return forms.join(' or ')
}

const POD = 'io.k8s.api.core.v1.Pod'
const builtins: readonly (readonly [component: string, path: string, wanted: string])[] = [
  [POD, 'metadata.labels', 'map'],
  [POD, 'metadata.finalizers', 'list by value'],
  [POD, 'metadata.ownerReferences', 'list by uid'],
  [POD, 'metadata.ownerReferences[]', 'atomic map'],
  [POD, 'metadata.creationTimestamp', 'untyped'],
  [POD, 'spec.containers', 'list by name'],
  [POD, 'spec.containers[].ports', 'list by containerPort,protocol'],
  [POD, 'spec.containers[].command', 'atomic list'],
  [POD, 'spec.containers[].env[].valueFrom.fieldRef', 'atomic map'],
  [POD, 'spec.containers[].resources.limits', 'map'],
  [POD, 'spec.containers[].resources.limits.cpu', 'untyped'],
  [POD, 'spec.containers[].livenessProbe.httpGet.port', 'map or atomic list or untyped'],
  [POD, 'spec.nodeSelector', 'atomic map'],
  [POD, 'spec.tolerations', 'atomic list'],
  [POD, 'spec.topologySpreadConstraints', 'list by topologyKey,whenUnsatisfiable'],
  [POD, 'spec.hostAliases', 'list by ip'],
  [POD, 'status.podIPs', 'list by ip'],
  [POD, 'status.conditions', 'list by type'],
  ['io.k8s.api.core.v1.Service', 'spec.ports', 'list by port,protocol'],
  ['io.k8s.api.core.v1.Service', 'spec.selector', 'atomic map'],
  ['io.k8s.api.core.v1.Endpoints', 'subsets', 'atomic list'],
  ['io.k8s.api.core.v1.Secret', 'data.x', 'string'],
  ['io.k8s.api.apps.v1.Deployment', 'spec.selector', 'atomic map'],
  ['io.k8s.api.apps.v1.ControllerRevision', 'data', 'atomic map or atomic list or untyped'],
]
for (const [component, path, wanted] of builtins) {
  test(`${component.split('.').at(-1)} ${path}: ${wanted}`, () => assert.equal(described(at(component, path)), wanted))
}

test('a port without a protocol is a TCP port', () => {
  const pod = parseJson('{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80}]}]}}')
  const named = [...fieldsOf(pod, types.component(POD)).paths()].map(printPath)
  assert.ok(named.includes('.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"].containerPort'))
})

test('every built-in kind has a type, whole and without an open end', () => {
  const seen = new Set<FieldType>()
  const visit = (type: FieldType): void => {
    if (seen.has(type)) return
    seen.add(type)
    assert.notEqual(described(type), '', type.name ?? '')
    if (type.list !== undefined) visit(type.list.element)
    if (type.map?.element !== undefined) visit(type.map.element)
    for (const { type: inner } of type.map?.fields.values() ?? []) visit(inner)
  }
  for (const name of Object.keys(builtinSchemas())) visit(types.component(name))
  assert.ok(seen.size > 1000)
})

test('a definition: metadata is what it is everywhere, unknown fields are kept where it says so', () => {
  const type = types.custom({
    type: 'object',
    properties: {
      metadata: { type: 'object' },
      spec: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { deep: { type: 'object', properties: { a: { type: 'string' } } } },
      },
    },
  })
  const object = parseJson('{"metadata":{"finalizers":["a"]},"spec":{"x":{"y":[1]},"deep":{"b":{"c":1}}}}')
  admit(object, type)
  assert.deepEqual([...fieldsOf(object, type).paths()].map(printPath), [
    '.metadata.finalizers[="a"]',
    '.spec.x',
    '.spec.deep.b',
    '.spec.deep.b.c',
    '.spec.x.y',
  ])
})

test('types are built once', () => {
  const schema = { type: 'object' }
  assert.equal(types.custom(schema), types.custom(schema))
  assert.equal(types.component(POD), types.component(POD))
  assert.equal(types.custom(undefined), deducedType)
})
