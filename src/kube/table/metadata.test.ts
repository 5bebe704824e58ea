import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metadataInOrder } from './metadata.ts'

test('[A5] metadata of a custom resource is printed in the order of the fields, numbers and escapes as they are', () => {
  const sorted =
    '{"annotations":{"note":"\\u003ca\\u003e"},"creationTimestamp":"2026-01-01T00:00:00Z","generation":9007199254740993,' +
    '"labels":{"b":"1","a":"2"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},' +
    '"manager":"m","operation":"Update","time":"2026-01-01T00:00:00Z"}],"name":"one","namespace":"odd",' +
    '"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}],"resourceVersion":"5","uid":"x"}'
  const ordered =
    '{"name":"one","namespace":"odd","uid":"x","resourceVersion":"5","generation":9007199254740993,' +
    '"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"b":"1","a":"2"},"annotations":{"note":"\\u003ca\\u003e"},' +
    '"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}],' +
    '"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z",' +
    '"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}'
  assert.equal(metadataInOrder(Buffer.from(sorted)).toString(), ordered)
})

test('what is no object, or has keys that nobody knows, stays whole', () => {
  assert.equal(metadataInOrder(Buffer.from('null')).toString(), 'null')
  assert.equal(metadataInOrder(Buffer.from('{"z":1,"name":"a"}')).toString(), '{"name":"a","z":1}')
})

test('[A8] metadata too deep to be read keep the order they have', () => {
  const deep = `{"uid":"u","managedFields":[{"fieldsV1":${'{"f:a":'.repeat(2_000)}{}${'}'.repeat(2_000)}}],"name":"a"}`
  assert.equal(metadataInOrder(Buffer.from(deep)).toString(), deep)
})
