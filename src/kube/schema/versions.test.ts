import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type JsonObject, toPlain } from '../json/json.ts'
import { definitionDefaults } from './definition.ts'
import { definitionStatus } from './naming.ts'
import { definitionResources, definitionVersions } from './versions.ts'

const NOW = '2026-01-01T00:00:00Z'

function definition(plural: string, kind: string, more: Record<string, unknown> = {}): JsonObject {
  const object = { type: 'object' }
  const crd = fromPlain({
    metadata: { name: `${plural}.stat.test.dev` },
    spec: {
      group: 'stat.test.dev',
      scope: 'Namespaced',
      names: { plural, kind, ...more },
      versions: [
        { name: 'v1alpha1', served: true, storage: true, schema: { openAPIV3Schema: object } },
        {
          name: 'v1',
          served: true,
          storage: false,
          deprecated: true,
          schema: { openAPIV3Schema: object },
          subresources: { status: {}, scale: { specReplicasPath: '.spec.r', statusReplicasPath: '.status.r' } },
          selectableFields: [{ jsonPath: '.spec.color' }],
          additionalPrinterColumns: [{ name: 'R', type: 'integer', jsonPath: '.spec.r' }],
        },
        { name: 'v2', served: false, storage: false, schema: { openAPIV3Schema: object } },
      ],
    },
  }) as JsonObject
  definitionDefaults(crd)
  return crd
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

const widgets = definition('widgets', 'Widget', { shortNames: ['wi'], categories: ['all'] })
widgets.set('status', definitionStatus(widgets, [], NOW))

test('definition: the status of one without rivals', () => {
  assert.deepEqual(plain(toPlain(widgets.get('status') ?? null)), {
    conditions: [
      {
        type: 'NamesAccepted',
        status: 'True',
        lastTransitionTime: NOW,
        reason: 'NoConflicts',
        message: 'no conflicts found',
      },
      {
        type: 'Established',
        status: 'True',
        lastTransitionTime: NOW,
        reason: 'InitialNamesAccepted',
        message: 'the initial names have been accepted',
      },
    ],
    acceptedNames: {
      plural: 'widgets',
      singular: 'widget',
      shortNames: ['wi'],
      kind: 'Widget',
      listKind: 'WidgetList',
      categories: ['all'],
    },
    storedVersions: ['v1alpha1'],
  })
})

test('definition: names taken by another are not accepted, and nothing is served', () => {
  const gadgets = definition('gadgets', 'Widget', { singular: 'widget', shortNames: ['wi', 'ga'] })
  gadgets.set('status', definitionStatus(gadgets, [widgets, gadgets], NOW))
  const status = plain(toPlain(gadgets.get('status') ?? null)) as Record<string, Array<Record<string, string>>>
  assert.deepEqual(status.acceptedNames, { plural: 'gadgets', kind: '' })
  assert.deepEqual(
    status.conditions?.map(({ type, status: is, reason, message }) => [type, is, reason, message]),
    [
      ['NamesAccepted', 'False', 'ListKindConflict', '"WidgetList" is already in use'],
      ['Established', 'False', 'NotAccepted', 'not all names are accepted'],
    ],
  )
  assert.deepEqual(definitionResources(gadgets), [])
})

test('definition: a later status keeps the times of what did not change and remembers stored versions', () => {
  const again = definition('widgets', 'Widget')
  again.set('status', widgets.get('status') ?? null)
  const versions = (again.get('spec') as JsonObject).get('versions') as JsonObject[]
  versions[0]?.set('storage', false)
  versions[1]?.set('storage', true)
  const status = plain(toPlain(definitionStatus(again, [], '2027-01-01T00:00:00Z'))) as Record<string, never[]>
  assert.deepEqual(status.storedVersions, ['v1alpha1', 'v1'])
  assert.deepEqual(
    status.conditions?.map((condition) => (condition as { lastTransitionTime: string }).lastTransitionTime),
    [NOW, NOW],
  )
})

test('definition: served versions become resources, the preferred first', () => {
  const resources = definitionResources(widgets)
  assert.deepEqual(
    resources.map((resource) => resource.version),
    ['v1', 'v1alpha1'],
  )
  assert.deepEqual(resources[0]?.subresources, [
    { name: 'status', verbs: ['get', 'patch', 'update'], group: 'stat.test.dev', version: 'v1', kind: 'Widget' },
    { name: 'scale', verbs: ['get', 'patch', 'update'], group: 'autoscaling', version: 'v1', kind: 'Scale' },
  ])
  // As the real server's discovery had it for these very names.
  assert.equal(resources[0]?.storageVersionHash, 'YL2bKo/vRaY=')
  assert.equal(resources[0]?.interest, 'stat.test.dev/widgets')
})

test('definition: versions carry what reading and printing need', () => {
  const [v2, v1] = definitionVersions(widgets)
  assert.equal(v2?.served, false)
  assert.deepEqual(v1?.selectableFields, ['spec.color'])
  assert.equal(v1?.columns[0]?.jsonPath, '.spec.r')
  assert.equal(v1?.deprecation, 'stat.test.dev/v1 Widget is deprecated')
  assert.deepEqual(v1?.scale, { specReplicasPath: '.spec.r', statusReplicasPath: '.status.r' })
})

test('definition: versions are ordered by maturity, then number', () => {
  const crd = fromPlain({
    spec: {
      versions: ['foo1', 'v1alpha1', 'v11beta2', 'v10', 'v2', 'v12alpha1', 'v3beta1', 'foo10', 'v10beta3', 'v1'].map(
        (name) => ({ name }),
      ),
    },
  }) as JsonObject
  assert.deepEqual(
    definitionVersions(crd).map((version) => version.name),
    ['v10', 'v2', 'v1', 'v11beta2', 'v10beta3', 'v3beta1', 'v12alpha1', 'v1alpha1', 'foo1', 'foo10'],
  )
})
