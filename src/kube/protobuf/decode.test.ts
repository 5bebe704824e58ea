import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeMessage, ProtobufFault } from './protobuf.ts'
import { known } from './recorded.test-support.ts'

const decode = (apiVersion: string, kind: string, hex: string): string =>
  decodeMessage(known(apiVersion, kind), Buffer.from(hex.replaceAll(' ', ''), 'hex')).toString()
const configMap = (hex: string): string => decode('v1', 'ConfigMap', hex)

const hex = (text: string): string => Buffer.from(text).toString('hex')
/** A field of bytes: tag, length and content, all shorter than 128. */
const field = (number: number, content: string): string => {
  const bytes = Buffer.from(content.replaceAll(' ', ''), 'hex')
  return Buffer.from([number * 8 + 2, bytes.length, ...bytes]).toString('hex')
}

test('what is absent is left out or printed as Go prints it', () => {
  assert.equal(configMap(''), '{"metadata":{}}')
  assert.equal(decode('v1', 'Pod', ''), '{"metadata":{},"spec":{"containers":null},"status":{}}')
  assert.equal(decode('v1', 'PodList', ''), '{"metadata":{},"items":null}')
  assert.equal(
    decode('v1', 'Event', ''),
    '{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,' +
      '"reportingComponent":"","reportingInstance":""}',
  )
  assert.equal(decode('autoscaling/v1', 'Scale', ''), '{"metadata":{},"spec":{},"status":{"replicas":0}}')
  assert.equal(decode('v1', 'WatchEvent', ''), '{"type":"","object":null}')
  assert.equal(
    decode('v1', 'APIResourceList', field(2, field(1, hex('a')))),
    '{"groupVersion":"","resources":[{"name":"a","singularName":"","namespaced":false,"kind":"","verbs":null}]}',
  )
  assert.equal(
    decode('v1', 'APIResourceList', field(2, '2200')),
    '{"groupVersion":"","resources":[{"name":"","singularName":"","namespaced":false,"kind":"","verbs":[]}]}',
  )
})

test('kind and apiVersion stand in front if given', () => {
  const type = { apiVersion: 'v1', kind: 'ConfigMap' }
  const json = decodeMessage(known('v1', 'ConfigMap'), Buffer.alloc(0), type)
  assert.equal(json.toString(), '{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}')
})

test('pointers are printed whatever they point to, values only if they are not empty', () => {
  assert.equal(configMap('2000'), '{"metadata":{},"immutable":false}')
  assert.equal(configMap('2002'), '{"metadata":{},"immutable":true}')
  assert.equal(configMap('0a020a00'), '{"metadata":{}}')
  assert.equal(configMap('0a024a00'), '{"metadata":{"deletionTimestamp":null}}')
  assert.equal(configMap('0a024200'), '{"metadata":{}}')
  // Of a length only 64 bits count.
  assert.equal(configMap('0a80808080808080808002'), '{"metadata":{}}')
  assert.equal(configMap('0a0442020800'), '{"metadata":{"creationTimestamp":"1970-01-01T00:00:00Z"}}')
})

test('the last of what is given twice counts; messages, lists and maps grow together', () => {
  const name = (text: string): string => field(1, field(1, hex(text)))
  assert.equal(
    configMap(name('a') + field(1, field(3, hex('n'))) + name('b')),
    '{"metadata":{"name":"b","namespace":"n"}}',
  )
  assert.equal(
    configMap(field(1, field(14, hex('x'))) + field(1, field(14, hex('y')))),
    '{"metadata":{"finalizers":["x","y"]}}',
  )
  const entry = (key: string, value: string): string => field(2, field(1, hex(key)) + field(2, hex(value)))
  assert.equal(
    configMap(entry('b', '1') + entry('a', '2') + entry('b', '3')),
    '{"metadata":{},"data":{"a":"2","b":"3"}}',
  )
  assert.equal(configMap('1200 1a00'), '{"metadata":{},"data":{"":""},"binaryData":{"":""}}')
  // A created time, then one that is empty.
  assert.equal(configMap('0a0442020801 0a024200'), '{"metadata":{}}')
  // Inlined messages, too: a volume's source in two pieces.
  const volume = field(
    1,
    field(1, hex('v')) + field(2, field(1, field(1, hex('/a')))) + field(2, field(1, field(2, hex('Dir')))),
  )
  assert.equal(
    decode('v1', 'Pod', field(2, volume)),
    '{"metadata":{},"spec":{"volumes":[{"name":"v","hostPath":{"path":"/a","type":"Dir"}}],"containers":null},"status":{}}',
  )
})

test('numbers of a list may stand together or apart, and integers wrap as in Go', () => {
  const groups = (content: string): string => decode('v1', 'Pod', field(2, field(14, content)))
  assert.match(groups('2001 2202ac02 20ffffffffffffffffff01'), /"supplementalGroups":\[1,300,-1\]/)
  const grace = (content: string): string => decode('v1', 'DeleteOptions', content)
  assert.equal(grace('088180808080808010'), '{"gracePeriodSeconds":9007199254740993}')
  assert.equal(grace('0880808080808080808001'), '{"gracePeriodSeconds":-9223372036854775808}')
  assert.equal(grace('08ffffffffffffffffff7f'), '{"gracePeriodSeconds":-1}')
  const replicas = (content: string): string => decode('autoscaling/v1', 'Scale', field(2, content))
  assert.match(replicas('08ffffffff1f'), /"spec":\{"replicas":-1\}/)
  assert.match(replicas('088080808010'), /"spec":\{\}/)
})

test('unknown fields of any form are passed over', () => {
  const unknown = 'a80696 01 a90601020304050607 08 ad0601020304 aa060161 ab06 0801 ab06 ac06 ac06'
  assert.equal(configMap(`${unknown}0a030a0161${unknown}`), '{"metadata":{"name":"a"}}')
})

test('strings are printed as Go prints them', () => {
  const value = (bytes: string): string => configMap(field(2, field(1, '6b') + field(2, bytes)))
  const cases: readonly (readonly [string, string])[] = [
    [hex('"\\/<>&\b\f\n\r\t\u0000\u001f\u007f'), '\\"\\\\/\\u003c\\u003e\\u0026\\b\\f\\n\\r\\t\\u0000\\u001f\u007f'],
    [hex('äö€😀\u2027\u2028\u2029\u202a'), 'äö€😀\u2027\\u2028\\u2029\u202a'],
    ['fffe', '\\ufffd\\ufffd'],
    ['e282', '\\ufffd\\ufffd'],
    ['f09f9861', '\\ufffd\\ufffd\\ufffda'],
    ['eda080', '\\ufffd\\ufffd\\ufffd'],
    ['c080', '\\ufffd\\ufffd'],
    ['f4908080', '\\ufffd\\ufffd\\ufffd\\ufffd'],
  ]
  for (const [bytes, text] of cases) assert.equal(value(bytes), `{"metadata":{},"data":{"k":"${text}"}}`)
})

test('raw JSON is printed without spaces and escaped; what is none is a fault', () => {
  const revision = (raw: string): string => decode('apps/v1', 'ControllerRevision', field(2, field(1, hex(raw))))
  assert.equal(
    revision(' { "a" : "< \\" \u2028" , "b":[1.0, 2] } '),
    '{"metadata":{},"data":{"a":"\\u003c \\" \\u2028","b":[1.0,2]},"revision":0}',
  )
  assert.equal(decode('apps/v1', 'ControllerRevision', '1200'), '{"metadata":{},"data":null,"revision":0}')
  for (const wrong of ['', '{', 'k8s\0', '{} {}']) assert.throws(() => revision(wrong), ProtobufFault, wrong)
})

test('times beyond four digits of a year, with nanoseconds of any size', () => {
  const renewed = (content: string): string => decode('coordination.k8s.io/v1', 'Lease', field(2, field(4, content)))
  assert.match(renewed('08a6e6e6d706 10f8c007'), /"renewTime":"2026-11-15T13:27:02.000123Z"/)
  assert.match(renewed('08a6e6e6d706 10ffffffffffffffffff01'), /"renewTime":"2026-11-15T13:27:02.000000Z"/)
  assert.match(renewed('08a6e6e6d706 1098f8ffffffffffffff01'), /"renewTime":"2026-11-15T13:27:01.999999Z"/)
  assert.match(renewed('08ffffffffffffffff7f'), /"renewTime":"292277026596-12-04T15:30:07.000000Z"/)
  assert.match(renewed('0880 92b8c398feffffff01'), /"renewTime":null/)
})

test('faults are told in the words of the API server, the first in the order of the message', () => {
  const faults: Record<string, string> = {
    '0a': 'unexpected EOF',
    '0a05': 'unexpected EOF',
    '0a020a05': 'unexpected EOF',
    '0801': 'proto: wrong wireType = 0 for field ObjectMeta',
    '0a020801': 'proto: wrong wireType = 0 for field Name',
    '0a02 0c00': 'proto: ObjectMeta: wiretype end group for non-group',
    '00': 'proto: ConfigMap: illegal tag 0 (wire type 0)',
    '0a0100': 'proto: ObjectMeta: illegal tag 0 (wire type 0)',
    '0a0442020a00': 'proto: wrong wireType = 2 for field Seconds',
    '20ffffffffffffffffffff01': 'proto: integer overflow',
    '0affffffffffffffffff01': 'proto: negative length found during unmarshaling',
    a706: 'proto: illegal wireType 7',
    aa06ffffffffffffffffff01: 'proto: negative length found during unmarshaling',
    ab06: 'unexpected EOF',
    '12020a05': 'unexpected EOF',
    '1201 1c': 'proto: unexpected end of group',
    '1201 1b 1f': 'proto: illegal wireType 7',
    // Two faults: the inner one comes first.
    '0a020801 0801': 'proto: wrong wireType = 0 for field Name',
  }
  for (const [bytes, message] of Object.entries(faults)) {
    assert.throws(() => configMap(bytes), new ProtobufFault(message), bytes)
  }
  const quota = (quantity: string): string =>
    decode('v1', 'ResourceQuota', field(2, field(1, field(1, '61') + field(2, field(1, hex(quantity))))))
  assert.match(quota('1000m'), /"a":"1"/)
  assert.throws(() => quota('1x'), /^Error: quantities must match the regular expression/)
  assert.throws(() => quota('1Kii'), /^Error: unable to parse quantity's suffix/)
})

test('what is overwritten has to be sound as well', () => {
  const spec = (...entries: string[]): string => field(2, entries.map((entry) => field(1, entry)).join(''))
  const bad = field(1, '61') + field(2, field(1, hex('bad')))
  const good = field(1, '61') + field(2, field(1, hex('1')))
  assert.match(decode('v1', 'ResourceQuota', spec(good, good)), /"hard":\{"a":"1"\}/)
  assert.throws(() => decode('v1', 'ResourceQuota', spec(bad, good)), /quantities must match/)
})

test('a message that claims much costs little', () => {
  const deep = (depth: number): Buffer => {
    // Each schema holds the next as its `not`, field 28.
    let inner = Buffer.alloc(0)
    for (let i = 0; i < depth; i++) inner = Buffer.concat([Buffer.from([0xe2, 0x01]), varint(inner.length), inner])
    return inner
  }
  const schema = known('apiextensions.k8s.io/v1', 'CustomResourceDefinition').numbered[2]?.message.numbered[7]?.message
    .numbered[4]?.message.numbered[1]?.message
  assert.ok(schema)
  assert.equal(decodeMessage(schema, deep(100)).toString(), `${'{"not":'.repeat(100)}{}${'}'.repeat(100)}`)
  assert.throws(() => decodeMessage(schema, deep(5000)), /deeper/)
  // A container status of two bytes is a hundred bytes of JSON.
  const statuses = Buffer.alloc(2 << 20, Buffer.from('4200', 'hex'))
  const status = known('v1', 'Pod').numbered[3]?.message
  assert.ok(status)
  assert.throws(() => decodeMessage(status, statuses), /larger than any that can be stored/)
})

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest >>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}
