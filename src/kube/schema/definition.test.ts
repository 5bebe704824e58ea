// What a real kube-apiserver 1.36 answered to each of these definitions is recorded beside this file.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fromPlain, type JsonObject, toPlain } from '../json/json.ts'
import { definitionDefaults, validateDefinition } from './definition.ts'

type Cause = [field: string, reason: string, text: string]
type Recorded = { title: string; crd: { spec: Record<string, unknown> }; code: number; causes: Cause[] }

const recorded: Recorded[] = JSON.parse(readFileSync(new URL('definition.recorded.json', import.meta.url), 'utf8'))

/** Here the real text quotes an internal struct or another engine's parser: only field and reason are the same. */
const OTHER_WORDS = new Set([
  'two storages',
  'same version twice',
  'bad pattern',
  'status with root anyOf',
  'rule syntax',
])

const order = (a: string[], b: string[]) => (String(a) < String(b) ? -1 : 1)

for (const { title, crd, causes } of recorded) {
  test(`definition: ${title}`, () => {
    const definition = fromPlain(crd) as JsonObject
    definitionDefaults(definition)
    const found = validateDefinition(definition).map((error): string[] => [error.field, error.reason, error.text])
    const compared = OTHER_WORDS.has(title) ? 2 : 3
    const cut = (all: string[][]) => all.map((cause) => cause.slice(0, compared)).sort(order)
    assert.deepEqual(cut(found), cut(causes))
  })
}

function base(): { crd: JsonObject; plain: { spec: Record<string, unknown> } } {
  const plain = structuredClone((recorded[0] as Recorded).crd)
  return { crd: fromPlain(plain) as JsonObject, plain }
}

test('definition: names and conversion are filled in', () => {
  const { crd } = base()
  definitionDefaults(crd)
  const spec = JSON.parse(JSON.stringify(toPlain(crd.get('spec') ?? null)))
  assert.deepEqual(spec.names, { plural: 'widgets', kind: 'Widget', singular: 'widget', listKind: 'WidgetList' })
  assert.deepEqual(spec.conversion, { strategy: 'None' })
})

test('definition: conversion by webhook is refused in so many words', () => {
  const { plain } = base()
  plain.spec.conversion = { strategy: 'Webhook' }
  const found = validateDefinition(withDefaults(plain))
  assert.equal(found.length, 1)
  assert.match(found[0]?.text ?? '', /webhook is not supported/)
})

function withDefaults(plain: unknown): JsonObject {
  const crd = fromPlain(plain) as JsonObject
  definitionDefaults(crd)
  return crd
}

test('definition: an update may not change what names the resource or drop a stored version', () => {
  const { plain } = base()
  const old = withDefaults({
    ...plain,
    status: { storedVersions: ['v1'], conditions: [{ type: 'Established', status: 'True' }] },
  })
  const changed = structuredClone(plain) as { spec: { scope: string; names: { kind: string }; versions: object[] } }
  changed.spec.scope = 'Cluster'
  changed.spec.names.kind = 'Gadget'
  changed.spec.versions = [{ ...changed.spec.versions[0], name: 'v2' }]
  const found = validateDefinition(withDefaults(changed), old).map((error) => `${error.field}: ${error.text}`)
  assert.deepEqual(found.slice(0, 2), [
    'spec.scope: Invalid value: "Cluster": field is immutable',
    'spec.names.kind: Invalid value: "Gadget": field is immutable',
  ])
  assert.match(found[2] ?? '', /^status\.storedVersions\[0\]: Invalid value: "v1": missing from spec\.versions; v1 was/)
})

test('definition: of a new group the name is not blamed too', () => {
  const { plain } = base()
  const old = withDefaults(plain)
  const changed = structuredClone(plain) as { spec: { group: string } }
  changed.spec.group = 'other.dev'
  const found = validateDefinition(withDefaults(changed), old).map((error) => `${error.field}: ${error.text}`)
  assert.deepEqual(found, ['spec.group: Invalid value: "other.dev": field is immutable'])
})

test('definition: findings come in the real order, and no versions are an empty list', () => {
  const { plain } = base()
  const wrong = structuredClone(plain) as { spec: { scope: string; versions: object[]; names: object } }
  wrong.spec.scope = 'x'
  wrong.spec.versions = [{ ...wrong.spec.versions[0], name: 'V', storage: false }]
  wrong.spec.names = { ...wrong.spec.names, plural: 'A', singular: 'B' }
  assert.deepEqual(
    validateDefinition(withDefaults(wrong))
      .map(({ field }) => field)
      .filter((field) => field.startsWith('spec.')),
    [
      'spec.scope',
      'spec.versions[0].name',
      'spec.versions',
      'spec.version',
      'spec.names.plural',
      'spec.names.singular',
    ],
  )
  wrong.spec.versions = []
  const found = validateDefinition(withDefaults(wrong)).find(({ field }) => field === 'spec.versions')
  assert.match(found?.text ?? '', /^Invalid value: \[\]: must have exactly one/)
})
