import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bitString, integer, octetString, oid, sequence, tagged, time } from './der.ts'

const hex = (bytes: Buffer) => bytes.toString('hex')

test('lengths: one byte below 128, then with a count', () => {
  assert.equal(hex(octetString(Buffer.alloc(127))).slice(0, 4), '047f')
  assert.equal(hex(octetString(Buffer.alloc(128))).slice(0, 6), '048180')
  assert.equal(hex(octetString(Buffer.alloc(65536))).slice(0, 10), '0483010000')
})

test('integers are positive and shortest', () => {
  assert.equal(hex(integer(Buffer.from([0, 0, 5]))), '020105')
  assert.equal(hex(integer(Buffer.from([0]))), '020100')
  assert.equal(hex(integer(Buffer.from([0x80]))), '02020080')
})

test('object identifiers', () => {
  assert.equal(hex(oid('1.2.840.10045.4.3.2')), '06082a8648ce3d040302')
  assert.equal(hex(oid('2.5.29.17')), '0603551d11')
})

test('years from 2050 take the long form', () => {
  assert.equal(time(Date.UTC(2049, 11, 31, 23, 59, 59)).toString('latin1'), '\x17\x0d491231235959Z')
  assert.equal(time(Date.UTC(2050, 0, 1)).toString('latin1'), '\x18\x0f20500101000000Z')
})

test('structures nest', () => {
  assert.equal(
    hex(sequence(tagged(0, integer(Buffer.from([2]))), bitString(Buffer.from([6]), 1))),
    '3009a00302010203020106',
  )
})
