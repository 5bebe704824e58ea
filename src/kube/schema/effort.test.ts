import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type JsonObject } from '../json/json.ts'
import { checkCustom } from './check.ts'
import { Effort } from './effort.ts'
import type { Schema } from './schema.ts'

const names = Array.from({ length: 500 }, (_, index) => `${'a'.repeat(1000)}-${index}`)
const object = fromPlain({ l: [...names, 'B'] }) as JsonObject
const schema: Schema = {
  type: 'object',
  properties: {
    l: { type: 'array', items: { type: 'string', anyOf: [{ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' }] } },
  },
}

/** A clock on which every look finds that `ms` have passed. */
function passing(ms: number): () => number {
  let time = 0
  return () => (time += ms)
}

class Counted extends Effort {
  rests = 0

  override async rest() {
    this.rests++
    await super.rest()
  }
}

test('check: many texts are held to their patterns in turns, and the verdict is the same', async () => {
  const at = async (effort: Effort) => (await checkCustom(object, schema, { effort })).errors
  const whole = await at(new Effort(() => 0))
  assert.deepEqual(
    whole.map((error) => error.field),
    ['<nil>', 'l[500]'],
  )
  const effort = new Counted(passing(15))
  assert.deepEqual(await at(effort), whole)
  assert.ok(effort.rests > 3, `${effort.rests} rests`)
})

test('[A8] check: others are let in between the values of a large object and its lists', async () => {
  const plain = { type: 'object', properties: { l: { type: 'array', 'x-kubernetes-list-type': 'set' } } } as Schema
  const twice = fromPlain({ l: ['a', 'b', 'a'] }) as JsonObject
  const [quick, slow] = [new Counted(passing(1)), new Counted(passing(30))]
  const whole = await checkCustom(twice, plain, { effort: quick })
  assert.deepEqual(await checkCustom(twice, plain, { effort: slow }), whole)
  assert.equal(whole.errors[0]?.field, 'l[2]')
  assert.deepEqual([quick.rests, slow.rests], [0, 1])
})

test('check: an object whose patterns take too many turns is refused', async () => {
  const texts = names.flatMap((name) => ['b', 'c', 'd', 'e'].map((letter) => `${letter}${name}`))
  const many = fromPlain({ l: texts }) as JsonObject
  const { errors } = await checkCustom(many, schema, { effort: new Effort(passing(15)) })
  assert.match(
    errors.at(-1)?.text ?? '',
    /should match '.*', which is more than can be found out of a text of this length$/,
  )
})
