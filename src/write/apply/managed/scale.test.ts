import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, printJson } from '../../../kube/json/json.ts'
import { pathOf } from '../pathelement.ts'
import { type Managed, parseManaged, printManaged } from './managed.ts'
import { fromScale, type ReplicasPath, toScale } from './scale.ts'

const pathIn: ReplicasPath = (version) =>
  version === 'apps/v1' ? pathOf('spec', 'replicas') : version === 'apps/v2' ? null : undefined

const entry = (manager: string, operation: string, fields: readonly string[], over = {}) => ({
  manager,
  operation,
  apiVersion: 'apps/v1',
  time: '2026-01-02T03:04:05Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:spec': Object.fromEntries(fields.map((name) => [`f:${name}`, {}])) },
  ...over,
})

const managed = (...entries: unknown[]): Managed => parseManaged(fromPlain(entries))

function told(owners: Managed): string[] {
  const list = JSON.parse(printJson(printManaged(owners, false) ?? []))
  return list.map(
    (one: Record<string, unknown>) =>
      `${one.manager} ${one.operation} ${one.apiVersion} ${Object.keys((one.fieldsV1 as never)['f:spec'])
        .join()
        .replaceAll('f:', '')}${one.time === undefined ? ' timeless' : ''}`,
  )
}

test('the owner of the replicas owns those of the Scale', () => {
  const parent = managed(
    entry('a', 'Apply', ['replicas', 'paused']),
    entry('b', 'Update', ['paused']),
    entry('c', 'Update', ['replicas'], { apiVersion: 'apps/v2' }),
    entry('d', 'Update', ['replicas'], { apiVersion: 'gone/v1' }),
  )
  assert.deepEqual(told(toScale(parent, pathIn)), ['a Apply autoscaling/v1 replicas'])
})

test('what the Scale’s new owner took is taken from the others, whose rest stays', () => {
  const parent = managed(entry('a', 'Apply', ['replicas', 'paused']), entry('b', 'Apply', ['replicas']))
  const scale = managed(entry('s', 'Update', ['replicas'], { apiVersion: 'autoscaling/v1', subresource: 'scale' }))
  assert.deepEqual(told(fromScale(parent, scale, 'apps/v1', pathIn)), [
    'a Apply apps/v1 paused',
    's Update apps/v1 replicas timeless',
  ])
})

test('an applier that kept its share keeps its time; an updater is split in two', () => {
  const parent = managed(entry('a', 'Apply', ['replicas']), entry('u', 'Update', ['replicas', 'paused']))
  assert.deepEqual(told(fromScale(parent, toScale(parent, pathIn), 'apps/v1', pathIn)), [
    'a Apply apps/v1 replicas',
    'u Update apps/v1 replicas timeless',
    'u Update apps/v1 paused',
  ])
})

test('owners in versions that are gone own nothing any more', () => {
  const parent = managed(entry('d', 'Update', ['replicas'], { apiVersion: 'gone/v1' }))
  assert.deepEqual(told(fromScale(parent, toScale(parent, pathIn), 'apps/v1', pathIn)), [])
})
