// What a real kube-apiserver 1.36 made of each of these objects is recorded beside this file.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { builtinSchemas } from '../builtin.ts'
import { fromPlain, type JsonObject, toPlain } from '../json/json.ts'
import { checkMetadata, strictDecoding } from './builtin.ts'
import { applyDefaults } from './defaulting.ts'
import type { Components } from './gostruct.ts'
import { prune } from './prune.ts'
import type { Schema } from './schema.ts'

type Case = { title: string; object: object; strict?: string; result: Record<string, unknown> }

const recorded: { schema: Schema; cases: Case[] } = JSON.parse(
  readFileSync(new URL('prune.recorded.json', import.meta.url), 'utf8'),
)

for (const { title, object, strict, result } of recorded.cases) {
  test(`pruning and defaulting: ${title}`, () => {
    const decoded = fromPlain(object) as JsonObject
    const unknown = prune(decoded, recorded.schema).map((path) => `unknown field "${path}"`)
    if (strict === undefined) assert.deepEqual(unknown, [])
    else assert.equal(strictDecoding('Prune', 'v1', unknown).message, strict)
    applyDefaults(decoded, recorded.schema)
    decoded.delete('metadata')
    assert.deepEqual(JSON.parse(JSON.stringify(toPlain(decoded))), result)
  })
}

test('pruning again finds nothing, and defaulting again changes nothing', () => {
  for (const { object } of recorded.cases) {
    const decoded = fromPlain(object) as JsonObject
    prune(decoded, recorded.schema)
    applyDefaults(decoded, recorded.schema)
    const once = JSON.stringify(toPlain(decoded))
    assert.deepEqual(prune(decoded, recorded.schema), [])
    applyDefaults(decoded, recorded.schema)
    assert.equal(JSON.stringify(toPlain(decoded)), once)
  }
})

test('metadata of a custom resource is decoded like that of any object', () => {
  const components = builtinSchemas() as Components
  const check = (metadata: unknown) => checkMetadata(fromPlain({ metadata }) as JsonObject, components)
  const cases: Array<[unknown, string]> = [
    [{ labels: { a: 5 } }, 'json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string'],
    [{ labels: 'x' }, 'json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string'],
    [{ finalizers: 'x' }, 'json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string'],
    [{ name: 5 }, 'json: cannot unmarshal number into Go struct field ObjectMeta.name of type string'],
    ['x', 'json: cannot unmarshal string into Go value of type v1.ObjectMeta'],
    [{ creationTimestamp: 'x' }, 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'],
  ]
  for (const [metadata, text] of cases) assert.equal(check(metadata).undecodable, text)
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', zed: 1 }
  assert.deepEqual(check({ zed: 1, ownerReferences: [owner] }).unknown, [
    'metadata.zed',
    'metadata.ownerReferences[0].zed',
  ])
})
