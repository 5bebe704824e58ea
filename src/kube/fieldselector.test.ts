import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FieldSelector, parseFieldSelector } from './fieldselector.ts'

test('parseFieldSelector() reads terms, escapes and operators', () => {
  const cases: [string, string][] = [
    ['', ''],
    [',,', ''],
    ['b=1,a=2', 'a=2,b=1'],
    ['a==1', 'a=1'],
    ['a!=1', 'a!=1'],
    ['a=,a=', 'a='],
    ['a=x\\,y', 'a=x\\,y'],
    ['a=\\=\\\\', 'a=\\=\\\\'],
    ['a = x', 'a = x'],
    ['=', ''],
    ['==', ''],
    ['!=', ''],
    ['=,a=1', 'a=1'],
    ['=x', '=x'],
  ]
  for (const [text, canonical] of cases) assert.equal(parseFieldSelector(text).toString(), canonical, text)
  assert.deepEqual(parseFieldSelector('a=x\\,y').requirements, [{ field: 'a', operator: '=', value: 'x,y' }])
  assert.equal(parseFieldSelector(',').empty, true)
})

test('matches(), required() and renamed()', () => {
  const lookup = (field: string) => ({ a: '1', b: '' })[field] ?? ''
  for (const text of ['', 'a=1', 'a!=2', 'b=', 'z=', 'a=1,b!=x'])
    assert.ok(parseFieldSelector(text).matches(lookup), text)
  for (const text of ['a=2', 'a!=1', 'b=x', 'z!=', 'a=1,b=x'])
    assert.ok(!parseFieldSelector(text).matches(lookup), text)
  assert.equal(parseFieldSelector('a!=1,b=2').required('b'), '2')
  assert.equal(parseFieldSelector('a!=1,b=2').required('a'), undefined)
  assert.equal(
    parseFieldSelector('z=1,b=2')
      .renamed((field) => (field === 'z' ? 'a' : field))
      .toString(),
    'a=1,b=2',
  )
})

test('parseFieldSelector() complains in the words of kube-apiserver', () => {
  const cases: [string, string][] = [
    ['x', "invalid selector: 'x'; can't understand 'x'"],
    ['z=1,x', "invalid selector: 'z=1,x'; can't understand 'x'"],
    ['x,a', "invalid selector: 'x,a'; can't understand 'a'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a=b\\c', 'invalid field selector: invalid escape sequence: \\c'],
    ['a=b\\', 'invalid field selector: invalid escape sequence: \\'],
  ]
  for (const [text, message] of cases) assert.throws(() => parseFieldSelector(text), { message }, text)
})

test('any value survives being written and read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.constantFrom('=' as const, '!=' as const), (value, operator) => {
      const selector = new FieldSelector([{ field: 'metadata.name', operator, value }])
      assert.deepEqual(parseFieldSelector(selector.toString()).requirements, selector.requirements)
    }),
  )
})
