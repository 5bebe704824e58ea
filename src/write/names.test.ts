import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { generateName, nameFaults, segmentFaults } from './names.ts'

test('each rule accepts and refuses what the real one does', () => {
  assert.deepEqual(nameFaults('subdomain', 'a.b-c.1'), [])
  assert.match(nameFaults('subdomain', 'A_b')[0] ?? '', /^a lowercase RFC 1123 subdomain must consist of/)
  assert.deepEqual(nameFaults('subdomain', 'n'.repeat(254)), ['must be no more than 253 characters'])
  assert.deepEqual(nameFaults('label', 'a.b'), ['must not contain dots'])
  assert.deepEqual(nameFaults('segment', 'system:Any_thing'), [])
  assert.deepEqual(nameFaults('segment', 'a/b%c'), ["may not contain '/'", "may not contain '%'"])
  assert.deepEqual(segmentFaults('..'), ["may not be '..'"])
})

test('a prefix may end in a dash', () => {
  assert.deepEqual(nameFaults('subdomain', 'web-', true), [])
  assert.notDeepEqual(nameFaults('subdomain', 'web-'), [])
  assert.notDeepEqual(nameFaults('subdomain', 'web_', true), [])
})

test('a generated name keeps as much of its base as fits and stays valid', () => {
  assert.equal(
    generateName('web-', () => 0),
    'web-bbbbb',
  )
  const base = fc.stringMatching(/^[a-z]([a-z0-9-]{0,100}[a-z0-9-])?$/)
  fc.assert(
    fc.property(base, fc.infiniteStream(fc.nat(26)), (text, numbers) => {
      const random = (below: number) => (numbers.next().value as number) % below
      const name = generateName(text, random)
      assert.ok(name.length <= 63 && name.startsWith(text.slice(0, 58)))
      assert.match(name.slice(-5), /^[bcdfghjklmnpqrstvwxz2456789]{5}$/)
      assert.deepEqual(nameFaults('label', name), [])
    }),
  )
})
