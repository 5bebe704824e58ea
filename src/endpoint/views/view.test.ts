/** A view between the copy and selectors: what it hides or changes is selected, told and shared as it is seen. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Form } from '../../cache/event.ts'
import { Event } from '../../cache/event.ts'
import { makeFilter } from '../../cache/filter.ts'
import { type Item, makeItem } from '../../cache/item.ts'
import { noFields } from '../../kube/object.ts'
import { parseLabelSelector } from '../../kube/selector.ts'
import { ClassView } from './view.ts'

const itemOf = (name: string, colour: string, version = 1): Item => {
  const metadata = { name, namespace: 'a', resourceVersion: String(version), labels: { colour } }
  return makeItem(Buffer.from(JSON.stringify({ metadata })), version, noFields)
}

/** Red is seen as green, blue is hidden, and `plain` is not looked at. */
function coloured() {
  const calls: string[] = []
  const view = new ClassView({
    concerns: (_, name) => name !== 'plain',
    see: (item) => {
      calls.push(item.name)
      const colour = item.labels?.get('colour')
      if (colour === 'blue') return undefined
      return colour === 'red' ? Buffer.from(item.bytes.toString().replace('red', 'green')) : item.bytes
    },
  })
  return { view, calls }
}

const green = makeFilter({
  namespaced: true,
  namespace: '',
  labels: parseLabelSelector('colour=green'),
  paths: {},
  plan: noFields,
})

test('what a view is not about, or leaves as it is, is the same item with the same buffer', () => {
  const { view, calls } = coloured()
  const [plain, white] = [itemOf('plain', 'red'), itemOf('w', 'white')]
  assert.equal(view.see(plain), plain)
  assert.equal(view.see(white), white)
  assert.deepEqual(calls, ['w'])
})

test('each version of an object is made once, and its frames are shared by all who see it so', () => {
  const { view, calls } = coloured()
  const item = itemOf('r', 'red')
  assert.equal(view.see(item), view.see(item))
  assert.deepEqual(calls, ['r'])
  const form: Form = { frame: (type, { bytes }) => Buffer.from(`${type} ${bytes}`), bookmark: () => Buffer.alloc(0) }
  assert.equal(view.form(form), view.form(form))
  const event = new Event({ position: 1, version: 1, key: item.key, item, previous: undefined })
  const shared = event.shared('ADDED')
  assert.equal(shared.frame(view.form(form)), shared.frame(view.form(form)))
  assert.match(shared.frame(view.form(form)).toString(), /^ADDED .*green/)
  assert.match(shared.frame(form).toString(), /^ADDED .*red/, 'others are told what it is')
})

test('[A4] selectors select what is seen: entering is ADDED, leaving or being hidden is DELETED', () => {
  const { view } = coloured()
  const filter = view.filter(green)
  assert.deepEqual(filter.terms, [], 'an index knows objects as they are')
  const typeOf = (from: string | undefined, to: string | undefined) => {
    const [previous, item] = [from && itemOf('x', from, 1), to && itemOf('x', to, 2)]
    return new Event({
      position: 1,
      version: 2,
      key: 'a/x',
      item: item || undefined,
      previous: previous || undefined,
    }).typeFor(filter)
  }
  assert.equal(typeOf(undefined, 'red'), 'ADDED')
  assert.equal(typeOf('red', 'green'), 'MODIFIED')
  assert.equal(typeOf('red', 'blue'), 'DELETED')
  assert.equal(typeOf('blue', 'red'), 'ADDED')
  assert.equal(typeOf('blue', undefined), undefined)
  assert.equal(typeOf('red', undefined), 'DELETED')
  assert.equal(typeOf('white', 'blue'), undefined)
})
