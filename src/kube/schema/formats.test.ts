import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effectiveFormat, parseDuration, stringFormat } from './formats.ts'

const cases: Array<[format: string, yes: string[], no: string[]]> = [
  ['date-time', ['2024-01-01T00:00:00Z', '2024-01-01T00:00:00.5+01:00'], ['2024-01-01', '2024-01-01T25:00:00Z']],
  ['date', ['2024-02-29'], ['2023-02-29', '2024-1-1']],
  ['email', ['a@b', 'A <a@b.c>', 'a.b+c@d-e.f'], ['a', 'a@', '@b', 'a b@c']],
  ['ipv4', ['1.2.3.4', '01.2.3.4'], ['1.2.3', '::1']],
  ['ipv6', ['::1', 'fe80::1'], ['1.2.3.4', 'fe80::1%eth0']],
  ['cidr', ['10.0.0.0/8', 'fd00::/64'], ['10.0.0.0', '10.0.0.0/33']],
  ['mac', ['00:11:22:33:44:55', '0011.2233.4455'], ['00:11', '00-11:22:33:44:55']],
  ['uuid', ['123e4567-e89b-12d3-a456-426614174000', '123E4567E89B12D3A456426614174000'], ['123']],
  ['uuid4', ['123e4567-e89b-42d3-a456-426614174000'], ['123e4567-e89b-12d3-a456-426614174000']],
  ['byte', ['aGk=', 'aGVsbG8='], ['aGk', '!']],
  ['uri', ['https://a.b/c?d=e', '/x', 'urn:a:b'], ['a b', 'x', '']],
  ['hostname', ['a.example', 'localhost'], ['-a', 'a_b']],
  ['isbn', ['0321751043', '978-0321751041'], ['0321751044']],
  ['creditcard', ['4111 1111 1111 1111'], ['4111 1111 1111 1112']],
  ['hexcolor', ['#fff', 'FFEEDD'], ['#ffff']],
  ['rgbcolor', ['rgb(0, 10,255)'], ['rgb(0,0,256)']],
  ['ssn', ['111-22-3333'], ['111223333']],
  ['duration', ['1h30m', '-1.5s', '0', '3 days'], ['1', 'x']],
  ['password', ['anything'], []],
  ['k8s-long-name', ['a.b-c'], ['a..b', 'A']],
]

for (const [format, yes, no] of cases) {
  test(`format ${format}`, () => {
    const check = stringFormat(format)
    assert.ok(check !== undefined)
    for (const text of yes) assert.ok(check(text), `${text} should be a ${format}`)
    for (const text of no) assert.ok(!check(text), `${text} should not be a ${format}`)
  })
}

test('format: an unknown one, or one for another type, counts for nothing', () => {
  assert.equal(effectiveFormat('string', 'zebra'), '')
  assert.equal(effectiveFormat('integer', 'date'), '')
  assert.equal(effectiveFormat('object', 'date'), '')
  assert.equal(effectiveFormat('string', 'constructor'), '')
  assert.equal(effectiveFormat('integer', 'int32'), 'int32')
})

test('format: durations in nanoseconds', () => {
  assert.equal(parseDuration('1h1m1s'), 3661e9)
  assert.equal(parseDuration('-1.5s'), -1.5e9)
  assert.equal(parseDuration('2 weeks'), 14 * 86400e9)
  assert.equal(parseDuration('later'), undefined)
})

test('format: no text of any length holds anybody up', () => {
  const texts = ['1', ' ', 'a.', '1 ', 'a <', 'a-', '0ns', '" ', '1s', '0', 'QUJD'].map((part) =>
    part.repeat(1_000_000),
  )
  const names = ['duration', 'email', 'hostname', 'creditcard', 'isbn', 'datetime', 'byte', 'uri', 'rgbcolor', 'cidr']
  // Each of them takes minutes where every way to part the text is tried.
  for (const name of names) for (const text of texts) assert.equal(typeof stringFormat(name)?.(text), 'boolean')
  assert.equal(stringFormat('byte')?.(texts.at(-1) ?? ''), true)
})
