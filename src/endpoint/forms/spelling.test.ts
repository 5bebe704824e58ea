/** Against what a kube-apiserver of 1.36 printed: its list, its objects and its frames, byte for byte. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { damagedItem, makeItem, relabel } from '../../cache/item.ts'
import { builtinFacts } from '../../kube/builtin.ts'
import { FrameReader } from '../../kube/frames.ts'
import { listItemForm, readListPage } from '../../kube/listpage.ts'
import { noFields } from '../../kube/object.ts'
import type { Resource } from '../../kube/resource.ts'
import { Spelling } from './spelling.ts'

const odd: Resource = {
  group: 'pbwork.example.com',
  version: 'v1',
  resource: 'oddthings',
  kind: 'OddThing',
  listKind: 'OddThingList',
  singular: 'oddthing',
  namespaced: true,
  verbs: ['get', 'list', 'watch'],
  shortNames: [],
  categories: [],
  subresources: [],
  interest: 'pbwork.example.com/oddthings',
  custom: true,
}
const resource = (name: string): Resource => builtinFacts().resources.find((one) => one.resource === name) as Resource

const oddObject =
  '{"aaa":[1,2.5,1000,12345678901234567],"apiVersion":"pbwork.example.com/v1","b":"\\u003c\\u0026\\u003eé\\u2028","kind":"OddThing","l":{"kind":"x"},"metadata":{"creationTimestamp":"2026-11-15T13:27:04Z","generation":1,"name":"o1","namespace":"pbwork","resourceVersion":"318","uid":"9c325743-edc0-4440-8839-e2af7ddc324b"},"spec":{"Z":1,"a":0},"zzz":null}'
const plainObject =
  '{"apiVersion":"pbwork.example.com/v1","kind":"OddThing","metadata":{"creationTimestamp":"2026-11-15T13:27:32Z","generation":1,"name":"o3","namespace":"pbwork","resourceVersion":"327","uid":"065a7133-de05-4d62-8ec7-ff366925b6ef"}}'
const token = 'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MzI3LCJzdGFydCI6Ii9vMVx1MDAwMCJ9'
const oddList = `{"apiVersion":"pbwork.example.com/v1","items":[${oddObject},${plainObject}],"kind":"OddThingList","metadata":{"continue":"","resourceVersion":"326"}}\n`
const oddPage = `{"apiVersion":"pbwork.example.com/v1","items":[${oddObject}],"kind":"OddThingList","metadata":{"continue":"${token}","remainingItemCount":1,"resourceVersion":"327"}}\n`
const secret =
  '{"metadata":{"name":"s1","namespace":"pbwork","uid":"90724a96-7acb-469c-85ae-979bdb169f10","resourceVersion":"316","creationTimestamp":"2026-11-15T13:27:02Z"},"data":{"a":"Yg=="},"type":"Opaque"}'
const secretList = `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"326"},"items":[${secret}]}\n`
const secretObject = `{"kind":"Secret","apiVersion":"v1",${secret.slice(1)}`

function spelled(spelling: Spelling, list: string): string {
  const page = readListPage(Buffer.from(list))
  const items = page.items.map((item) => makeItem(listItemForm(item, true), page.version, noFields))
  const continueToken = page.continueToken === '' ? undefined : page.continueToken
  const meta = { version: page.version, continueToken, remaining: page.remaining }
  return Buffer.concat(spelling.list(items, meta)).toString()
}

test('[A5] a mirrored list is served as it came', () => {
  const mirrored = new Spelling(odd, undefined, { verbatim: true })
  assert.equal(spelled(mirrored, oddList), oddList)
  assert.equal(spelled(mirrored, oddPage), oddPage)
  assert.equal(spelled(mirrored, oddList.replace(/\[{.*}\]/, '[]')), oddList.replace(/\[{.*}\]/, '[]'))
  assert.equal(spelled(new Spelling(resource('secrets'), undefined, { verbatim: true }), secretList), secretList)
})

test('[A5] mirrored objects are served as they came, whether from a list, a frame or alone', () => {
  const cases: [Resource, string][] = [
    [odd, oddObject],
    [odd, plainObject],
    [resource('secrets'), secretObject],
  ]
  for (const [of, object] of cases) {
    const spelling = new Spelling(of, undefined, { verbatim: true })
    const line = `{"type":"MODIFIED","object":${object}}\n`
    const [frame] = new FrameReader().push(Buffer.from(line))
    const item = makeItem(listItemForm(frame?.object as Buffer, of.custom), 1, noFields)
    assert.equal(spelling.object(item).toString(), `${object}\n`)
    assert.equal(spelling.frame('MODIFIED', item).toString(), line)
  }
})

test('[A5] whatever members a mirrored custom object has, and in whatever order, it stays the same', () => {
  const spelling = new Spelling(odd, undefined, { verbatim: true })
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), fc.boolean(), (members, first) => {
      const metadata = { metadata: { name: 'a', resourceVersion: '1' }, kind: 'OddThing' }
      const object = JSON.stringify(first ? { ...metadata, ...members, ...metadata } : { ...members, ...metadata })
      const item = makeItem(listItemForm(Buffer.from(object), true), 1, noFields)
      assert.equal(spelling.object(item).toString(), `${object}\n`)
      assert.equal(spelling.frame('ADDED', item).toString(), `{"type":"ADDED","object":${object}}\n`)
      assert.equal(spelling.list([item], { version: 1 })[1]?.toString(), object)
    }),
  )
})

test('objects of our own in another version of their resource have their head swapped', () => {
  const stored = '{"apiVersion":"pbwork.example.com/v1","kind":"OddThing","metadata":{"name":"a"}}'
  const wanted = '{"apiVersion":"pbwork.example.com/v2","kind":"OddThing","metadata":{"name":"a"}}'
  const spelling = new Spelling({ ...odd, version: 'v2' })
  const item = makeItem(Buffer.from(stored), 1, noFields)
  assert.equal(spelling.object(item).toString(), `${wanted}\n`)
  assert.equal(spelling.frame('ADDED', item).toString(), `{"type":"ADDED","object":${wanted}}\n`)
  assert.ok(Buffer.concat(spelling.list([item], { version: 1 })).includes(`"items":[${wanted}]`))
})

test('[A5] bookmarks are as kube-apiserver prints them', () => {
  const end = '"annotations":{"k8s.io/initial-events-end":"true"}'
  const frames: [Resource, boolean, string][] = [
    [odd, true, `{"apiVersion":"pbwork.example.com/v1","kind":"OddThing","metadata":{${end},"resourceVersion":"319"}}`],
    [odd, false, '{"apiVersion":"pbwork.example.com/v1","kind":"OddThing","metadata":{"resourceVersion":"319"}}'],
    [
      resource('configmaps'),
      true,
      `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"319",${end}}}`,
    ],
    [
      resource('pods'),
      false,
      '{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"319"},"spec":{"containers":null},"status":{}}',
    ],
    [
      resource('daemonsets'),
      true,
      '{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"resourceVersion":"319","annotations":{"deprecated.daemonset.template.generation":"0","k8s.io/initial-events-end":"true"}},"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}}',
    ],
  ]
  for (const [of, ending, object] of frames) {
    const printed = new Spelling(of).bookmark(319, ending).toString()
    assert.equal(printed, `{"type":"BOOKMARK","object":${object}}\n`)
  }
})

test('the bookmark of every built-in resource is a frame', () => {
  for (const of of builtinFacts().resources) {
    if (!of.verbs.includes('watch')) continue
    const [frame] = new FrameReader().push(new Spelling(of).bookmark(7, true))
    const object = JSON.parse(frame?.object.toString() ?? '')
    assert.deepEqual([frame?.type, object.kind, object.metadata.resourceVersion], ['BOOKMARK', of.kind, '7'])
  }
})

test('[D4] of a damaged object a frame tells what kind of thing is gone: clients refuse one that does not', () => {
  const gone = relabel(damagedItem('pbwork/o1'), 330)
  const metadata = '"metadata":{"name":"o1","namespace":"pbwork","resourceVersion":"330"}}}'
  const head = '{"type":"DELETED","object":{"apiVersion":"pbwork.example.com/v1","kind":"OddThing",'
  const converting = new Spelling(odd, () => assert.fail('there is nothing to convert'))
  for (const spelling of [new Spelling(odd, undefined, { verbatim: true }), new Spelling(odd), converting]) {
    assert.equal(spelling.frame('DELETED', gone).toString(), `${head}${metadata}\n`)
  }
})
