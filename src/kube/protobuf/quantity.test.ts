import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalQuantity, isPlainQuantity } from './quantity.ts'

/** As Kubernetes' own reader gave them back. */
const spellings: Record<string, string> = {
  '0': '0',
  '00': '0',
  '-0': '0',
  '+': '0',
  '.5': '500m',
  '1.': '1.',
  '+5': '+5',
  '1.500': '1.500',
  '1e3': '1e3',
  '1E3': '1E3',
  '12e4': '120e3',
  '0.1n': '1n',
  '1000n': '1u',
  '1000m': '1',
  '1500m': '1500m',
  '-1.5Gi': '-1536Mi',
  '0.0001Ki': '102400u',
  '1024': '1024',
  '1000Ki': '1000Ki',
  '1024Ki': '1Mi',
  '64Mi': '64Mi',
  '1.5Gi': '1536Mi',
  '9Ei': '9223372036854775807',
  '1000T': '1P',
  '1000E': '1',
  '000100': '000100',
}

test('one spelling for each amount', () => {
  for (const [text, spelling] of Object.entries(spellings)) assert.equal(canonicalQuantity(text), spelling, text)
})

test('what is none is refused in Kubernetes’ words', () => {
  for (const text of ['', '1x', '1 ', '1Ki5x']) assert.throws(() => canonicalQuantity(text), /must match/, text)
  for (const text of ['1Kii', '1ki', '1e', '1E+', '1i', '--1']) {
    assert.throws(() => canonicalQuantity(text), /unable to parse quantity's suffix/, text)
  }
  assert.throws(() => canonicalQuantity('1e999999999'), /unable to parse numeric part/)
})

test('what is plain at a glance stays as it is', () => {
  const number = fc.nat(2 ** 31).map(String)
  const suffix = fc.constantFrom('', 'n', 'u', 'm', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'K', 'i', 'x')
  fc.assert(
    fc.property(fc.oneof(number, fc.constantFrom('1024', '1000', '8', '0', '01', '')), suffix, (digits, letters) => {
      const text = `x${digits}${letters}y`
      if (isPlainQuantity(Buffer.from(text), 1, text.length - 1)) {
        assert.equal(canonicalQuantity(`${digits}${letters}`), `${digits}${letters}`)
      }
    }),
    { numRuns: 2000 },
  )
  for (const text of ['100m', '64Mi', '1', '0', '1500m', '32Gi', '16384256Ki']) {
    assert.ok(isPlainQuantity(Buffer.from(text), 0, text.length), text)
  }
})
