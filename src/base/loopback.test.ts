import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopback } from './loopback.ts'

test('what never leaves this machine is told by its address, in every spelling of it', () => {
  for (const one of ['127.0.0.1', '127.9.8.7', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', '::ffff:7f00:1'])
    assert.ok(isLoopback(one), one)
  for (const one of ['10.0.0.1', '128.0.0.1', '::2', '::ffff:10.0.0.1', 'localhost', '', '127.0.0.1.example.com'])
    assert.ok(!isLoopback(one), one)
})
