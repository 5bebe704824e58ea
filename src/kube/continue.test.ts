import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeContinue, encodeContinue } from './continue.ts'

const wire = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const v = 'meta.k8s.io/v1'

test('a token comes back as it was given, right after its last key', () => {
  const segment = fc.stringMatching(/^[a-z0-9]([-.a-z0-9]{0,8}[a-z0-9])?$/)
  fc.assert(
    fc.property(segment, segment, fc.nat(), fc.nat(), (namespace, name, version, seconds) => {
      const key = `${namespace}/${name}`
      for (const prefix of ['', `${namespace}/`]) {
        const token = encodeContinue(key, version + 1, seconds, prefix)
        assert.match(token, /^[A-Za-z0-9_-]+$/)
        assert.deepEqual(decodeContinue(token, prefix), {
          start: `${key}\0`,
          version: version + 1,
          issuedSeconds: seconds,
        })
      }
    }),
  )
})

test("the form is kube-apiserver's, both ways", () => {
  const fields = JSON.parse(Buffer.from(encodeContinue('n/p', 7, 99), 'base64url').toString())
  assert.deepEqual(fields, { v, rv: 7, start: 'n/p\0', t: 99 })
  assert.deepEqual(decodeContinue(wire({ v, rv: 292, start: '/p\0' }), 'n/'), {
    start: 'n/p\0',
    version: 292,
    issuedSeconds: undefined,
  })
  const latest = encodeContinue('p', undefined, 1)
  assert.equal(JSON.parse(Buffer.from(latest, 'base64url').toString()).rv, -1)
  assert.equal(decodeContinue(latest).version, undefined)
})

test('decodeContinue() complains in the words of kube-apiserver', () => {
  const into = 'into Go struct field continueToken'
  const cases: [string, string][] = [
    ['!!', ': illegal base64 data at input byte 0'],
    ['a', ': illegal base64 data at input byte 0'],
    ['abcde', ': illegal base64 data at input byte 4'],
    ['abc', ": invalid character 'i' looking for beginning of value"],
    [Buffer.from('{"v":').toString('base64url'), ': unexpected end of JSON input'],
    [wire([]), ': json: cannot unmarshal array into Go value of type storage.continueToken'],
    [wire(null), ': server does not recognize this encoded version '],
    [wire({ v: 5 }), `: json: cannot unmarshal number ${into}.v of type string`],
    [wire({ v, rv: 1.5 }), `: json: cannot unmarshal number 1.5 ${into}.rv of type int64`],
    [wire({ v, rv: true }), `: json: cannot unmarshal bool ${into}.rv of type int64`],
    [wire({ v: 'x' }), ': server does not recognize this encoded version x'],
    [wire({ v }), ': incorrect encoded start resourceVersion (version meta.k8s.io/v1)'],
    [wire({ v, rv: 5 }), ': encoded start key empty (version meta.k8s.io/v1)'],
    [wire({ v, rv: 5, start: '../x' }), ': ../x'],
    [wire({ v, rv: 5, start: 'a//b' }), ': a//b'],
    [wire({ v, rv: 5, start: 'a/' }), ': a/'],
    [wire({ v, rv: 5, start: '//a' }), ': //a'],
  ]
  for (const [token, end] of cases) {
    const message = `invalid continue token: continue key is not valid${end}`
    assert.throws(() => decodeContinue(token), { message, code: 400 }, token)
  }
})
