import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelKeyFaults } from './labels.ts'
import { asWholeName, dns1035LabelFaults, dnsLabelFaults, dnsSubdomainFaults } from './names.ts'

test('each rule accepts and refuses what the real one does', () => {
  for (const good of ['a', 'a-b', '1a']) assert.deepEqual(dnsLabelFaults(good), [])
  assert.deepEqual(dnsLabelFaults('a.b'), ['must not contain dots'])
  assert.match(dnsLabelFaults('A')[0] ?? '', /^a lowercase RFC 1123 label .*'my-name', {2}or '123-abc'/)
  assert.deepEqual(dns1035LabelFaults('a-1'), [])
  assert.match(dns1035LabelFaults('1a')[0] ?? '', /^a DNS-1035 label .*'my-name', {2}or 'abc-123'/)
  assert.deepEqual(dnsSubdomainFaults('a.b-c.1'), [])
  assert.match(dnsSubdomainFaults('a..b')[0] ?? '', /^a lowercase RFC 1123 subdomain/)
})

test('too long is told in characters, only the prefix of a label key in bytes', () => {
  assert.deepEqual(dns1035LabelFaults('a'.repeat(64)), ['must be no more than 63 characters'])
  assert.deepEqual(dnsSubdomainFaults('a'.repeat(254)), ['must be no more than 253 characters'])
  assert.deepEqual(labelKeyFaults(`${'a'.repeat(254)}/b`), ['prefix part must be no more than 253 bytes'])
})

test('a prefix may end in a dash', () => {
  assert.deepEqual(dnsLabelFaults(asWholeName('web-')), [])
  assert.notDeepEqual(dnsLabelFaults(asWholeName('web_')), [])
  assert.notDeepEqual(dnsLabelFaults(asWholeName('-')), [])
})
