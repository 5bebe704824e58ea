import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytewise } from './goformat.ts'
import { parseYaml } from './yaml/yaml.ts'

test('texts are ordered by the bytes of their UTF-8', () => {
  const texts = [
    '',
    'a',
    'a\u0000',
    'ab',
    'b',
    '\u007f',
    '\u00e9',
    '\u07ff',
    '\ud7ff',
    '\ue000',
    '\ufffd',
    '\uffff',
    '😀',
    '😀a',
    '\u{10ffff}',
  ]
  for (const a of texts) {
    for (const b of texts) {
      const bytes = Buffer.compare(Buffer.from(a), Buffer.from(b))
      assert.equal(Math.sign(bytewise(a, b)), bytes, JSON.stringify([a, b]))
    }
  }
})

test('[A8] putting the keys of a YAML document in order makes no buffers', async () => {
  const { from } = Buffer
  let made = 0
  Buffer.from = ((...given: Parameters<typeof from>) => {
    made++
    return from(...given)
  }) as typeof from
  try {
    const text = Array.from({ length: 500 }, (_, at) => `k${(at * 7) % 500}: 1`).join('\n')
    assert.equal(((await parseYaml(text)) as ReadonlyMap<string, unknown>).size, 500)
  } finally {
    Buffer.from = from
  }
  assert.equal(made, 0)
})
