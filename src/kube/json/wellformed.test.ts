/** The check against JSON.parse: it must take the same bytes for JSON, whatever was done to them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { endOfJson, isJson } from './wellformed.ts'

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const values = [
  '0',
  '-0',
  '12',
  '-1.5',
  '1e9',
  '1E+9',
  '1.25e-3',
  'true',
  'false',
  'null',
  '""',
  '"a"',
  '{}',
  '[]',
  '[[],{}]',
  ' { "a" : [ 1 , 2 ] } ',
  '"\\u00e9\\n\\"\\\\\\/"',
  '"é😀"',
  '{"a":{"b":{"c":[{"d":null}]}}}',
  '[1,[2,[3]]]',
]
const faults = [
  '',
  ' ',
  '01',
  '-',
  '+1',
  '.5',
  '1.',
  '1e',
  '1e+',
  '0x1',
  'tru',
  'nulll',
  'True',
  'NaN',
  '"',
  '"a',
  '"\\',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"\\u00\x100"',
  '"\n"',
  '{',
  '}',
  '[',
  ']',
  '{]',
  '[}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{,}',
  '[1,]',
  '[,1]',
  '[1 2]',
  '{a:1}',
  '{"a":1 "b":2}',
  '{"a" 1}',
  '{1:1}',
  '[1}',
  '{"a":1]',
  '{}{}',
  '[],',
  'null null',
  "'a'",
  '[1,2',
  '{"a":1',
  '{"a":[1}',
]

test('JSON is taken, anything else is not', () => {
  for (const text of values) assert.equal(isJson(Buffer.from(text)), true, text)
  for (const text of faults) assert.equal(isJson(Buffer.from(text)), false, text)
  for (const text of [...values, ...faults]) assert.equal(parses(text), values.includes(text), text)
})

test('the end of a value is found whatever follows', () => {
  const bytes = Buffer.from('x {"a":[1,"]"]}, 12.5]')
  assert.equal(endOfJson(bytes, 1), 15)
  assert.equal(endOfJson(bytes, 16), 21)
  assert.equal(endOfJson(bytes, 0), -1)
})

test('nesting has an end, long before the memory has', () => {
  const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth))
  assert.equal(isJson(nested(10_000)), true)
  assert.equal(isJson(nested(10_001)), false)
  assert.equal(isJson(Buffer.alloc(1_000_000, '[')), false)
})

/** The bytes that decide things in JSON, more often than others. */
const byte = fc.oneof(fc.constantFrom(...Buffer.from('{}[]",:\\u0e+-. \ntn')), fc.integer({ min: 0, max: 127 }))
const edit = fc.record({ at: fc.nat(), byte, how: fc.constantFrom('put', 'insert', 'remove', 'cut') })

test('it agrees with JSON.parse on what becomes of JSON under edits', () => {
  let sound = 0
  fc.assert(
    fc.property(fc.json(), fc.array(edit, { maxLength: 3 }), (text, edits) => {
      let bytes = [...Buffer.from(text, 'latin1')]
      for (const { at, byte, how } of edits) {
        const place = at % (bytes.length + 1)
        if (how === 'cut') bytes = bytes.slice(0, place)
        else bytes.splice(place, how === 'insert' ? 0 : 1, ...(how === 'remove' ? [] : [byte]))
      }
      const edited = Buffer.from(bytes)
      const expected = parses(edited.toString('latin1'))
      if (expected) sound++
      assert.equal(isJson(edited), expected)
    }),
    { numRuns: 3000 },
  )
  assert.ok(sound > 100)
})
