import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Rule, Schema } from '../schema.ts'
import { checkExpressions } from './check.ts'

const schema: Schema = {
  type: 'object',
  properties: {
    a: { type: 'integer' },
    t: { type: 'string' },
    ok: { type: 'boolean' },
    o: { type: 'object', properties: { x: { type: 'integer' } } },
    m: { type: 'object', additionalProperties: { type: 'string' } },
    l: { type: 'array', items: { type: 'object', properties: { y: { type: 'integer' } } } },
    'a-b': { type: 'integer' },
    in: { type: 'integer' },
    ios: { 'x-kubernetes-int-or-string': true },
  },
}

function problems(rule: Rule, root = false): string[] {
  return checkExpressions(rule, schema, 'v[0]', { root, uncorrelated: undefined }).map((e) => `${e.field}: ${e.text}`)
}

test('a field that is not there is pointed at, as the real server does', () => {
  assert.deepEqual(problems({ rule: 'self.b > 1 && self.c > 1' }), [
    'v[0].rule: Invalid value: {"Rule":"self.b \\u003e 1 \\u0026\\u0026 self.c \\u003e 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field \'b\'\n | self.b > 1 && self.c > 1\n | ....^\nERROR: <input>:1:19: undefined field \'c\'\n | self.b > 1 && self.c > 1\n | ..................^',
  ])
  const places: Record<string, string> = {
    'has(self.b)': '1:4',
    'self.o.z == 1': '1:7',
    'self.l.all(i, i.z > 1)': '1:16',
    'self.l[0].z == 1': '1:10',
    'self.a_b == 1': '1:5',
    'self.?b.hasValue()': '1:5',
    'oldSelf.b == 1': '1:8',
    '  self.b > 1': '1:7',
    'self.t.matches("x") &&\n self.b': '2:6',
    'self.metadata.name == "x"': '1:5',
  }
  for (const [rule, place] of Object.entries(places)) {
    assert.ok(problems({ rule }).join().includes(`ERROR: <input>:${place}: undefined field '`), rule)
  }
})

test('a rule must come to a bool, a message to a text', () => {
  for (const rule of ['self.a', '1', '"a"', 'self.t + "x"', 'true ? self.a : 1', 'self.o']) {
    assert.match(problems({ rule }).join(), /: cel expression must evaluate to a bool$/, rule)
  }
  const message = (messageExpression: string) => problems({ rule: 'true', messageExpression }).join()
  assert.match(message('self.a'), /^v\[0\]\.messageExpression: .*: messageExpression must evaluate to a string$/)
  assert.match(message('self.b'), /: messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'b'/)
  for (const good of ['self.t', '"a" + self.t', 'string(self.a)']) assert.equal(message(good), '', good)
})

test('what is there, or cannot be known, is let through', () => {
  const good = ['self.ok', 'self.m.foo == "a"', 'self.a__dash__b == 1', 'self.__in__ == 1', 'self.ios == 1']
  const loops = ['self.l.exists(i, i.y == 1)', 'self.l.map(i, i.y).all(y, y > 0)', 'self.m.all(k, self.m[k] == "x")']
  const bound = [
    'cel.bind(self, {"b": 1}, self.b == 1)',
    'self.t.size() > 1',
    'has(self.o.x)',
    '[self.a].all(a, a > 1)',
  ]
  for (const rule of [...good, ...loops, ...bound]) assert.deepEqual(problems({ rule }), [], rule)
  assert.deepEqual(problems({ rule: 'oldSelf.orValue({"b": 1}).b == 1', optionalOldSelf: true }), [])
  for (const rule of ['self.metadata.name == "x"', 'self.kind == "x"']) assert.deepEqual(problems({ rule }, true), [])
  assert.match(problems({ rule: 'self.metadata.labels.a == "x"' }, true).join(), /1:14: undefined field 'labels'/)
})
