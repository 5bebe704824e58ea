import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemory } from '../store/memory.ts'
import type { Make, Store } from '../store/store.ts'
import { openWorld } from './world.test-support.ts'

const maps = '/api/v1/namespaces/default/configmaps'

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'meters.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'meters', kind: 'Meter' },
    versions: ['v1', 'v2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    })),
  },
}
const meters = '/apis/example.com/v1/namespaces/default/meters'
const body = (name: string, members: string) =>
  `{"apiVersion":"example.com/v1","kind":"Meter","metadata":{"name":"${name}"},${members}}`

test('[A5] numbers, key order and unknown fields are served as they were sent, through patches too', async () => {
  const { ask } = await openWorld()
  await ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  const members = '"spec":{"10":1,"9":2,"big":9223372036854775807,"float":1.0,"exp":1e3,"z":0,"a":0}'
  const created = await ask('POST', meters, body('m', members))
  assert.equal(created.status, 201)
  assert.ok(created.text.includes(members), created.text)
  const patch = { 'content-type': 'application/merge-patch+json' }
  const patched = await ask('PATCH', `${meters}/m`, '{"metadata":{"labels":{"x":"y"}},"spec":{"z":null}}', patch)
  assert.ok(patched.text.includes('"spec":{"10":1,"9":2,"big":9223372036854775807,"float":1.0,"exp":1e3,"a":0}'))
  const list = await ask('GET', meters)
  const item = patched.text.trimEnd()
  assert.ok(list.text.includes(item), 'a list holds the very bytes of a get')
})

test('another version of a custom resource differs in its apiVersion alone', async () => {
  const { ask } = await openWorld()
  await ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  await ask('POST', meters, body('m', '"spec":{"a":1}'))
  const v1 = await ask('GET', `${meters}/m`)
  const v2 = await ask('GET', `${meters.replace('/v1/', '/v2/')}/m`)
  assert.equal(v2.text, v1.text.replace('example.com/v1', 'example.com/v2'))
  const list = await ask('GET', meters.replace('/v1/', '/v2/'))
  assert.ok(list.text.includes(v2.text.trimEnd()))
})

test('[D4] a damaged object is never served nor left out in silence, and can be deleted', async () => {
  const store = openMemory({ historyBytesMax: 1 << 20 })
  const first = await openWorld({ store })
  for (const name of ['a', 'b']) await first.ask('POST', maps, { metadata: { name } })
  const world = await openWorld({ store: damaged(store, '/configmaps', 'default/b') })
  assert.equal((await world.ask('GET', `${maps}/a`)).status, 200)
  const got = await world.ask('GET', `${maps}/b`)
  assert.equal(got.status, 500)
  assert.match(got.json.message, /"default\/b" are damaged/)
  assert.equal((await world.ask('GET', maps)).status, 500)
  const frames = await world.open(`${maps}?watch=1&resourceVersion=${world.copy.progress.version}`)
  const heard = frames.next()
  assert.equal((await world.ask('DELETE', `${maps}/b`)).status, 200)
  const event = JSON.parse(String((await heard).value))
  assert.equal(event.type, 'DELETED')
  assert.equal(event.object.metadata.name, 'b')
  assert.deepEqual(
    (await world.ask('GET', maps)).json.items.map((item: any) => item.metadata.name),
    ['a'],
  )
  await frames.return?.()
})

test('[D4] a damaged object goes once, under the lock of its key, and not for a dry run', async () => {
  const store = openMemory({ historyBytesMax: 1 << 20 })
  const first = await openWorld({ store })
  await first.ask('POST', maps, { metadata: { name: 'b' } })
  const world = await openWorld({ store: damaged(store, '/configmaps', 'default/b') })
  const before = world.copy.progress.version
  assert.equal((await world.ask('DELETE', `${maps}/b?dryRun=All`)).status, 200)
  assert.equal((await world.ask('GET', `${maps}/b`)).status, 500)
  const codes = await Promise.all([1, 2, 3].map(async () => (await world.ask('DELETE', `${maps}/b`)).status))
  assert.deepEqual(codes, [200, 404, 404])
  assert.equal(world.copy.progress.version, before + 1)
})

/** The same store, as if one body's checksum did not hold. */
function damaged(store: Store, interest: string, key: string): Store {
  return Object.assign(Object.create(store) as Store, {
    load: async (make: Make<unknown>) => {
      const { version, interests } = await store.load(make)
      const changed = interests.map((one) =>
        one.name !== interest
          ? one
          : {
              ...one,
              objects: one.objects.filter((object) => (object as { key: string }).key !== key),
              corrupt: [key],
            },
      )
      return { version, interests: changed }
    },
    commit: (batch: Parameters<Store['commit']>[0]) => store.commit(batch),
    history: (...args: Parameters<Store['history']>) => store.history(...args),
    floor: (name: string) => store.floor(name),
    figures: store.figures,
  })
}

test('pages show one version, and the last token after its time leads on inconsistently', async () => {
  const { ask, clock } = await openWorld()
  for (const name of ['a', 'b', 'c', 'd']) await ask('POST', maps, { metadata: { name } })
  const first = await ask('GET', `${maps}?limit=2`)
  assert.deepEqual(
    first.json.items.map((item: any) => item.metadata.name),
    ['a', 'b'],
  )
  assert.equal(first.json.metadata.remainingItemCount, 2)
  await ask('DELETE', `${maps}/c`)
  await ask('POST', maps, { metadata: { name: 'cc' } })
  const token = first.json.metadata.continue
  const second = await ask('GET', `${maps}?limit=2&continue=${token}`)
  assert.deepEqual(
    second.json.items.map((item: any) => item.metadata.name),
    ['c', 'd'],
  )
  assert.equal(second.json.metadata.resourceVersion, first.json.metadata.resourceVersion)
  clock.advance(301_000)
  const late = await ask('GET', `${maps}?limit=2&continue=${token}`)
  assert.equal(late.status, 410)
  const rest = await ask('GET', `${maps}?continue=${late.json.metadata.continue}`)
  assert.deepEqual(
    rest.json.items.map((item: any) => item.metadata.name),
    ['cc', 'd'],
  )
})

test('a version that lies ahead: 504 to a list after its wait, 410 to a watch', async () => {
  const { ask, clock, copy } = await openWorld()
  const ahead = copy.progress.version + 100
  const waiting = ask('GET', `${maps}?resourceVersion=${ahead}`)
  await new Promise(setImmediate)
  clock.advance(3_000)
  const late = await waiting
  assert.equal(late.status, 504)
  assert.equal(late.json.details.causes[0].reason, 'ResourceVersionTooLarge')
  const watch = await ask('GET', `${maps}?watch=1&resourceVersion=${ahead}`)
  assert.equal(watch.status, 200)
  assert.equal(JSON.parse(watch.text).object.code, 410)
})

test('[D4] a damaged namespace stops neither the start nor the sweeping of the others', async () => {
  const store = openMemory({ historyBytesMax: 1 << 20 })
  await openWorld({ store })
  const world = await openWorld({ store: damaged(store, '/namespaces', 'kube-public') })
  assert.equal((await world.ask('GET', '/api/v1/namespaces/default')).status, 200)
  assert.equal((await world.ask('GET', '/api/v1/namespaces/kube-public')).status, 500)
  assert.equal(await world.sweep(), 0)
})

test('deletecollection selects by the fields of the version it came through', async () => {
  const { ask } = await openWorld()
  const versions = definition.spec.versions.map((version) => ({
    ...version,
    // Only the second version offers the field; the first is the one a careless look-up would take.
    ...(version.name === 'v2' ? { selectableFields: [{ jsonPath: '.spec.color' }] } : {}),
    schema: {
      openAPIV3Schema: {
        type: 'object',
        properties: { spec: { type: 'object', properties: { color: { type: 'string' } } } },
      },
    },
  }))
  await ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    ...definition,
    spec: { ...definition.spec, versions },
  })
  for (const color of ['red', 'blue']) await ask('POST', meters, body(color, `"spec":{"color":"${color}"}`))
  const second = meters.replace('/v1/', '/v2/')
  assert.equal((await ask('DELETE', `${second}?fieldSelector=spec.color!%3Dred`)).status, 200)
  assert.deepEqual(
    (await ask('GET', second)).json.items.map((item: any) => item.metadata.name),
    ['red'],
  )
})

test('warnings are cut short before they burst a client’s headers', async () => {
  const { ask } = await openWorld()
  const extra = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`unknown${i}`, 1]))
  const { status, headers } = await ask('POST', maps, { metadata: { name: 'a' }, ...extra })
  assert.equal(status, 201)
  const warnings = headers.warning as string[]
  assert.match(warnings[0] ?? '', /^299 - "unknown field \\"unknown0\\""$/)
  const size = warnings.join('').length
  assert.ok(size > 4_096 && size < 8_192, `${size}`)
})
