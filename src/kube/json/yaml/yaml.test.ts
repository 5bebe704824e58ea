import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { equalJson, fromPlain, JsonError, parseJson, printJson } from '../json.ts'
import { parseYaml, printYaml, repeatedKeys } from './yaml.ts'

const testdata = (name: string): Buffer => readFileSync(new URL(`./testdata/${name}`, import.meta.url))

test('prints what kube-apiserver 1.36.3 answers as application/yaml', () => {
  assert.equal(printYaml(parseJson(testdata('configmap.json'))), testdata('configmap.yaml').toString())
})

test('reads what kube-apiserver answers as application/yaml', async () => {
  const value = await parseYaml(testdata('configmap.yaml'))
  assert.ok(equalJson(value, parseJson(testdata('configmap.json'))))
})

const value = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' }).map(fromPlain)
const words = fc
  .array(fc.constantFrom('word', "it's", '#', ':', '-', '', '\n', '\t', '😀', '"', '1', 'null', 'é', '\\'), {
    maxLength: 40,
  })
  .map((list) => list.join(' '))

test('any value survives printing and reading', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(value, words, fc.dictionary(words, words).map(fromPlain)), async (any) => {
      const original = fromPlain({ member: any, list: [any, [any]] })
      const printed = printYaml(original)
      assert.ok(equalJson(await parseYaml(printed), original), printed)
    }),
    { numRuns: 400 },
  )
})

test('integers beyond 2^53 survive both ways, and strings stay strings', async () => {
  const source =
    '{"a":9223372036854775807,"b":-9223372036854775808,"c":18446744073709551615,"d":"123","e":"true","f":"y"}'
  const printed = printYaml(parseJson(source))
  assert.equal(
    printed,
    'a: 9223372036854775807\nb: -9223372036854775808\nc: 18446744073709551615\nd: "123"\ne: "true"\nf: "y"\n',
  )
  assert.equal(printJson(await parseYaml(printed)), source)
})

test('plain scalars mean what they mean to Go', async () => {
  const meanings: [string, string][] = [
    ['yes', 'true'],
    ['Off', 'false'],
    ['~', 'null'],
    ['', 'null'],
    ['# nothing', 'null'],
    ['0x1f', '31'],
    ['0b11', '3'],
    ['017', '15'],
    ['0o17', '15'],
    ['08', '8'],
    ['1_000', '1000'],
    ['+5', '5'],
    ['1.0', '1'],
    ['.5', '0.5'],
    ['1e3', '1000'],
    ['2026-01-01T00:00:00Z', '"2026-01-01T00:00:00Z"'],
    ['1:30', '"1:30"'],
    ['!!str 1', '"1"'],
    ['{1: a, true: b}', '{"1":"a","true":"b"}'],
    ['{a: 1, a: 2}', '{"a":2}'],
    ['{c: n, b: Y, a: {y: 1, x: 2}}', '{"a":{"true":1,"x":2},"b":true,"c":false}'],
    ['x: &a {b: 1, c: 2}\nz:\n  <<: *a\n  c: 3', '{"x":{"b":1,"c":2},"z":{"b":1,"c":3}}'],
    ['{"__proto__": {"a": 1}}', '{"__proto__":{"a":1}}'],
  ]
  for (const [source, json] of meanings) assert.equal(printJson(await parseYaml(source)), json, source)
})

test('what cannot be JSON, or would never end, is refused', async () => {
  const bomb = Array.from(
    { length: 40 },
    (_, i) => `a${i}: &a${i} [${i === 0 ? 'x' : `*a${i - 1},*a${i - 1},*a${i - 1}`}]`,
  )
  for (const source of ['a: [', 'a: b\n  c: d', '.inf', '{null: 1}', '&a [*a]', bomb.join('\n')]) {
    await assert.rejects(parseYaml(source), JsonError, source)
  }
  await assert.rejects(parseYaml('['.repeat(100_000)), JsonError)
})

test('of several documents the first counts', async () => {
  assert.equal(await parseYaml('---\na\n---\nb'), 'a')
})

test('keys that stand twice are named with their lines', async () => {
  const source = Buffer.from('a: 1\nb:\n  c: 1\n  c: 2\n1: x\n1: y\na: 3\n')
  assert.deepEqual(await repeatedKeys(source), [
    'line 4: key "c" already set in map',
    'line 6: key 1 already set in map',
    'line 7: key "a" already set in map',
  ])
  assert.deepEqual(await repeatedKeys(Buffer.from('{"a":{"a":1},"b":[{"a":1},{"a":2}]}')), [])
})

test('[A8] others are let in between two readings of a text, and a long one is not read for each of its complaints', async () => {
  let pauses = 0
  const between = async () => {
    pauses++
  }
  const twice = (keys: number) => Array.from({ length: keys }, (_, at) => `k${at % (keys / 2)}: 1`).join('\n')
  const short = await repeatedKeys(Buffer.from(twice(100)), between)
  assert.deepEqual([short.length, pauses], [20, 40])
  pauses = 0
  const long = await repeatedKeys(Buffer.from(`${twice(100)}\n# ${'x'.repeat(600_000)}`), between)
  assert.deepEqual([long.length, pauses], [2, 4])
  assert.deepEqual(long, short.slice(0, 2))
  pauses = 0
  await parseYaml('a: 1', between)
  assert.equal(pauses, 2)
})

test('[A8] a small text stays small: what aliases make of it is in proportion to it', async () => {
  const tens = (levels: number, leaf: string) => {
    const lines = [`a0: &a0 [${Array(10).fill(leaf)}]`]
    for (let at = 1; at < levels; at++) lines.push(`a${at}: &a${at} [${Array(10).fill(`*a${at - 1}`)}]`)
    return lines.join('\n')
  }
  const long = 'x'.repeat(20_000)
  const digits = '1'.repeat(20_000)
  const keys = Array.from({ length: 100 }, (_, at) => `a-long-key-by-the-name-of-${at}: 1`)
  for (const source of [
    `a: &a ${digits}\nb: [${Array(900).fill('*a')}]`,
    `? &a ${digits}\n: 1\nb: [${Array(900).fill('{*a : 1}')}]`,
    tens(6, 'x'),
    `a: &a ${long}\nb: [${Array(900).fill('*a')}]`,
    `? &a ${long}\n: 1\nb: [${Array(900).fill('{*a : 1}')}]`,
    `a: &a {${keys}}\nb: [${Array(900).fill('*a')}]`,
  ]) {
    await assert.rejects(parseYaml(source), /excessive aliasing/, source.slice(0, 40))
  }
  for (const source of [tens(4, 'x'), `a: &a ${long}\nb: [*a, *a, *a]`, `a: ${'x'.repeat(1 << 20)}`])
    assert.ok(await parseYaml(source))
})
