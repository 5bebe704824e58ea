/** Findings of the first element were compared with a real kube-apiserver's printer columns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileJsonPath } from './jsonpath.ts'

const root = {
  name: 'x',
  list: ['a', 'b', 'c', 'd'],
  map: { 'a.b': 'dotted', k: { deep: 1 } },
  nothing: null,
  conditions: [
    { type: 'Synced', status: 'False', n: 3, ok: false, maybe: null },
    { type: 'Ready', status: 'True', n: 5, ok: true, maybe: 'x' },
  ],
}

function find(path: string): readonly unknown[] {
  const compiled = compileJsonPath(path)
  assert.ok(compiled, `${path} does not parse`)
  return compiled(root)
}

test('fields, indexes, slices and wildcards', () => {
  const table: [string, unknown[]][] = [
    ['.name', ['x']],
    ['$.name', ['x']],
    ["['name']", ['x']],
    ['.nothing', [null]],
    ['.nothing.more', []],
    ['.missing', []],
    ['.name.more', []],
    ['.map.a\\.b', ['dotted']],
    [".map['a\\.b']", ['dotted']],
    [".map['a.b']", []],
    ['.list[0]', ['a']],
    ['.list[]', ['a']],
    ['.list[-1]', ['d']],
    ['.list[-2:]', ['c', 'd']],
    ['.list[1:3]', ['b', 'c']],
    ['.list[::2]', ['a', 'c']],
    ['.list[0:0]', []],
    ['.list[9]', []],
    ['.list[3:1]', []],
    ['.list[-9]', []],
    ['.list[1:9]', []],
    ['.list[::0]', []],
    ['""', ['']],
    ['"a\\n\\"b"', ['a\n"b']],
    ['-1.5', [-1.5]],
    ['.list[*]', ['a', 'b', 'c', 'd']],
    ['.list[0,2]', ['a', 'c']],
    ["['name','nothing']", ['x', null]],
    ['.name[0]', []],
    ['.map.*', ['dotted', { deep: 1 }]],
    ['..deep', [1]],
    ['.list true', [true]],
    ['.list range', []],
    ['.', []],
  ]
  for (const [path, expected] of table) assert.deepEqual(find(path), expected, path)
})

test('filters', () => {
  const table: [string, unknown[]][] = [
    ['[?(@.type=="Ready")].status', ['True']],
    ["[?(@.type=='Ready')].status", ['True']],
    ['[?( @.type == "Ready" )].status', ['True']],
    ['[?(@.type!="Ready")].type', ['Synced']],
    ['[?(@.n>3)].type', ['Ready']],
    ['[?(@.n>=3)].type', ['Synced', 'Ready']],
    ['[?(@.n<5)].type', ['Synced']],
    ['[?(@.n<=5)].type', ['Synced', 'Ready']],
    ['[?(@.ok==true)].type', ['Ready']],
    ['[?(@.ok)].type', ['Synced', 'Ready']],
    ['[?(@.missing)].type', []],
    ['[?(@.missing=="x")].type', []],
    // Values of different kinds cannot be compared: nothing at all is found.
    ['[?(@.type==1)].type', []],
    ['[?(@.maybe=="x")].type', []],
    ['[?(@.ok<true)].type', []],
    ['[?(@.n=>3)].type', []],
  ]
  for (const [path, expected] of table) assert.deepEqual(find(`.conditions${path}`), expected, path)
  assert.deepEqual(find('.name[?(@.x)]'), [])
})

test('what is no path does not compile', () => {
  const wrong = [
    '.list[',
    '.list[a]',
    '.list[-]',
    '.a[?(@.b=="c"]',
    '.a[?(@.b',
    '....a',
    '"open',
    '.a #',
    '"\\q"',
    '.a}',
  ]
  for (const path of wrong) assert.equal(compileJsonPath(path), undefined, path)
})

test('inherited properties are not fields', () => {
  for (const path of ['.constructor', '.map.toString', '.__proto__', '.list.length']) assert.deepEqual(find(path), [])
})

test('any text either fails to compile or finds something without throwing', () => {
  const piece = fc.constantFrom(
    '.',
    '..',
    '[',
    ']',
    '[?(',
    ')',
    '@',
    '*',
    "'",
    '"',
    ',',
    ':',
    '-',
    '1',
    'a',
    '==',
    '\\',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
      const find = compileJsonPath(pieces.join(''))
      if (find !== undefined) assert.ok(Array.isArray(find(root)))
    }),
    { numRuns: 2000 },
  )
})

test('[A8] what multiplies its findings is given up, whatever it is spelled with', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 'x' : [nested(depth - 1), nested(depth - 1)])
  const spelled = {
    unions: `.a${'[0,0]'.repeat(16)}`,
    wildcards: `.a${'[*]'.repeat(16)}`,
    slices: `.a${'[0:2]'.repeat(16)}`,
    descents: `.a${'..[*]'.repeat(8)}`,
    'unions of what is there once': `.a${'[0,0]'.repeat(40)}`,
    'a filter': `.a${'[?(@[0,0,0,0][0,0,0,0][0,0,0,0][0,0,0,0][0,0,0,0][0,0,0,0][0,0,0,0][0,0,0,0])]'}`,
  }
  let once: unknown = 'x'
  for (let depth = 0; depth < 40; depth++) once = [once]
  const wide = { a: nested(16) }
  for (const [what, path] of Object.entries(spelled)) {
    const find = compileJsonPath(path)
    assert.ok(find, what)
    assert.deepEqual(find(what.includes('once') ? { a: once } : wide), [], what)
  }
  assert.deepEqual(compileJsonPath('.a[0,0][0,0][*]')?.({ a: nested(3) }).length, 8)
})

test('[A8] a step that finds much pays before it has it, and one pass over a large object is nothing much', () => {
  const numbers = Array.from({ length: 400_000 }, (_, at) => at)
  const deep: { x?: unknown } = {}
  let at = deep
  for (let depth = 0; depth < 60; depth++) at = at.x = {} as { x?: unknown }
  at.x = numbers
  const names = Array.from({ length: 10_000 }, (_, number) => ({ m: { name: `n${number}` }, v: number }))
  const keys = (count: number) => Array(count).fill("'a'").join(',')
  // Each would be 400,000,000 findings or visits, more than a process has room for.
  for (const path of [`.spec[${keys(1_000)}][*]`, `.spec[${keys(1_000)}][0:400000]`, '..x..x..x..y']) {
    const find = compileJsonPath(path)
    assert.ok(find, path.slice(0, 20))
    assert.deepEqual(find({ spec: { a: numbers }, deep }), [], path.slice(0, 20))
  }
  assert.deepEqual(compileJsonPath('.a[?(@.m.name=="n9999")].v')?.({ a: names }), [9_999])
  assert.equal(compileJsonPath('.a[*].v')?.({ a: names }).length, 10_000)
})
