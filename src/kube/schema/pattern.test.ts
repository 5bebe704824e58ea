import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allMatches, firstMatch, goPattern, matches, TEXT_STEPS_MAX } from './pattern.ts'

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
    for (const text of yes) assert.equal(matches(pattern, text), true, `should match ${JSON.stringify(text)}`)
    for (const text of no) assert.equal(matches(pattern, text), false, `should not match ${JSON.stringify(text)}`)
  })
}

test('pattern: a quoted text matches itself and nothing else', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme-ascii' }), fc.string(), (text, other) => {
      fc.pre(!text.includes('\\E'))
      const test = (on: string) => matches(`^\\Q${text}\\E$`, on)
      return test(text) === true && (other === text || test(other) === false)
    }),
  )
})

/** All of them as kube-apiserver 1.36.3 says them. */
const faults: Record<string, string> = {
  '(': 'missing closing ): `(`',
  '((a)': 'missing closing ): `((a)`',
  '(?:a': 'missing closing ): `(?:a`',
  ')': 'unexpected ): `)`',
  '(a))': 'unexpected ): `(a))`',
  '[': 'missing closing ]: `[`',
  '[]': 'missing closing ]: `[]`',
  '[^]': 'missing closing ]: `[^]`',
  '[a-': 'missing closing ]: `[a-`',
  '[[:alpha:]': 'missing closing ]: `[[:alpha:]`',
  '[[:alpha': 'missing closing ]: `[[:alpha`',
  '*': 'missing argument to repetition operator: `*`',
  'a|*': 'missing argument to repetition operator: `*`',
  '(*)': 'missing argument to repetition operator: `*`',
  '{2}': 'missing argument to repetition operator: `{2}`',
  '\\Q\\E*': 'missing argument to repetition operator: `*`',
  'a**': 'invalid nested repetition operator: `**`',
  'a???': 'invalid nested repetition operator: `???`',
  'a{2,3}{4}': 'invalid nested repetition operator: `{2,3}{4}`',
  'x*?*': 'invalid nested repetition operator: `*?*`',
  'a{3,2}': 'invalid repeat count: `{3,2}`',
  'a{1,1001}': 'invalid repeat count: `{1,1001}`',
  '[b-a]': 'invalid character class range: `b-a`',
  '[[:foo:]]': 'invalid character class range: `[:foo:]`',
  '\\pX': 'invalid character class range: `\\pX`',
  '\\p{Foo}': 'invalid character class range: `\\p{Foo}`',
  '\\p{Greek': 'invalid character class range: `\\p{Greek`',
  'a\\': 'trailing backslash at end of expression: ``',
  '[\\': 'trailing backslash at end of expression: ``',
  '[a-\\d]': 'invalid escape sequence: `\\d`',
  '\\8': 'invalid escape sequence: `\\8`',
  '\\1': 'invalid escape sequence: `\\1`',
  '\\Z': 'invalid escape sequence: `\\Z`',
  '\\u0041': 'invalid escape sequence: `\\u`',
  '\\xg': 'invalid escape sequence: `\\xg`',
  '\\x{110000}': 'invalid escape sequence: `\\x{110000`',
  '\\é': 'invalid escape sequence: `\\é`',
  '(?=a)': 'invalid or unsupported Perl syntax: `(?=`',
  '(?!a)b': 'invalid or unsupported Perl syntax: `(?!`',
  '(?>a)': 'invalid or unsupported Perl syntax: `(?>`',
  '(?P=n)': 'invalid or unsupported Perl syntax: `(?P`',
  '(?x)a': 'invalid or unsupported Perl syntax: `(?x`',
  '(?i': 'invalid or unsupported Perl syntax: `(?i`',
  '(?<=a)b': 'invalid named capture: `(?<=a)b`',
  '(?P<>a)': 'invalid named capture: `(?P<>`',
  '(?P<n': 'invalid named capture: `(?P<n`',
}

for (const [pattern, fault] of Object.entries(faults)) {
  test(`pattern ${pattern} is refused in Go’s words`, () => {
    assert.throws(() => goPattern(pattern), { name: 'SyntaxError', message: fault })
  })
}

test('what RE2 knows is not complained about', () => {
  const known = [
    '^*',
    'a??',
    'x*?',
    '{',
    'a{',
    'a{,3}',
    'a{x}',
    'a{0}',
    '[\\d-z]',
    '\\01',
    '\\-',
    '\\_',
    '(?i:a)',
    '(?-i)a',
  ]
  const more = [
    '(?i-s:a)',
    '[[:^alpha:]]',
    '[[.a.]]',
    '\\pN',
    '\\Q(',
    '\\Qab\\E+',
    '$*',
    '\\b*',
    '(|a)*',
    '()',
    '(?U)a',
  ]
  for (const pattern of [...known, ...more, '(?<n>a)', '(?P<n>a)', '[]a]', '[a-]', '\\x{10FFFF}', '\\z', '😀+', '']) {
    assert.ok(goPattern(pattern).size > 0, pattern)
  }
})

/** Each makes an engine that backtracks try every way to part the text, with and without characters beyond 16 bits. */
const hostile: Array<[pattern: string, text: string]> = [
  ['^(a+)+$', 'a'],
  ['^([a-z0-9]+-?)*[a-z0-9]+$', 'a1'],
  ['^(a|aa)+$', 'a'],
  ['(x+x+)+y', 'x'],
  ['^(?:[a-z]{1,63}\\.?){1,15}$', 'a'],
  ['^(\\w+\\s?)*$', 'a '],
]

for (const [pattern, text] of hostile) {
  test(`pattern ${pattern} answers whatever it is shown`, () => {
    for (const end of ['!', '😀', '\ud83d']) assert.equal(matches(pattern, text.repeat(5_000) + end), false)
  })
}

test('pattern: a text that is too long for it gets no answer', () => {
  const { size } = goPattern('^[a-z]*$')
  const fitting = TEXT_STEPS_MAX / size - 1
  assert.equal(matches('^[a-z]*$', 'a'.repeat(fitting)), true)
  assert.equal(matches('^[a-z]*$', 'a'.repeat(fitting + 1)), undefined)
  assert.equal(firstMatch('^[a-z]*$', 'a'.repeat(fitting + 1)), undefined)
  assert.equal(allMatches('^[a-z]*$', 'a'.repeat(fitting + 1), -1), undefined)
})

test('pattern: one that would be too large is refused before it is made', () => {
  for (const large of [
    '(?:a{100}b{100}){6}'.repeat(10),
    'a?'.repeat(10_001),
    `[${'a'.repeat(100_000)}]`,
    '(a|b){900}'.repeat(6),
  ]) {
    assert.throws(() => goPattern(large), { name: 'SyntaxError', message: /^expression too large: / })
  }
  // Repetitions multiply, and what stands in a class or behind a backslash does not count twice.
  for (const fitting of [
    '(?:[()]{99}\\({99}){9}',
    '[[:alpha:](]{1000}',
    '[]({]{1000}',
    '\\w{1,63}(\\.\\w{1,63}){0,15}',
  ]) {
    assert.ok(goPattern(fitting).size < 10_000)
  }
})

test('pattern: what matches is found, all of it or some', () => {
  assert.equal(firstMatch('[0-9]+', 'a12b345'), '12')
  assert.equal(firstMatch('x', 'a12b345'), '')
  assert.deepEqual(allMatches('[0-9]+', 'a12b345', -1), ['12', '345'])
  assert.deepEqual(allMatches('[0-9]+', 'a12b345', 1), ['12'])
  assert.deepEqual(allMatches('[0-9]+', 'a12b345', 0), [])
})
