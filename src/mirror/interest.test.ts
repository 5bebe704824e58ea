import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeItem } from '../cache/item.ts'
import { FieldSelector, parseFieldSelector } from '../kube/fieldselector.ts'
import { pathOf } from '../kube/scope.ts'
import { LabelSelector, parseLabelSelector } from '../kube/selector.ts'
import { covers, interestOf, kindOfName, parseInterest, printInterest, scopeOfName } from './interest.ts'
import { filterOf, known, scopeOf, type Wish } from './world.test-support.ts'

const { plan } = known('pods')

const labelTerms = [
  'app=web',
  'app==web',
  'app!=web',
  'app in (web,api)',
  'app in (api,web)',
  'tier',
  '!tier',
  'tier=x',
]
const fieldTerms = [
  'metadata.name=k1',
  'metadata.name!=k1',
  'metadata.namespace=a',
  'metadata.namespace!=a',
  'spec.nodeName=n1',
  'spec.nodeName==n1',
  'spec.nodeName=',
]
const terms = (from: readonly string[]) => fc.subarray([...from], { maxLength: 3 }).map((some) => some.join(','))
const wish: fc.Arbitrary<Wish> = fc.record({
  namespace: fc.constantFrom('', 'a', 'b'),
  labels: terms(labelTerms),
  fields: terms(fieldTerms),
})
const object = fc.record({
  key: fc.constantFrom('a/k1', 'a/k2', 'b/k1', 'b/k2'),
  app: fc.constantFrom(undefined, 'web', 'api'),
  tier: fc.constantFrom(undefined, 'x', 'y'),
  node: fc.constantFrom(undefined, 'n1', 'n2'),
})

function itemOf({ key, app, tier, node }: { key: string; app?: string; tier?: string; node?: string }) {
  const [namespace, name] = key.split('/')
  const metadata = { name, namespace, resourceVersion: '5', labels: { app, tier } }
  return makeItem(Buffer.from(JSON.stringify({ metadata, spec: { nodeName: node } })), 5, plan)
}

test('what an interest covers, it holds: whatever matches the request matches the interest', () => {
  let covered = 0
  const holds = fc.property(wish, wish, object, (interest, request, thing) => {
    if (!covers(scopeOf(interest), scopeOf(request))) return
    covered++
    const item = itemOf(thing as Parameters<typeof itemOf>[0])
    if (filterOf(request, plan).matches(item)) assert.ok(filterOf(interest, plan).matches(item))
  })
  fc.assert(holds, { numRuns: 5_000 })
  assert.ok(covered > 100, `only ${covered} pairs say anything`)
})

test('[A8] a selector of thousands of terms is compared with hundreds of interests without a look at each term for each', () => {
  const [terms, interests] = [4_000, 500]
  let looked = 0
  const labels = new LabelSelector(
    Array.from({ length: terms }, (_, i) => ({
      get key() {
        looked++
        return `a${i}`
      },
      operator: 'absent' as const,
      values: [],
    })),
  )
  const fields = new FieldSelector(
    Array.from({ length: terms }, (_, i) => ({
      get field() {
        looked++
        return 'metadata.name'
      },
      operator: '!=' as const,
      value: `a${i}`,
    })),
  )
  const scope = { ...scopeOf({}), labels, fields }
  looked = 0
  let covering = 0
  for (let at = 0; at < interests; at++) {
    const [first, last] = [`a${at}`, `a${terms - 1 - at}`]
    for (const wish of [{ labels: `!${first},!${last}` }, { labels: '!b' }, { namespace: 'n' }])
      if (covers(scopeOf(wish), scope)) covering++
    if (covers(scopeOf({ fields: `metadata.name!=${first},metadata.name!=${last}` }), scope)) covering++
  }
  assert.equal(covering, 2 * interests)
  assert.ok(looked <= 4 * terms, `${looked} looks at ${2 * terms} terms`)
})

test('covering goes on from one to the next, and everything covers itself', () => {
  const holds = fc.property(wish, wish, wish, (a, b, c) => {
    const [wide, middle, narrow] = [scopeOf(a), scopeOf(b), scopeOf(c)]
    assert.ok(covers(wide, wide))
    // One that asks for two namespaces at once matches nothing: whether that is covered does not matter.
    const place = narrow.fields.required('metadata.namespace')
    fc.pre(narrow.namespace === '' || place === undefined || place === narrow.namespace)
    if (covers(wide, middle) && covers(middle, narrow)) assert.ok(covers(wide, narrow))
  })
  fc.assert(holds, { numRuns: 3_000 })
})

test('which requests an interest covers', () => {
  const yes: [Wish, Wish][] = [
    [{}, { namespace: 'a', labels: 'app=web', fields: 'spec.nodeName=n1' }],
    [{ namespace: 'a' }, { namespace: 'a', fields: 'metadata.name=x' }],
    [{ namespace: 'a' }, { fields: 'metadata.namespace=a' }],
    [{ fields: 'metadata.namespace=a' }, { namespace: 'a' }],
    [{ labels: 'app in (b,a)' }, { labels: 'tier,app in (a,b)' }],
    [{ fields: 'spec.nodeName=n1' }, { fields: 'metadata.name=x,spec.nodeName==n1' }],
  ]
  const no: [Wish, Wish][] = [
    [{ namespace: 'a' }, {}],
    [{ namespace: 'a' }, { namespace: 'b' }],
    [{ labels: 'app=web' }, {}],
    [{ labels: 'app=web' }, { labels: 'app!=web' }],
    [{ labels: 'app in (a,b)' }, { labels: 'app=a' }],
    [{ fields: 'spec.nodeName=n1' }, { fields: 'spec.nodeName!=n1' }],
    [{ fields: 'metadata.name=x' }, { namespace: 'a' }],
    [{ resource: 'configmaps' }, { resource: 'pods' }],
  ]
  for (const [interest, request] of yes) assert.ok(covers(scopeOf(interest), scopeOf(request)), JSON.stringify(request))
  for (const [interest, request] of no) assert.ok(!covers(scopeOf(interest), scopeOf(request)), JSON.stringify(request))
  assert.ok(!covers({ ...scopeOf({}), group: 'apps' }, scopeOf({})))
  assert.ok(!covers({ ...scopeOf({}), version: 'v2' }, scopeOf({})))
})

test('two spellings of one wish are one interest, two wishes are two, and each survives being written down', () => {
  const holds = fc.property(wish, wish, (a, b) => {
    const [one, other] = [interestOf(scopeOf(a)), interestOf(scopeOf(b))]
    const same = JSON.stringify(printInterest(one)) === JSON.stringify(printInterest(other))
    assert.equal(one.name === other.name, same)
    const again = parseInterest(JSON.parse(JSON.stringify(printInterest(one))) as Record<string, unknown>)
    assert.equal(again.name, one.name)
    assert.ok(covers(again, one) && covers(one, again))
  })
  fc.assert(holds, { numRuns: 2_000 })
  const spellings = ['app=web,tier', 'tier,app==web', 'app in (web), tier', 'tier,app=web,tier']
  assert.equal(new Set(spellings.map((labels) => interestOf(scopeOf({ labels })).name)).size, 1)
})

test('the path of an interest asks the API server for exactly that', () => {
  const scope = scopeOf({ namespace: 'a', labels: 'app in (b,a)', fields: 'spec.nodeName=n1' })
  const path = pathOf(scope, { limit: '5' })
  const [bare, query] = path.split('?')
  assert.equal(bare, '/api/v1/namespaces/a/pods')
  const asked = new URLSearchParams(query)
  assert.deepEqual(Object.fromEntries(asked), {
    limit: '5',
    labelSelector: 'app in (a,b)',
    fieldSelector: 'spec.nodeName=n1',
  })
  assert.equal(pathOf({ ...scopeOf({ resource: 'nodes' }), group: 'g.io', version: 'v2' }, {}), '/apis/g.io/v2/nodes')
})

test('figures know an interest by its resource and how much of it that is, never by an object or what a caller wrote', () => {
  const kind = (name: string) => Object.values(kindOfName(name)).join(' ').trim()
  const deployments = { group: 'apps', version: 'v1', resource: 'deployments', namespace: '' }
  const labels = parseLabelSelector('metadata.name=x')
  const fields = parseFieldSelector('spec.nodeName=n')
  assert.equal(kind(interestOf(deployments).name), 'apps deployments all')
  assert.equal(
    kind(interestOf({ ...deployments, namespace: 'a?b&metadata.name=x' }).name),
    'apps deployments namespace',
  )
  assert.equal(kind(interestOf({ ...deployments, labels }).name), 'apps deployments selector')
  assert.equal(kind(interestOf({ ...deployments, fields }).name), 'apps deployments selector')
  const pods = { group: '', version: 'v1', resource: 'pods', namespace: 'shop' }
  assert.equal(kind(interestOf(scopeOfName(pods, 'p')).name), 'pods name')
  assert.equal(kind(interestOf({ ...scopeOfName(pods, 'p'), labels }).name), 'pods name')
  const odd = parseFieldSelector('a.b=?,metadata.name=p')
  assert.equal(kind(interestOf({ ...pods, fields: odd }).name), 'pods name', 'a value may hold what ends the place')
})
