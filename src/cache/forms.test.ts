import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { noFields } from '../kube/object.ts'
import { Forms, type Maker } from './forms.ts'
import { type Item, makeItem } from './item.ts'

const itemOf = (name: string): Item => makeItem(Buffer.from(`{"metadata":{"name":"${name}"}}`), 1, noFields)

/** A maker whose forms have this size, and how often it was asked. */
function counting(size: number): { make: Maker; made: Item[] } {
  const made: Item[] = []
  const make = (item: Item) => {
    made.push(item)
    return Buffer.alloc(size)
  }
  return { make, made }
}

test('a form is made once, and each maker has its own', () => {
  const forms = new Forms({ bytesMax: 10_000 })
  const item = itemOf('a')
  const [one, two] = [counting(10), counting(20)]
  assert.equal(forms.peek(item, one.make), undefined)
  const bytes = forms.get(item, one.make)
  assert.equal(forms.get(item, one.make), bytes)
  assert.equal(forms.get(item, two.make).length, 20)
  assert.equal(forms.peek(item, one.make), bytes)
  assert.deepEqual([one.made.length, two.made.length], [1, 1])
})

test('the limit holds, and what was asked for lately stays', () => {
  const forms = new Forms({ bytesMax: 10 * 1_512 })
  const { make, made } = counting(1_000)
  const items = Array.from({ length: 40 }, (_, i) => itemOf(`i${i}`))
  const wanted = items[0] as Item
  for (const item of items) {
    forms.get(item, make)
    forms.get(wanted, make)
    assert.ok(forms.bytes <= 10 * 1_512)
  }
  assert.equal(made.filter((item) => item === wanted).length, 1)
  assert.ok(forms.bytes > 8 * 1_512, 'the room is used')
})

test('a form that is larger than all the room is made and not kept', () => {
  const forms = new Forms({ bytesMax: 100 })
  const { make } = counting(101)
  assert.equal(forms.get(itemOf('a'), make).length, 101)
  assert.equal(forms.bytes, 0)
})

test('whatever is asked in whatever order, what is kept is what was made and weighs what is said', () => {
  const step = fc.record({ item: fc.nat(7), maker: fc.nat(2) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const forms = new Forms({ bytesMax: 5_000 })
      const items = Array.from({ length: 8 }, (_, i) => itemOf(`i${i}`))
      const makers: Maker[] = [0, 1, 2].map(
        (n) =>
          ({ key }) =>
            Buffer.from(`${n} ${key}`.padEnd(100 + n * 200)),
      )
      for (const { item, maker } of steps) {
        const bytes = forms.get(items[item] as Item, makers[maker] as Maker)
        assert.ok(bytes.toString().startsWith(`${maker} i${item} `))
        let kept = 0
        for (const one of items) for (const make of makers) kept += lengthOf(forms, one, make)
        assert.equal(forms.bytes, kept)
        assert.ok(kept <= 5_000)
      }
    }),
  )
})

function lengthOf(forms: Forms, item: Item, make: Maker): number {
  const bytes = forms.peek(item, make)
  return bytes === undefined ? 0 : bytes.length + 512
}

test('forms go with their items', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const forms = new Forms({ bytesMax: 1_000_000 })
  const make = () => Buffer.alloc(1_000)
  const kept = itemOf('kept')
  forms.get(kept, make)
  for (let i = 0; i < 100; i++) forms.get(itemOf(`i${i}`), make)
  for (let i = 0; i < 20 && forms.bytes > 1_512; i++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(forms.bytes, 1_512)
  assert.ok(forms.peek(kept, make) !== undefined)
})
