/** The scanner against JSON.parse: it must find the same things in any bytes that are JSON, and refuse what is not an object. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { planFields, scanObject, uidAt } from './object.ts'

const plan = planFields(['spec.nodeName', 'spec.nested.deep', 'status.phase', 'type'])

type Meta = {
  name?: unknown
  namespace?: unknown
  uid?: unknown
  resourceVersion?: unknown
  labels?: Record<string, unknown>
}
type Plain = { metadata?: Meta; spec?: unknown; status?: unknown; type?: unknown }

/** What a scanned scalar reads as: strings as they are, numbers and booleans as spelled, null as absent. */
function scalar(value: unknown): string {
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}

function at(value: unknown, path: string): string {
  let found = value
  for (const part of path.split('.')) {
    if (typeof found !== 'object' || found === null || Array.isArray(found)) return ''
    found = Object.hasOwn(found, part) ? (found as Record<string, unknown>)[part] : undefined
  }
  return typeof found === 'object' ? '' : scalar(found)
}

function check(text: string): void {
  const bytes = Buffer.from(text)
  const parsed = JSON.parse(text) as Plain
  const scan = scanObject(bytes, plan)
  const { metadata = {} } = parsed
  assert.equal(scan.name, scalar(metadata.name))
  assert.equal(scan.namespace, scalar(metadata.namespace))
  assert.equal(uidAt(bytes, scan.uidStart), scalar(metadata.uid))
  for (const [label, value] of Object.entries(metadata.labels ?? {})) {
    assert.equal(scan.labels?.get(label), scalar(value))
    assert.equal(scan.labels?.has(label), true)
  }
  assert.equal(scan.labels?.has('not there') ?? false, false)
  if (parsed.metadata === undefined) assert.equal(scan.metadataStart, -1)
  else {
    assert.deepEqual(JSON.parse(bytes.toString('utf8', scan.metadataStart, scan.metadataEnd)), parsed.metadata)
  }
  if (typeof metadata.resourceVersion === 'string') {
    assert.equal(
      JSON.parse(`"${bytes.toString('utf8', scan.versionStart, scan.versionEnd)}"`),
      metadata.resourceVersion,
    )
  } else assert.equal(scan.versionStart, -1)
  assert.deepEqual(
    scan.fields,
    plan.paths.map((path) => at(parsed, path)),
  )
}

const surrogates = 0x800
const firstSurrogate = 0xd800
/** Any code point: what fast-check calls `binary`, without its table of all of them, which takes two seconds to make. */
const codePoint = fc.nat({ max: 0x10ffff - surrogates }).map(
  (at) => String.fromCodePoint(at < firstSurrogate ? at : at + surrogates),
  (one) => {
    const at = (one as string).codePointAt(0)
    if (at === undefined || one !== String.fromCodePoint(at)) throw new Error('not one code point')
    return at < firstSurrogate ? at : at - surrogates
  },
)
const text = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 20 }),
  fc.constantFrom('', '"', '\\', '\\"', '\\\\', '}', '{', '],[', '\u0000', '\u2028', 'é', '😀', 'a/b', 'null'),
)
/** V8 14.6 can take a name with an escape for another one it has met in such a place: JSON.parse is no judge of those. */
const key = text.filter((one) => one !== '__proto__' && !/["\\\x00-\x1f]/.test(one))
const leaf = fc.oneof(
  text,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
)
const any = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
})).value
const metadata = fc.record(
  {
    name: text,
    namespace: text,
    uid: text,
    resourceVersion: fc.nat().map(String),
    labels: fc.dictionary(key, text, { maxKeys: 5 }),
    annotations: fc.dictionary(key, any, { maxKeys: 3 }),
    ownerReferences: fc.array(any, { maxLength: 3 }),
  },
  { requiredKeys: [] },
)
const nested = fc.record(
  { nodeName: leaf, nested: fc.oneof(leaf, fc.record({ deep: leaf, other: any })), list: any },
  { requiredKeys: [] },
)
const object = fc.record(
  {
    apiVersion: fc.constant('v1'),
    kind: text,
    metadata,
    spec: fc.oneof(nested, leaf, fc.array(any)),
    status: fc.record({ phase: leaf, conditions: any }, { requiredKeys: [] }),
    type: fc.oneof(leaf, any),
    data: any,
  },
  { requiredKeys: [] },
)

test('a scan finds what JSON.parse finds, in any object, however it is spaced', () => {
  fc.assert(
    fc.property(object, fc.constantFrom(undefined, 1, '\t', ' \r\n '.slice(0, 3)), (value, space) => {
      check(JSON.stringify(value, null, space as string))
    }),
    { numRuns: 1_000 },
  )
})

test('labels whose names are spelled with escapes', () => {
  const { labels } = scanObject(Buffer.from('{"metadata":{"labels":{"a":"1","\\\\":"2","\\"":"3","\\n":"4"}}}'))
  assert.deepEqual(
    ['a', '\\', '"', '\n'].map((one) => labels?.get(one)),
    ['1', '2', '3', '4'],
  )
})

test('members in any order, values spelled with escapes', () => {
  check('{"spec":{"nodeName":"n1"},"metadata":{"labels":{"a":"1"},"name":"x"},"kind":"Pod","apiVersion":"v1"}')
  check('{"metadata":{"name":"\\u00e9\\ud83d\\ude00","labels":{"\\u0061":"\\n"}},"spec":{"nodeName":"\\"n\\\\"}}')
  check(' {\n "metadata" : { "name" : "x" , "labels" : { } } , "spec" : { "nodeName" : 5000 } } ')
  check('{}')
  check('{"metadata":{}}')
})

test('the kind is cut off together with its comma, wherever there is one to cut', () => {
  const rest = (json: string) => json.slice(scanObject(Buffer.from(json)).bodyStart)
  assert.equal(rest('{"kind":"Pod","apiVersion":"v1","metadata":{}}'), '"metadata":{}}')
  assert.equal(rest('{"apiVersion":"v1", "kind":"Pod" , "metadata":{}}'), '"metadata":{}}')
  assert.equal(rest('{"metadata":{},"kind":"Pod"}'), '"metadata":{},"kind":"Pod"}')
  assert.equal(rest('{"metadata":{}}'), '"metadata":{}}')
})

test('[A5] numbers are read as they are spelled', () => {
  const bytes = Buffer.from(
    '{"metadata":{"name":"x"},"spec":{"nodeName":9007199254740993,"nested":{"deep":1.50}},"type":1E+2}',
  )
  assert.deepEqual(scanObject(bytes, plan).fields, ['9007199254740993', '1.50', '', '1E+2'])
})

test('what is no object is refused, and never read past its end', () => {
  for (const broken of [
    '',
    ' ',
    '[]',
    '"x"',
    '5',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a" 1}',
    '{a:1}',
    '{"a":}',
  ]) {
    assert.throws(() => scanObject(Buffer.from(broken), plan), Error, broken)
  }
  for (const broken of [
    '{"metadata":5}',
    '{"metadata":{"name":"x}',
    '{"metadata":{"name":"x\\"}}',
    '{"spec":{"a":[1,2}',
    '{"spec":{"nodeName":}}',
  ]) {
    assert.throws(() => scanObject(Buffer.from(broken), plan), Error, broken)
  }
})

test('cut anywhere, an object is refused', () => {
  const whole = Buffer.from(
    '{"kind":"Pod","metadata":{"name":"x","labels":{"a":"\\"é"}},"spec":{"nodeName":"n","l":[{"b":1}]}}',
  )
  for (let length = 0; length < whole.length; length++) {
    assert.throws(() => scanObject(whole.subarray(0, length), plan), Error, `cut at ${length}`)
  }
})
