import assert from 'node:assert/strict'
import { test } from 'node:test'
import { re2Fault } from './re2.ts'

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
  test(`pattern ${pattern} is refused in Go’s words`, () => assert.equal(re2Fault(pattern), fault))
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
    assert.equal(re2Fault(pattern), undefined, pattern)
  }
})
