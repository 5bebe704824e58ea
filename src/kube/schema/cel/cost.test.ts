// How long a rule may go on. Figures and words are kube-apiserver 1.36.3's: `celcost` there is the tariff of these.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type JsonObject } from '../../json/json.ts'
import { checkCustom } from '../check.ts'
import { Effort } from '../effort.ts'
import type { Rule, Schema } from '../schema.ts'

const INTS: Schema = { type: 'array', items: { type: 'integer' } }
const TEXT: Schema = { type: 'string' }

/** `count` numbers at xs, `text` at s. */
async function errorsOf(
  rules: ReadonlyArray<string | Rule>,
  count: number,
  text = '',
  effort?: Effort,
): Promise<string[]> {
  const schema: Schema = {
    type: 'object',
    properties: { xs: INTS, s: TEXT },
    'x-kubernetes-validations': rules.map((rule) => (typeof rule === 'string' ? { rule } : rule)),
  }
  const object = fromPlain({ xs: Array.from({ length: count }, (_, index) => index), s: text }) as JsonObject
  const { errors, warnings } = await checkCustom(object, schema, effort === undefined ? {} : { effort })
  assert.deepEqual(warnings, [])
  return errors.map((error) => error.text)
}

const cancelled = (rule: string) =>
  `Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`
const exhausted =
  'Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run'

function nested(macro: string, depth: number, body: string): string {
  return Array.from({ length: depth }).reduce(
    (inner: string, _, level) => `self.xs.${macro}(v${level}, ${inner})`,
    body,
  )
}

/** Each of them would go on for minutes or for ever, or fill the memory. */
const endless: Record<string, [rule: string, count: number, text?: string]> = {
  'nested all': [nested('all', 6, 'v0 >= 0'), 40],
  'nested exists': [nested('exists', 6, 'v0 < 0'), 40],
  'nested exists_one': [nested('exists_one', 6, 'v0 < 0'), 40],
  'nested map': [`size(${nested('map', 6, 'v0')}) > 0`, 40],
  'nested filter': [`size(${nested('filter', 1, nested('all', 5, 'v0 >= 0'))}) > 0`, 40],
  'errors that are passed over': [nested('exists', 6, 'v0 / 0 == 1'), 40],
  'errors beside an operator': [nested('all', 6, '(v0 / 0 == 1 || v0 >= 0)'), 40],
  'a text in a text': ['size(self.s.replace("a", self.s)) > 0', 0, 'a'.repeat(100_000)],
  'a text between texts': ['size(self.xs.map(x, self.s).join(self.s)) > 0', 1000, 'a'.repeat(100_000)],
  'lists put together': ['self.xs.all(x, size(self.xs + self.xs) > 0)', 20_000],
  'lists compared': ['self.xs.all(x, [self.xs] == [self.xs.map(y, y)])', 20_000],
  'members of lists': ['self.xs.all(x, sets.contains(self.xs, self.xs))', 20_000],
  'times in other zones': ['self.xs.all(x, timestamp("2020-01-01T00:00:00Z").getHours("Asia/Tokyo") == 9)', 20_000],
  'patterns of the object': ['self.xs.all(x, !self.s.matches("a{" + string(x) + "}b{900}"))', 900, 'a'.repeat(1000)],
}

for (const [title, [rule, count, text]] of Object.entries(endless)) {
  test(`rule: ${title} end at the cost of one call`, async () => {
    assert.deepEqual(await errorsOf([rule, 'false'], count, text), [cancelled(rule)])
  })
}

test('rule: a duration of any length is read once', async () => {
  const rule = 'duration(self.s) > duration("1s")'
  const text = `Invalid value: "object": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: ${rule}`
  assert.deepEqual(await errorsOf([rule], 0, '1'.repeat(200_000)), [text])
  assert.deepEqual(await errorsOf([rule], 0, '1h0m2s'), [])
})

test('rule: what an object usually asks for is far from the limit', async () => {
  const unique = 'self.xs.all(x, self.xs.exists_one(y, x == y))'
  assert.deepEqual(
    await errorsOf([unique, 'size(self.s) < 3000000', 'self.s.matches("^a*$")'], 200, 'a'.repeat(100_000)),
    [],
  )
})

test('rule: the rules of one object share a budget, and the one that exceeds it is the last', async () => {
  // 3 + 3 × 60 + 60 × (3 + 3 × 60 + …): some 0.66 million each.
  const rules = Array.from({ length: 20 }, () => nested('all', 3, 'v0 >= 0'))
  assert.deepEqual(await errorsOf([...rules, 'false'], 50), [exhausted])
  assert.deepEqual(await errorsOf(rules.slice(0, 5), 50), [])
})

test('rule: a message that costs too much is said to, in place of itself', async () => {
  const messageExpression = `size(${nested('map', 6, 'v0')}) > 0 ? "a" : "b"`
  const text = `Invalid value: "object": no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(messageExpression)}`
  assert.deepEqual(await errorsOf([{ rule: 'false', messageExpression }, 'false'], 40), [text])
})

test('rule: others are let in between two rules', async () => {
  let time = 0
  // Every look at the clock finds that a turn is over.
  const effort = new Effort(() => (time += 100))
  let turns = 0
  const count = () => {
    turns++
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  assert.deepEqual(
    await errorsOf(
      Array.from({ length: 10 }, () => 'true'),
      0,
      '',
      effort,
    ),
    [],
  )
  clearImmediate(timer)
  assert.ok(turns >= 5, `${turns} turns of others`)
})
