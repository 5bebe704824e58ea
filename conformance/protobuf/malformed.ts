/** Bodies in protobuf that are no messages, or not those that are expected: each refused, in the real one's words. */
import { encodeMessage, type Message, messageOf, wrap } from '../../src/kube/protobuf/protobuf.ts'
import { type Case, type Group, post } from '../corpus.ts'
import { protobufType } from './ask.ts'

const name = 'malformed'
const core = `/api/v1/namespaces/${name}`
const type = { apiVersion: 'v1', kind: 'ConfigMap' }

const raw = encodeMessage(
  messageOf('v1', 'ConfigMap') as Message,
  Buffer.from(JSON.stringify({ metadata: { name: 'made', labels: { a: 'b' } }, data: { key: 'value', other: 'x' } })),
)
const whole = wrap(type, raw)
const pod = encodeMessage(
  messageOf('v1', 'Pod') as Message,
  Buffer.from(JSON.stringify({ metadata: { name: 'pod' }, spec: { containers: [{ name: 'c', image: 'i' }] } })),
)

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex')

function sent(what: string, body: Buffer, path = `${core}/configmaps`): Case {
  return post(what, path, body, { headers: { 'content-type': protobufType } })
}

/** Every prefix of a message: most end inside of a field, some behind one and are messages themselves. */
const prefixes = Array.from({ length: raw.length }, (_, length) =>
  sent(`the first ${length} bytes`, wrap(type, raw.subarray(0, length)), `${core}/configmaps?dryRun=All`),
)

const around: Case[] = [
  sent('nothing', Buffer.alloc(0)),
  sent('no magic', raw),
  sent('half a magic', Buffer.from('k8')),
  sent('another magic', Buffer.concat([Buffer.from('k8s\u0001'), whole.subarray(4)])),
  sent('magic alone', Buffer.from('k8s\0')),
  sent('JSON', Buffer.from('{"kind":"ConfigMap"}')),
  ...[5, 6, 8, 12, 20, whole.length - 5, whole.length - 4, whole.length - 2, whole.length - 1].map((length) =>
    sent(`the envelope up to ${length - whole.length}`, whole.subarray(0, length)),
  ),
  sent('something behind the envelope', Buffer.concat([whole, bytes('ff')])),
  sent('an unknown field behind the envelope', Buffer.concat([whole, bytes('2a 01 78')])),
  sent('a raw of another wire type', Buffer.concat([Buffer.from('k8s\0'), bytes('10 01')])),
  sent('a field without a number', Buffer.concat([Buffer.from('k8s\0'), bytes('02 00')])),
  sent('an endless varint', Buffer.concat([Buffer.from('k8s\0'), bytes('ff ff ff ff ff ff ff ff ff ff 01')])),
  sent('an end of no group', Buffer.concat([Buffer.from('k8s\0'), bytes('0c')])),
]

const kinds: Case[] = [
  sent('no type', wrap({ apiVersion: '', kind: '' }, raw)),
  sent('no version', wrap({ apiVersion: '', kind: 'ConfigMap' }, encodeNamed('no-version'))),
  sent('no kind', wrap({ apiVersion: 'v1', kind: '' }, encodeNamed('no-kind'))),
  sent('another kind', wrap({ apiVersion: 'v1', kind: 'Pod' }, pod)),
  sent('another kind with the wrong message', wrap({ apiVersion: 'v1', kind: 'Pod' }, raw)),
  sent('an unknown kind', wrap({ apiVersion: 'v1', kind: 'Nothing' }, raw)),
  sent('an unknown group', wrap({ apiVersion: 'nobody.example/v1', kind: 'ConfigMap' }, raw)),
  sent('a version with slashes', wrap({ apiVersion: 'a/b/c', kind: 'ConfigMap' }, raw)),
  sent('another version', wrap({ apiVersion: 'v2', kind: 'ConfigMap' }, raw)),
  sent('a list', wrap({ apiVersion: 'v1', kind: 'ConfigMapList' }, Buffer.alloc(0))),
  sent('nothing inside', wrap(type, Buffer.alloc(0))),
  sent('an encoding inside', Buffer.concat([whole.subarray(0, -4), bytes('1a 04 67 7a 69 70 22 00')])),
  sent('a content type inside', Buffer.concat([whole.subarray(0, -4), bytes('1a 00 22 01 78')])),
]

const fields: Case[] = (
  [
    ['metadata as a number', '08 01'],
    ['metadata as 64 bits', '09 00 00 00 00 00 00 00 00'],
    ['metadata as 32 bits', '0d 00 00 00 00'],
    ['metadata as a group', '0b 0c'],
    ['an illegal wire type', '0e'],
    ['a length beyond the end', '0a 7f 00'],
    ['a length of four gigabytes', '0a ff ff ff ff 0f'],
    ['a negative length', '0a ff ff ff ff ff ff ff ff ff 01'],
    ['a name with a NUL', '0a 05 0a 03 61 00 62'],
    ['an unknown field', '0a 05 0a 03 75 6e 6b fa 01 02 78 79'],
    ['an unknown group', '0a 05 0a 03 67 72 70 fb 01 08 01 fc 01'],
    ['an unknown group without an end', '0a 05 0a 03 67 72 70 fb 01 08 01'],
    ['a field twice', '0a 05 0a 03 6f 6e 65 0a 05 0a 03 74 77 6f'],
    ['an entry of a map without a key', '0a 05 0a 03 6e 6f 6b 12 03 12 01 78'],
    ['an entry of a map without a value', '0a 05 0a 03 6e 6f 76 12 03 0a 01 78'],
    ['an entry of a map with more', '0a 05 0a 03 6d 6f 72 12 09 0a 01 78 12 01 79 1a 01 7a'],
    ['a generation of ten bytes', '0a 10 0a 03 67 65 6e 38 ff ff ff ff ff ff ff ff ff 01'],
    ['a generation of eleven bytes', '0a 11 0a 03 67 65 6e 38 ff ff ff ff ff ff ff ff ff ff 01'],
    ['a time beyond every year', '0a 11 0a 03 74 69 6d 42 0a 08 ff ff ff ff ff ff ff ff 7f'],
    ['a field of the largest number', '0a 05 0a 03 6c 61 72 fa ff ff ff 0f 00'],
    ['a field number zero', '0a 05 0a 03 7a 65 72 02 00'],
  ] as const
).map(([what, hex]) => sent(what, wrap(type, bytes(hex))))

const limitBytes = 3 * 1024 * 1024
const sizes: Case[] = [
  sent('too large', Buffer.concat([whole, Buffer.alloc(limitBytes + 1)])),
  sent('too large and cut', Buffer.concat([Buffer.from('k8s\0'), bytes('12 80 80 80 08'), Buffer.alloc(limitBytes)])),
]

const elsewhere: Case[] = [
  sent('a definition as a message', whole, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'),
  { ...sent('a patch', whole, `${core}/configmaps/made`), method: 'PATCH' },
  { ...sent('delete options of another kind', whole, `${core}/configmaps/nothing`), method: 'DELETE' },
  { ...sent('delete options that are none', Buffer.from('x'), `${core}/configmaps/nothing`), method: 'DELETE' },
  {
    ...sent(
      'delete options that are cut',
      wrap({ apiVersion: 'v1', kind: 'DeleteOptions' }, bytes('08')),
      `${core}/configmaps/nothing`,
    ),
    method: 'DELETE',
  },
  sent(
    'a binding as an eviction',
    wrap({ apiVersion: 'v1', kind: 'Binding' }, Buffer.alloc(0)),
    `${core}/pods/nothing/eviction`,
  ),
]

export const malformed: Group = {
  name,
  cases: [...around, ...kinds, ...fields, ...prefixes, ...sizes, ...elsewhere],
}

function encodeNamed(given: string): Buffer {
  return encodeMessage(
    messageOf('v1', 'ConfigMap') as Message,
    Buffer.from(JSON.stringify({ metadata: { name: given } })),
  )
}
