import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedText } from './texts.ts'

function shared(quoted: string): string | undefined {
  const bytes = Buffer.from(`{"a":${quoted}}`)
  return sharedText(bytes, 5, bytes.length - 1)
}

test('a text is what stands between the quotes, also where another was in its place', () => {
  // Three times as many as there are places.
  for (let i = 0; i < 50_000; i++) assert.equal(shared(`"value-${i}"`), `value-${i}`)
  for (const text of ['', ' ', 'a', 'app.kubernetes.io/name', 'x'.repeat(64)]) assert.equal(shared(`"${text}"`), text)
})

test('what is escaped, not ASCII or long is left to others', () => {
  for (const quoted of ['"a\\nb"', '"\\u0061"', '"ä"', `"${'x'.repeat(65)}"`]) assert.equal(shared(quoted), undefined)
})
