import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { goPattern } from './pattern.ts'

const cases: Array<[pattern: string, yes: string[], no: string[]]> = [
  ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', ['a', 'a-b'], ['-a', 'A']],
  ['(?i)^abc$', ['ABC'], ['abcd']],
  ['\\Aabc\\z', ['abc'], ['abc\n', 'xabc']],
  ['^[[:alpha:]_]+$', ['a_B'], ['1']],
  ['^\\pL+$', ['é'], ['1']],
  ['^\\p{Greek}+$', ['αβ'], ['a']],
  ['^a\\-b\\_c\\@d\\/e$', ['a-b_c@d/e'], ['ab']],
  ['^[\\w\\-\\.]+$', ['a-b.c'], ['a b']],
  ['^(?P<name>x)+$', ['xx'], ['y']],
  ['^{a}$', ['{a}'], ['a']],
  ['^x{2,3}$', ['xx'], ['x']],
  ['^[]a]+$', [']a'], ['b']],
  ['^\\Qa.b\\E$', ['a.b'], ['axb']],
  ['^\\s$', [' ', '\t'], ['\u00a0']],
  ['^[^/]+/[^/]+$', ['a/b'], ['a']],
  ['^.$', ['😀'], ['ab']],
  ['^(|true|false)$', ['', 'true'], ['x']],
]

for (const [pattern, yes, no] of cases) {
  test(`pattern ${pattern}`, () => {
    for (const text of yes) assert.ok(goPattern(pattern, text).test(text), `should match ${JSON.stringify(text)}`)
    for (const text of no) assert.ok(!goPattern(pattern, text).test(text), `should not match ${JSON.stringify(text)}`)
  })
}

test('pattern: what RE2 does not know is refused', () => {
  for (const pattern of ['[', '(', '\\1', '*a', 'a\\']) assert.throws(() => goPattern(pattern), SyntaxError, pattern)
})

test('pattern: a quoted text matches itself and nothing else', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme-ascii' }), fc.string(), (text, other) => {
      fc.pre(!text.includes('\\E'))
      const pattern = (on: string) => goPattern(`^\\Q${text}\\E$`, on)
      return pattern(text).test(text) && (other === text || !pattern(other).test(other))
    }),
  )
})

test('pattern: one that backtracks without end still answers', () => {
  assert.equal(goPattern('^(a+)+$').test(`${'a'.repeat(200)}b`), false)
  assert.equal(goPattern('^([a-z0-9]+-?)*[a-z0-9]+$').test(`${'a1'.repeat(100)}_`), false)
})
