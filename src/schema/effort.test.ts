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

test('check: many texts are held to their patterns in turns, and the verdict is the same', async () => {
  const at = async (effort: Effort) => (await checkCustom(object, schema, { effort })).errors
  const whole = await at(new Effort(() => 0))
  assert.deepEqual(
    whole.map((error) => error.field),
    ['<nil>', 'l[500]'],
  )
  let rests = 0
  class Counted extends Effort {
    override async rest() {
      rests++
      await super.rest()
    }
  }
  assert.deepEqual(await at(new Counted(passing(15))), whole)
  assert.ok(rests > 3, `${rests} rests`)
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
