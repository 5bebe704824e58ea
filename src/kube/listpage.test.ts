import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isListItemForm, listItemForm, PageFault, readListPage } from './listpage.ts'

const token = 'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjYzLCJzdGFydCI6Ii9kZWZhdWx0XHUwMDAwIn0'
/** As a kube-apiserver of 1.36 printed them. */
const namespaces = `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"263","continue":"${token}","remainingItemCount":3},"items":[{"metadata":{"name":"default","uid":"0f1bc404-2214-4d4b-a5b4-a702cbfad8d2","resourceVersion":"13","creationTimestamp":"2026-11-15T13:18:03Z","labels":{"kubernetes.io/metadata.name":"default"}},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}},{"metadata":{"name":"odd \\"]}\\u0000"}}]}\n`
const customs =
  '{"apiVersion":"example.com/v1","items":[{"aaa":1,"apiVersion":"example.com/v1","kind":"Gateway","metadata":{"name":"a"}}],"kind":"GatewayList","metadata":{"continue":"","resourceVersion":"77"}}\n'
const page = (metadata: string, items = '[]') =>
  `{"kind":"PodList","apiVersion":"v1","metadata":${metadata},"items":${items}}`

test('a page of a built-in resource', () => {
  const bytes = Buffer.from(namespaces)
  const { items, ...rest } = readListPage(bytes)
  assert.deepEqual(rest, { kind: 'NamespaceList', apiVersion: 'v1', version: 263, continueToken: token, remaining: 3 })
  const parsed = JSON.parse(namespaces) as { items: unknown[] }
  assert.deepEqual(
    items.map((item) => JSON.parse(item.toString())),
    parsed.items,
  )
  assert.equal(items[0]?.buffer, bytes.buffer)
})

test('a page of a custom resource, whose members come sorted', () => {
  const { items, ...rest } = readListPage(Buffer.from(customs))
  assert.deepEqual(rest, {
    kind: 'GatewayList',
    apiVersion: 'example.com/v1',
    version: 77,
    continueToken: '',
    remaining: undefined,
  })
  assert.deepEqual(items.map(String), [customs.slice(customs.indexOf('[') + 1, customs.indexOf(']'))])
})

test('a page without items', () => {
  assert.deepEqual(readListPage(Buffer.from(page('{"resourceVersion":"1"}'))).items, [])
  assert.deepEqual(readListPage(Buffer.from(page('{"resourceVersion":"1"}', 'null'))).items, [])
})

test('what is no page is refused by name', () => {
  const good = '{"resourceVersion":"1"}'
  const texts = [
    '',
    '{}',
    '[]',
    'null',
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure"}',
    page('{}'),
    page('null'),
    page('{"resourceVersion":""}'),
    page('{"resourceVersion":"0"}'),
    page('{"resourceVersion":"-1"}'),
    page('{"resourceVersion":1}'),
    page('{"resourceVersion":"9007199254740993"}'),
    page('{"resourceVersion":"1","remainingItemCount":-1}'),
    page('{"resourceVersion":"1","continue":null}'),
    page(good, '{}'),
    page(good).replace('PodList', 'Pod\\List'),
    page(good, '"x"'),
    page(good, '[1]'),
    page(good, '[{},]'),
    page(good, '[{}{}]'),
    page(good, '[{"a":01}]'),
    page(good, '[{"a":"\\x"}]'),
    page(good, '[],"items":[]'),
    `${page(good)}x`,
    page(good).replace('"kind":"PodList",', ''),
    page(good).replace('"apiVersion":"v1",', ''),
  ]
  for (const text of texts) assert.throws(() => readListPage(Buffer.from(text)), PageFault, text)
})

test('a page that is cut anywhere is refused', () => {
  for (const text of [namespaces, customs]) {
    // The newline at its end says nothing.
    for (let end = 0; end < text.length - 1; end++) {
      assert.throws(() => readListPage(Buffer.from(text.slice(0, end))), PageFault, text.slice(0, end))
    }
  }
})

test('a page with any byte changed is refused or gives items that are JSON objects', () => {
  let read = 0
  fc.assert(
    fc.property(fc.constantFrom(namespaces, customs), fc.nat(), fc.integer({ min: 0, max: 127 }), (text, at, byte) => {
      const bytes = Buffer.from(text)
      bytes[at % bytes.length] = byte
      try {
        for (const item of readListPage(bytes).items) assert.equal(typeof JSON.parse(item.toString()), 'object')
        read++
      } catch (error) {
        assert.ok(error instanceof PageFault, String(error))
      }
    }),
    { numRuns: 2000 },
  )
  assert.ok(read > 100)
})

test('[A5] a built-in object is kept as its list spells it, a custom one as it came', () => {
  const item = '{"metadata":{"name":"a"},"kind":"inner","apiVersion":"x"}'
  const forms = [
    `{"kind":"Pod","apiVersion":"v1",${item.slice(1)}`,
    `{"apiVersion":"v1","kind":"Pod",${item.slice(1)}`,
    `{ "kind" : "Pod" , "apiVersion" : "v1" , ${item.slice(1)}`,
    item,
  ]
  for (const form of forms) {
    assert.equal(listItemForm(Buffer.from(form), false).toString(), item)
    assert.ok(isListItemForm(Buffer.from(item), Buffer.from(form), false))
    assert.equal(isListItemForm(Buffer.from(item), Buffer.from(form), true), form === item)
    for (const other of [item.replace('inner', 'other'), `${item} `, '{}', form.replace('"v1"', '"v2"')]) {
      if (other !== item) assert.ok(!isListItemForm(Buffer.from(other), Buffer.from(form), false))
    }
  }
  const custom = Buffer.from('xx{"apiVersion":"example.com/v1","kind":"Gateway","metadata":{}}').subarray(2)
  const kept = listItemForm(custom, true)
  assert.deepEqual(kept, custom)
  for (const form of [kept, listItemForm(Buffer.from(forms[0] as string), false)]) {
    assert.equal(form.buffer.byteLength, form.length, 'its memory is its own and no larger')
  }
  assert.equal(listItemForm(Buffer.from('{}'), false).toString(), '{}')
  assert.throws(() => listItemForm(Buffer.from('[]'), false), PageFault)
})
