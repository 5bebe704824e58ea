/**
 * testdata/tables.jsonl holds objects and the cells a real kube-apiserver 1.36 printed for them at that moment, so these
 * tests compare with the original and not with our reading of it.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtinColumns, builtinFacts } from '../../builtin.ts'
import type { Resource } from '../../resource.ts'
import { scales } from '../tableresource.ts'
import { columnsOf, rowOf } from './printers.ts'
import type { View } from './read.ts'

type Recorded = { resource: string; now: string; cells: unknown[]; conditions?: unknown[]; object: View }

const resources = new Map(builtinFacts().resources.map((one) => [`${one.group}/${one.version}/${one.resource}`, one]))

function resourceOf(key: string): Resource {
  const resource = resources.get(key)
  assert.ok(resource, key)
  return resource
}

const recorded = readFileSync(join(import.meta.dirname, 'testdata/tables.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded)

test('every row is what kube-apiserver printed for the same object', () => {
  for (const { resource, now, cells, conditions, object } of recorded) {
    const row = rowOf(resourceOf(resource), object, Date.parse(now))
    const name = `${resource} ${String(cells[0])}`
    assert.deepEqual(row.cells, cells, name)
    assert.deepEqual(row.conditions, conditions, name)
  }
})

test('every resource with columns has a recorded row', () => {
  const seen = new Set(recorded.map(({ resource }) => resource))
  // Its rows are those of autoscaling/v2 in an older spelling, tested below.
  seen.add('autoscaling/v1/horizontalpodautoscalers')
  assert.deepEqual(
    Object.keys(builtinColumns()).filter((key) => !seen.has(key)),
    [],
  )
})

test('a row has as many cells as its table has columns', () => {
  for (const key of Object.keys(builtinColumns())) {
    const resource = resourceOf(key)
    const cells = rowOf(resource, { metadata: { name: 'x' } }, 0).cells
    // The real server sends an age for which this one table has no column.
    const extra = resource.resource === 'ipaddresses' ? 1 : 0
    assert.equal(cells.length, columnsOf(resource).length + extra, key)
  }
})

test('autoscaling/v1 shows its one metric as v2 does', () => {
  const resource = resourceOf('autoscaling/v1/horizontalpodautoscalers')
  const targets = (object: View): unknown => rowOf(resource, object, 0).cells[2]
  assert.equal(targets({ spec: {} }), '<none>')
  assert.equal(targets({ spec: { targetCPUUtilizationPercentage: 50 } }), 'cpu: <unknown>/50%')
  const measured = { spec: { targetCPUUtilizationPercentage: 50 }, status: { currentCPUUtilizationPercentage: 42 } }
  assert.equal(targets(measured), 'cpu: 42%/50%')
})

test('states that only controllers can bring about', () => {
  const claim = resourceOf('resource.k8s.io/v1/resourceclaims')
  const state = (object: View): unknown => rowOf(claim, object, 0).cells[1]
  assert.equal(state({ status: { allocation: {} } }), 'allocated')
  assert.equal(state({ status: { allocation: {}, reservedFor: [{}] } }), 'allocated,reserved')
  assert.equal(state({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }), 'deleted')
  const request = resourceOf('certificates.k8s.io/v1/certificatesigningrequests')
  const issued = { status: { conditions: [{ type: 'Approved' }], certificate: 'AA==' } }
  assert.equal(rowOf(request, issued, 0).cells[5], 'Approved,Issued')
})

test('what older or unfinished objects leave out', () => {
  const cells = (key: string, object: View): readonly unknown[] => rowOf(resourceOf(key), object, 0).cells
  assert.equal(cells('/v1/services', { spec: { clusterIP: '10.0.0.1' } })[2], '10.0.0.1')
  assert.equal(cells('/v1/services', { spec: {} })[2], '<none>')
  assert.equal(cells('/v1/services', { spec: {} })[3], '<unknown>')
  assert.equal(cells('/v1/pods', { status: { podIP: '10.0.0.2' } })[5], '10.0.0.2')
  assert.equal(cells('networking.k8s.io/v1/ipaddresses', { spec: {} })[1], '<none>')
  assert.deepEqual(cells('/v1/componentstatuses', { conditions: [] }), ['', 'Unknown', '', ''])
  const failing = { conditions: [{ type: 'Healthy', status: 'False', message: 'm', error: 'e' }] }
  assert.deepEqual(cells('/v1/componentstatuses', failing), ['', 'Unhealthy', 'm', 'e'])
  const cron = { spec: { jobTemplate: { spec: { selector: { matchLabels: { a: 'b' } } } } } }
  assert.equal(cells('batch/v1/cronjobs', cron)[9], 'a=b')
  const odd = { spec: { selector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } } }
  assert.equal(cells('apps/v1/deployments', odd)[7], '<invalid>')
  assert.equal(cells('apps/v1/replicasets', odd)[7], '<error>')
})

test('a pod with one container done is Running only while it is Ready', () => {
  const states = [
    { name: 'done', state: { terminated: { reason: 'Completed', exitCode: 0 } } },
    { name: 'on', ready: true, state: { running: {} } },
  ]
  const status = (conditions: unknown[]): unknown =>
    rowOf(resourceOf('/v1/pods'), { status: { phase: 'Running', conditions, containerStatuses: states } }, 0).cells[2]
  assert.equal(status([{ type: 'Ready', status: 'True' }]), 'Running')
  assert.equal(status([{ type: 'Ready', status: 'False' }]), 'NotReady')
  assert.equal(status([{ type: 'PodScheduled', status: 'True' }]), 'NotReady')
})

test('a resource nobody knows columns of shows its name and when it was created', () => {
  const unknown: Resource = { ...resourceOf('/v1/pods'), group: 'example.com', resource: 'things' }
  assert.deepEqual(
    columnsOf(unknown).map(({ name, type }) => [name, type]),
    [
      ['Name', 'string'],
      ['Created At', 'date'],
    ],
  )
  const object = { metadata: { name: 'x', creationTimestamp: '2026-01-01T00:00:00Z' } }
  assert.deepEqual(rowOf(unknown, object, 0).cells, ['x', '2026-01-01T00:00:00Z'])
})

test('no object, however misshapen, keeps its table from being printed', () => {
  const names = [...new Set(recorded.flatMap(({ object }) => keysIn(object)))]
  const key = fc.constantFrom(...names)
  const tree = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(null, true, 0, -1.5, '', 'x'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(key, tie('value'), { maxKeys: 6 }),
    ),
  }))
  const object = fc.record({ metadata: tree.value, spec: tree.value, status: tree.value, subsets: tree.value })
  fc.assert(
    fc.property(object, fc.constantFrom(...Object.keys(builtinColumns())), (view, resource) => {
      for (const cell of rowOf(resourceOf(resource), view, 0).cells) {
        assert.ok(cell === null || ['string', 'number', 'boolean'].includes(typeof cell))
      }
    }),
    { numRuns: 500 },
  )
})

function keysIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => [...(Array.isArray(value) ? [] : [key]), ...keysIn(member)])
}

test('a Scale shows how many are wanted and how many there are, and its name without a format', () => {
  const scale = {
    metadata: { name: 'web', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { replicas: 3 },
    status: {},
  }
  const row = rowOf(scales, scale as View, Date.parse('2026-01-01T00:00:30Z'))
  assert.deepEqual(row.cells, ['web', 3, 0, '30s'])
  const columns = columnsOf(scales).map(({ name, type, format }) => `${name} ${type} ${format}`)
  assert.deepEqual(columns, ['Name string ', 'Desired integer ', 'Available integer ', 'Age string '])
})
