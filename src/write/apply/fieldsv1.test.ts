import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseJson, printJson } from '../../kube/json/json.ts'
import { FieldSet } from './fieldset.ts'
import { FieldsFault, parseFields, printFields } from './fieldsv1.ts'
import { fieldElement, keyElement, type PathElement, valueElement } from './pathelement.ts'

test('what kube-apiserver wrote comes back byte for byte', () => {
  const lines = readFileSync(join(import.meta.dirname, 'testdata/fieldsv1.jsonl'), 'utf8')
    .trim()
    .split('\n')
  assert.ok(lines.length > 10)
  for (const line of lines) assert.equal(printJson(printFields(parseFields(parseJson(line)))), line)
})

const reprinted = (text: string) => printJson(printFields(parseFields(parseJson(text))))

const cases: Readonly<Record<string, readonly [string, string]>> = {
  'order of keys': ['{"f:b":{},"f:a":{}}', '{"f:a":{},"f:b":{}}'],
  'the dot first': ['{"f:a":{"f:b":{},".":{}}}', '{"f:a":{".":{},"f:b":{}}}'],
  'only a dot': ['{"f:a":{".":{}}}', '{"f:a":{}}'],
  'fields, keys, values, indexes': [
    '{"i:1":{},"v:1":{},"k:{\\"a\\":1}":{},"f:z":{}}',
    '{"f:z":{},"k:{\\"a\\":1}":{},"v:1":{},"i:1":{}}',
  ],
  'keys in order of their names': ['{"k:{\\"b\\":1,\\"a\\":2}":{}}', '{"k:{\\"a\\":2,\\"b\\":1}":{}}'],
  'numbers by value': ['{"v:10":{},"v:9":{},"v:1.0":{},"v:1e-7":{}}', '{"v:1e-07":{},"v:1":{},"v:9":{},"v:10":{}}'],
  'text as Go escapes it': ['{"v:\\"a<b\\"":{}}', '{"v:\\"a\\\\u003cb\\"":{}}'],
  'steps of the future': ['{"x:1":{"f:a":{}},"f:b":{"y:2":{}}}', '{"f:b":{}}'],
  'null for nothing below': ['{"f:a":null}', '{"f:a":{}}'],
  nothing: ['null', '{}'],
  'an empty name': ['{"f:":{}}', '{"f:":{}}'],
}
for (const [title, [given, wanted]] of Object.entries(cases)) {
  test(`reprinted: ${title}`, () => assert.equal(reprinted(given), wanted))
}

test('an integer beyond 2^53 is printed as it is', () => {
  const set = FieldSet.of([valueElement(parseJson('9007199254740993'))])
  assert.equal(printJson(printFields(set)), '{"v:9007199254740993":{}}')
})

const refused: Readonly<Record<string, RegExp>> = {
  '{"a":{}}': /parsing key as path element: key must be 2 characters long:/,
  '{"abc":{}}': /parsing key as path element: missing colon: abc/,
  '{"i:x":{}}': /strconv.Atoi: parsing "x": invalid syntax/,
  '{"v:{":{}}': /parsing key as path element: /,
  '{"k:1":{}}': /parsing key as path element: ReadObjectCB: expect \{ or n/,
  '{"f:a":5}': /ReadMapCB: expect \{ or n/,
  '[]': /ReadMapCB: expect \{ or n/,
}
for (const [given, message] of Object.entries(refused)) {
  test(`refused: ${given}`, () => {
    assert.throws(
      () => parseFields(parseJson(given)),
      (error) => error instanceof FieldsFault && message.test(error.message),
    )
  })
}

test('every set survives being printed and read', () => {
  const scalar = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
  )
  const element: fc.Arbitrary<PathElement> = fc.oneof(
    fc.string({ unit: 'grapheme' }).map(fieldElement),
    fc.tuple(scalar, scalar).map((values) => keyElement(['a', 'b'], values)),
    scalar.map((value) => valueElement(Object.is(value, -0) ? 0 : value)),
  )
  fc.assert(
    fc.property(fc.array(fc.array(element, { minLength: 1, maxLength: 3 }), { maxLength: 6 }), (paths) => {
      const set = FieldSet.of(...paths)
      const printed = printJson(printFields(set))
      const read = parseFields(parseJson(printed))
      assert.equal(read.equals(set), true)
      assert.equal(printJson(printFields(read)), printed)
    }),
  )
})
