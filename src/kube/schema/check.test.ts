// What a real kube-apiserver 1.36 answered to each of these objects is recorded beside this file; we must say the same.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fromPlain, type Json, type JsonObject } from '../json/json.ts'
import { checkCustom } from './check.ts'
import { applyDefaults } from './defaulting.ts'
import { prune } from './prune.ts'
import type { Schema } from './schema.ts'

type Recorded = {
  title: string
  schema: Schema
  value: unknown
  old?: unknown
  causes: Array<[field: string, reason: string, text: string]>
}

const recorded: Recorded[] = JSON.parse(readFileSync(new URL('check.recorded.json', import.meta.url), 'utf8'))

/** One definition had a field for each of the cases. */
const root: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: Object.fromEntries(recorded.map(({ schema }, index) => [`c${index}`, schema])),
    },
  },
}

/** The engine has no comprehensions over two variables yet: such a rule passes with a warning. */
const UNEVALUATED = new Set(['two variables'])

for (const [index, { title, value, old, causes }] of recorded.entries()) {
  test(`custom resource: ${title}`, async () => {
    const field = `c${index}`
    const object = (content: unknown): JsonObject => {
      const made = new Map<string, Json>([
        ['apiVersion', 'schema.test.dev/v1'],
        ['kind', 'Check'],
        ['metadata', fromPlain({ name: `n${index}` })],
        ['spec', new Map([[field, fromPlain(content)]])],
      ])
      prune(made, root)
      applyDefaults(made, root)
      return made
    }
    const verdict = await checkCustom(object(value), root, old === undefined ? {} : { old: object(old) })
    if (UNEVALUATED.has(title)) {
      assert.deepEqual(verdict.errors, [])
      assert.match(verdict.warnings.join(), /is not checked/)
      return
    }
    const found = verdict.errors.map((error) => [error.field, error.reason, error.text])
    const order = (a: string[], b: string[]) => (String(a) < String(b) ? -1 : 1)
    assert.deepEqual(found.sort(order), causes.sort(order))
    assert.deepEqual(verdict.warnings, [])
  })
}

test('custom resource: a rule that an unchanged field has always broken is only a warning', async () => {
  const schema: Schema = {
    type: 'object',
    properties: {
      a: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self != "q"' }] },
      b: { type: 'integer', maximum: 1 },
      c: { type: 'integer' },
    },
  }
  const object = (content: unknown) => fromPlain(content) as JsonObject
  const old = object({ a: 'q', b: 5, c: 1 })
  assert.deepEqual(await checkCustom(object({ a: 'q', b: 5, c: 2 }), schema, { old }), {
    errors: [],
    warnings: ['a: Invalid value: "q": failed rule: self != "q"'],
  })
  assert.equal((await checkCustom(object({ a: 'q', b: 6, c: 2 }), schema, { old })).errors.length, 1)
})

test('custom resource: on /status only the status is held to types and values', async () => {
  const schema: Schema = {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { n: { type: 'integer' } } },
      status: { type: 'object', required: ['m'], properties: { n: { type: 'integer' }, l: { type: 'array' } } },
    },
  }
  const object = fromPlain({ spec: { n: 'x' }, status: { n: 'y' } }) as JsonObject
  const verdict = await checkCustom(object, schema, { status: true, old: new Map() })
  assert.deepEqual(
    verdict.errors.map((error) => `${error.field}: ${error.text}`),
    ['status.n: Invalid value: "string": n in body must be of type integer: "string"', 'status.m: Required value'],
  )
})

test('custom resource: what a rule lacks is said, each time', async () => {
  const schema: Schema = { type: 'object', 'x-kubernetes-validations': [{ rule: 'jsonpatch.escapeKey("a") == "b"' }] }
  const [first, second] = await Promise.all([1, 2].map(() => checkCustom(new Map(), schema)))
  assert.deepEqual(first, second)
  assert.deepEqual(first?.errors, [])
  assert.match(first?.warnings[0] ?? '', /^the validation rule "jsonpatch.*" is not checked: /)
})

test('custom resource: an error in metadata may keep the rules from being tried', async () => {
  const schema: Schema = { type: 'object', 'x-kubernetes-validations': [{ rule: 'false' }] }
  const errorsAfter = async (reason: 'FieldValueRequired' | 'FieldValueInvalid') => {
    const before = [{ field: 'metadata.name', reason, text: 'x' }]
    return (await checkCustom(new Map(), schema, { before })).errors.map(({ field, text }) => `${field}: ${text}`)
  }
  assert.match(
    (await errorsAfter('FieldValueRequired')).join(),
    /^<nil>: Invalid value: null: some validation rules were not/,
  )
  assert.match((await errorsAfter('FieldValueInvalid')).join(), /failed rule: false/)
})

test('custom resource: a factor is cut to an integer for integers, unless it does not fit the type', async () => {
  const found = async (type: string, value: number) => {
    const schema: Schema = { type: 'object', properties: { n: { type, multipleOf: 0.5 } } }
    const { errors } = await checkCustom(new Map([['n', value]]), schema)
    return errors.map(({ field, text }) => `${field}: ${text}`)
  }
  assert.deepEqual(await found('number', 3), [
    'n: Invalid value: 0: factor MultipleOf declared for n must be positive: 0',
  ])
  assert.deepEqual(await found('number', 1.5), [])
  assert.deepEqual(await found('integer', 3), [
    '<nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in n',
  ])
})
