import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { subjectUids } from '../../kube/certificatesubject.ts'
import { admin } from './server.test-support.ts'

const uid = '2b0601040183c25302'
const commonName = '550403'

function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const length = content.length < 0x80 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const sequence = (...contents: readonly Buffer[]) => element(0x30, ...contents)

/** A certificate as far as its subject; `tag` is how the texts are kept. */
function certificate(names: readonly (readonly [string, string])[], { tag = 0x0c, version = true } = {}): Buffer {
  const pairs = names.map(([type, text]) => {
    return element(0x31, sequence(element(0x06, Buffer.from(type, 'hex')), element(tag, Buffer.from(text))))
  })
  const serial = element(0x02, Buffer.from([1]))
  const before = [...(version ? [element(0xa0, element(0x02, Buffer.from([2])))] : []), serial, sequence(), sequence()]
  return sequence(sequence(...before, sequence(), sequence(...pairs), sequence()), sequence())
}

test('the uids in the subject of a certificate are found, and nothing else', () => {
  assert.deepEqual(subjectUids(new X509Certificate(admin.cert).raw), [])
  for (const tag of [0x0c, 0x13, 0x16]) {
    for (const version of [true, false]) {
      const names = [
        [commonName, 'jane'],
        [uid, 'u-1'],
        ['2b0601040183c25303', 'other'],
      ] as const
      assert.deepEqual(subjectUids(certificate(names, { tag, version })), ['u-1'])
    }
  }
  assert.deepEqual(
    subjectUids(
      certificate([
        [uid, 'a'],
        [uid, 'b'],
      ]),
    ),
    ['a', 'b'],
  )
  assert.deepEqual(subjectUids(certificate([[uid, '']])), [''])
  assert.deepEqual(
    subjectUids(
      certificate([
        [commonName, 'x'.repeat(200)],
        [uid, 'u'],
      ]),
    ),
    ['u'],
  )
})

test('a uid that is no text makes all of them unreadable, and what is cut off does no harm', () => {
  assert.equal(subjectUids(certificate([[uid, 'u']], { tag: 0x04 })), undefined)
  const whole = certificate([
    [commonName, 'jane'],
    [uid, 'u-1'],
  ])
  for (let length = 0; length < whole.length; length++)
    assert.doesNotThrow(() => subjectUids(whole.subarray(0, length)))
})
