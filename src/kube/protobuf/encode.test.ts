import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeMessage, ProtobufFault } from './protobuf.ts'
import { known } from './recorded.test-support.ts'

const encode = (apiVersion: string, kind: string, json: string): string =>
  encodeMessage(known(apiVersion, kind), Buffer.from(json)).toString('hex')

/** Metadata without anything in it. */
const meta = '0a10' + '0a0012001a0022002a00320038004200'

test('what is no pointer is written even when it is absent, null or empty', () => {
  for (const json of [
    '{}',
    '{"metadata":null}',
    '{"metadata":{"creationTimestamp":null,"labels":{},"finalizers":[]}}',
  ]) {
    assert.equal(encode('v1', 'ConfigMap', json), meta)
  }
  assert.equal(encode('v1', 'ConfigMap', '{"immutable":false,"data":null}'), `${meta}2000`)
})

test('maps are written by key, and the last of those given twice counts', () => {
  const sorted = `${meta}12060a016112013112060a0162120132`
  assert.equal(encode('v1', 'ConfigMap', '{"data":{"a":"1","b":"2"}}'), sorted)
  assert.equal(encode('v1', 'ConfigMap', '{"data":{"b":"2","a":"1"}}'), sorted)
  assert.equal(encode('v1', 'ConfigMap', '{"data":{"b":"0","\\u0062":"2","a":"1"}}'), sorted)
  assert.equal(encode('v1', 'ConfigMap', '{"data":{"a":null}}'), `${meta}12050a01611200`)
})

test('bytes: nil is left out of an entry, empty is not', () => {
  assert.equal(encode('v1', 'ConfigMap', '{"binaryData":{"a":"aGk="}}'), `${meta}1a070a016112026869`)
  assert.equal(encode('v1', 'ConfigMap', '{"binaryData":{"a":"aG\\nk\\u003d"}}'), `${meta}1a070a016112026869`)
  assert.equal(encode('v1', 'ConfigMap', '{"binaryData":{"a":null}}'), `${meta}1a030a0161`)
  assert.equal(encode('v1', 'ConfigMap', '{"binaryData":{"a":""}}'), `${meta}1a050a01611200`)
})

test('integers are exact to 64 bits, and negative ones take ten bytes', () => {
  const options = (json: string): string => encode('v1', 'DeleteOptions', json)
  assert.equal(options('{"gracePeriodSeconds":0}'), '0800')
  assert.equal(options('{"gracePeriodSeconds":300}'), '08ac02')
  assert.equal(options('{"gracePeriodSeconds":-1}'), '08ffffffffffffffffff01')
  assert.equal(options('{"gracePeriodSeconds":9007199254740993}'), '088180808080808010')
  assert.equal(options('{"gracePeriodSeconds":9223372036854775807}'), '08ffffffffffffffff7f')
  assert.equal(options('{"gracePeriodSeconds":-9223372036854775808}'), '0880808080808080808001')
  for (const wrong of ['1.0', '1e3', '9223372036854775808', '"1"', 'true', '{}', '-', '12345678901234567890x']) {
    assert.throws(() => options(`{"gracePeriodSeconds":${wrong}}`), ProtobufFault, wrong)
  }
  assert.throws(() => encode('apps/v1', 'Deployment', '{"spec":{"replicas":2147483648}}'), ProtobufFault)
})

test('times: seconds, none as an empty message, microseconds where they are kept', () => {
  const renewed = (time: string): string =>
    encode('coordination.k8s.io/v1', 'Lease', `{"spec":{"renewTime":${time}}}`).slice(meta.length)
  assert.equal(renewed('"2026-11-15T13:27:02.000123Z"'), '120c220a08a6e6e6d70610f8c007')
  assert.equal(renewed('"2026-11-15T14:27:02.000123+01:00"'), '120c220a08a6e6e6d70610f8c007')
  assert.equal(renewed('"0001-01-01T00:00:00Z"'), '12022200')
  assert.equal(renewed('null'), '1200')
  const created = (time: string): string => encode('v1', 'ConfigMap', `{"metadata":{"creationTimestamp":${time}}}`)
  assert.ok(created('"2026-11-15T13:27:02Z"').endsWith('420808a6e6e6d7061000'))
  assert.ok(created('"2026-11-15T13:27:02.9Z"').endsWith('420808a6e6e6d7061000'))
  assert.ok(created('"2024-02-29T00:00:00Z"').endsWith('4208088092ffae061000'))
  for (const wrong of ['"2023-02-29T00:00:00Z"', '"2026-11-15T24:00:00Z"', '"yesterday"', '5']) {
    assert.throws(() => created(wrong), ProtobufFault, wrong)
  }
})

test('quantities are written in their one spelling, ints or strings with both', () => {
  const quota = (quantity: string): string =>
    encode('v1', 'ResourceQuota', `{"spec":{"hard":{"a":${quantity}}}}`).slice(meta.length)
  assert.equal(quota('"1000m"'), quota('"1"'))
  assert.equal(quota('1'), quota('"1"'))
  assert.equal(quota('null'), quota('"0"'))
  assert.ok(quota('"1.5Gi"').includes(Buffer.from('1536Mi').toString('hex')))
  assert.throws(() => quota('"much"'), /quantities must match the regular expression/)
  const port = (value: string): string => encode('v1', 'Service', `{"spec":{"ports":[{"targetPort":${value}}]}}`)
  assert.ok(port('8080').includes('2207080010903f1a00'))
  assert.ok(port('"http"').includes('220a080110001a0468747470'))
  assert.ok(port('null').includes('2206080010001a00'))
})

test('raw JSON is kept to the byte', () => {
  const data = '{ "b":1.0,"a":[ ] }'
  const revision = encode('apps/v1', 'ControllerRevision', `{"data":${data},"revision":1}`)
  assert.equal(revision, `${meta}12150a13${Buffer.from(data).toString('hex')}1801`)
  assert.equal(encode('apps/v1', 'ControllerRevision', '{"data":null}'), `${meta}12001800`)
})

test('schemas or something else', () => {
  const schema = (json: string): string =>
    encode(
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      `{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"a":${json}}}}}]}}`,
    )
  assert.ok(schema('{"additionalProperties":true}').includes('f201020801'))
  assert.ok(schema('{"additionalProperties":false}').includes('f201020800'))
  assert.ok(schema('{"additionalProperties":{"type":"x"}}').includes('080112'))
  assert.throws(() => schema('{"additionalProperties":1}'), ProtobufFault)
  assert.throws(() => schema(`${'{"not":'.repeat(2000)}{}${'}'.repeat(2000)}`), /deeper/)
})

test('what is no JSON object of the kind is refused', () => {
  for (const json of [
    '',
    '[]',
    'null',
    '"x"',
    '{',
    '{"a"',
    '{"a":',
    '{"metadata":[]}',
    '{"metadata":{"name":1}}',
    '{"data":[]}',
    '{"a":1 "b":2}',
    '{"metadata":{"name":"\\x"}}',
  ]) {
    assert.throws(() => encode('v1', 'ConfigMap', json), ProtobufFault, json)
  }
})

test('buffers grow for what is large, and are as small again for the next', () => {
  const large = 'x'.repeat(300_000)
  const raw = encodeMessage(known('v1', 'ConfigMap'), Buffer.from(`{"data":{"a":"${large}","b":"\\n${large}"}}`))
  assert.equal(raw.length, 18 + 2 * 300_000 + 1 + 2 * 11)
  assert.equal(encode('v1', 'ConfigMap', '{}'), meta)
})
