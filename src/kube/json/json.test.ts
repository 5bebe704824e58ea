import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  cloneJson,
  equalJson,
  field,
  fromPlain,
  isObject,
  type Json,
  JsonError,
  type JsonObject,
  parseJson,
  printJson,
  Spelled,
  text,
  toPlain,
} from './json.ts'
import { DEPTH_MAX } from './reader.ts'

const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (Object.is(value, -0) ? 0 : value)),
  fc.constantFrom(new Spelled('9007199254740993'), new Spelled('-0'), new Spelled('1.0'), new Spelled('1E400')),
)
const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    fc.constant(null),
    fc.boolean(),
    number,
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('json'), { maxLength: 5 }),
    fc
      .array(fc.tuple(fc.oneof(fc.string(), fc.constantFrom('__proto__', '1', '0')), tie('json')), { maxLength: 5 })
      .map((entries) => new Map(entries)),
  ),
}))

test('[A5] what was parsed prints as it was: order of keys, spelling of numbers', () => {
  const source =
    '{"z":1,"10":2,"2":{"__proto__":[]},"big":9223372036854775807,"small":-9223372036854775808,"one":1.0,"e":1E+3,' +
    '"zero":-0,"f":0.1,"long":123456789012345678901234567890,"tiny":1e-7,"t":true,"n":null,"s":"a\\"b\\\\c\\n"}'
  assert.equal(printJson(parseJson(source)), source)
  assert.equal(printJson(parseJson(Buffer.from(source))), source)
})

test('[A5] any value survives printing and parsing', () => {
  fc.assert(
    fc.property(json, (value) => {
      const printed = printJson(value)
      assert.equal(printJson(parseJson(printed)), printed)
      assert.ok(equalJson(parseJson(printed), value))
    }),
  )
})

test('parsing agrees with JavaScript on any text that JSON.stringify makes', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(undefined, 2, '\t'), (source, space) => {
      const spaced = JSON.stringify(JSON.parse(source), undefined, space)
      const plain = JSON.parse(printJson(parseJson(spaced)))
      assert.deepEqual(plain, JSON.parse(spaced))
    }),
  )
})

test('parsing accepts exactly what JavaScript accepts', () => {
  const fragment = fc.constantFrom(
    ...'{}[],:"\\u/ -+.0123eEtrufalsn\n\t',
    '"a":',
    'true',
    'null',
    '1e5',
    '\\ud83d',
    '\u0001',
  )
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 12 }), (fragments) => {
      const source = fragments.join('')
      assert.equal(accepts(parseJson, source), accepts(JSON.parse, source), source)
    }),
    { numRuns: 2000 },
  )
})

function accepts(parse: (source: string) => unknown, source: string): boolean {
  try {
    parse(source)
    return true
  } catch {
    return false
  }
}

test('numbers keep their spelling only where JavaScript would change it', () => {
  assert.deepEqual(parseJson('[0,-1,15,1.5,1e21,123456789012345]'), [
    0,
    -1,
    15,
    1.5,
    new Spelled('1e21'),
    123456789012345,
  ])
  assert.deepEqual(parseJson('9007199254740992'), 9007199254740992)
  assert.deepEqual(parseJson('9007199254740993'), new Spelled('9007199254740993'))
  assert.deepEqual(parseJson('-0'), new Spelled('-0'))
})

test('errors are those of encoding/json', () => {
  const messages: [string, string][] = [
    ['', 'unexpected end of JSON input'],
    ['  ', 'unexpected end of JSON input'],
    ['{', 'unexpected end of JSON input'],
    ['"abc', 'unexpected end of JSON input'],
    ['"\\u00', 'unexpected end of JSON input'],
    ['[1,', 'unexpected end of JSON input'],
    ['-', 'unexpected end of JSON input'],
    ['tru', 'unexpected end of JSON input'],
    ['}', "invalid character '}' looking for beginning of value"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['{a', "invalid character 'a' looking for beginning of object key string"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['{"a" 1}', "invalid character '1' after object key"],
    ['{"a":1 "b"}', "invalid character '\"' after object key:value pair"],
    ['[1 2]', "invalid character '2' after array element"],
    ['1 x', "invalid character 'x' after top-level value"],
    ['"a\nb"', "invalid character '\\n' in string literal"],
    ['"\u0001"', "invalid character '\\x01' in string literal"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u00g0"', "invalid character 'g' in \\u hexadecimal character escape"],
    ['-x', "invalid character 'x' in numeric literal"],
    ['01', "invalid character '1' after top-level value"],
    ['1.x', "invalid character 'x' after decimal point in numeric literal"],
    ['1ex', "invalid character 'x' in exponent of numeric literal"],
    ['trux', "invalid character 'x' in literal true (expecting 'e')"],
    ['nil', "invalid character 'i' in literal null (expecting 'u')"],
    ["'a'", "invalid character '\\'' looking for beginning of value"],
    ['\ufeff{}', "invalid character 'ï' looking for beginning of value"],
  ]
  for (const [source, message] of messages) {
    assert.throws(() => parseJson(source), new JsonError(message), JSON.stringify(source))
  }
})

test('depth has a limit, and every operation bears the deepest value', () => {
  const deep = `${'[{"a":'.repeat(DEPTH_MAX / 2)}1${'}]'.repeat(DEPTH_MAX / 2)}`
  const value = parseJson(deep, { duplicates: () => {} })
  assert.equal(printJson(cloneJson(value)), deep)
  assert.ok(equalJson(value, fromPlain(toPlain(value))))
  assert.throws(() => parseJson(`[${deep}]`), new JsonError('exceeded max depth'))
})

test('a repeated key: the last value wins in the place of the first, and each one is reported', () => {
  const found: string[] = []
  const source = '{"spec":{"a":1,"b":2,"a":3,"c":[{},{"x":1,"x":{"y":0,"y":1}}]},"spec":{"a":9}}'
  const value = parseJson(source, { duplicates: (path) => found.push(path) })
  assert.deepEqual(found, ['spec.a', 'spec.c[1].x', 'spec.c[1].x.y', 'spec'])
  assert.equal(printJson(value), '{"spec":{"a":9}}')
  assert.equal(printJson(parseJson('{"a":1,"b":2,"a":3}')), '{"a":3,"b":2}')
})

test('strings are escaped as Go does', () => {
  assert.equal(printJson('<a>&\u2028\u2029'), '"\\u003ca\\u003e\\u0026\\u2028\\u2029"')
  assert.equal(printJson('\b\f\n\r\t\u0000\u001f\u007f"\\/é😀'), '"\\b\\f\\n\\r\\t\\u0000\\u001f\u007f\\"\\\\/é😀"')
  assert.equal(printJson('a\ud800b\udc00\\ud800'), '"a\\ufffdb\\ufffd\\\\ud800"')
  assert.equal(printJson('\\\ud800'), '"\\\\\\ufffd"')
  assert.equal(printJson(new Map([['<', '>']])), '{"\\u003c":"\\u003e"}')
})

test('half a surrogate pair in an escape becomes U+FFFD', () => {
  assert.equal(parseJson('"\\ud83d\\ude00 \\ud83d \\ude00"'), '😀 \ufffd \ufffd')
})

test('equality ignores the order of keys and the spelling of numbers, nothing else', () => {
  const same: [string, string][] = [
    ['{"a":1,"b":[2]}', '{"b":[2.0],"a":1e0}'],
    ['1000', '1e3'],
    ['0', '-0.0'],
    ['120', '1.2e2'],
    ['9007199254740993', '9007199254740993.0'],
  ]
  for (const [a, b] of same) assert.ok(equalJson(parseJson(a), parseJson(b)), `${a} ${b}`)
  const different: [string, string][] = [
    ['9007199254740993', '9007199254740992'],
    ['{"a":null}', '{}'],
    ['{"a":1}', '{"a":1,"b":2}'],
    ['{"a":1,"b":2}', '{"a":1}'],
    ['{"a":null}', '{"b":null}'],
    ['[1,2]', '[2,1]'],
    ['1', '"1"'],
    ['0', 'false'],
    ['0', 'null'],
    ['{}', '[]'],
    ['1e2', '1e3'],
    ['-1.0', '1.0'],
  ]
  for (const [a, b] of different) assert.ok(!equalJson(parseJson(a), parseJson(b)), `${a} ${b}`)
})

test('a clone shares nothing', () => {
  const original = parseJson('{"a":{"b":[1,{"c":2}]}}') as JsonObject
  const copy = cloneJson(original)
  const list = field(copy, 'a', 'b')
  assert.ok(Array.isArray(list) && isObject(list[1]))
  list[1].set('c', 3)
  list.push(4)
  assert.equal(printJson(original), '{"a":{"b":[1,{"c":2}]}}')
})

test('plain values: no prototype to reach, undefined left out, bigint kept', () => {
  const plain = toPlain(parseJson('{"__proto__":{"polluted":1},"n":9007199254740993}')) as Record<string, unknown>
  assert.equal(Object.getPrototypeOf(plain), null)
  assert.equal((plain as { polluted?: unknown }).polluted, undefined)
  assert.equal(
    printJson(fromPlain({ a: undefined, b: 2n ** 63n - 1n, c: [undefined, 5n], d: Number.NaN, e: -0 })),
    '{"b":9223372036854775807,"c":[null,5],"d":null,"e":0}',
  )
})

test('accessors stop where the path leaves the objects', () => {
  const value = parseJson('{"metadata":{"name":"x","generation":1}}')
  assert.equal(text(value, 'metadata', 'name'), 'x')
  assert.equal(text(value, 'metadata', 'generation'), '')
  assert.equal(text(value, 'metadata', 'name', 'deeper'), '')
  assert.equal(field(value, 'metadata', 'nothing'), undefined)
  assert.equal(field(undefined, 'a'), undefined)
  assert.equal(field(value), value)
})
