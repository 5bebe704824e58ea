import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type JsonObject } from '../json/json.ts'
import { definitionWarnings } from './advice.ts'

function definition(spec: object): JsonObject {
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
  return fromPlain({ spec: { versions: [{ name: 'v1', schema }] } }) as JsonObject
}

const zebra = definition({ type: 'object', properties: { a: { type: 'string', format: 'zebra' } } })

test('a format nobody checks is mentioned once', () => {
  assert.deepEqual(definitionWarnings(zebra), ['unrecognized format "zebra"'])
  assert.deepEqual(definitionWarnings(zebra, zebra), [])
  assert.deepEqual(definitionWarnings(definition({ type: 'string', format: 'date' })), [])
})

test('a rule that will not be evaluated is mentioned when the definition is written', () => {
  const rule = { rule: 'self.all(i, v, v > i)' }
  const items = {
    type: 'array',
    items: { type: 'array', items: { type: 'integer' }, 'x-kubernetes-validations': [rule] },
  }
  assert.deepEqual(definitionWarnings(definition(items)), [
    'the validation rule of spec[*] "self.all(i, v, v > i)" is not checked: Unknown variable: i',
  ])
})
