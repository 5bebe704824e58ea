/** What a reflector takes for an answer to its own question, and what it does not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer } from '../../mirror/apiserver.test-support.ts'
import { scopeOf } from '../../mirror/world.test-support.ts'
import { TooLarge } from './follow.ts'
import { Source } from './source.ts'

function sourceOf(wish: { namespace?: string; kind?: string } = {}) {
  const upstream = new ApiServer()
  upstream.put('pods', 'a/p')
  const { namespace = '', ...rest } = wish
  return new Source({ upstream, clock: upstream.clock, scope: scopeOf({ namespace }), ...rest })
}

const bare = Buffer.from('{"metadata":{"name":"p","namespace":"a"}}')
const pod = Buffer.from('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"a"}}')
const meta = { name: 'p', namespace: 'a' }

test('an object without a name, or of another namespace than was asked for, is refused', () => {
  const source = sourceOf({ namespace: 'a' })
  source.check(bare, meta)
  assert.throws(() => source.check(bare, { ...meta, name: '' }), /without a name/)
  assert.throws(() => source.check(bare, { ...meta, namespace: 'b' }), /another namespace, "b"/)
  sourceOf().check(bare, { ...meta, namespace: 'b' })
})

test('an object of another kind is refused, where it says its kind and that is known', () => {
  sourceOf({ kind: 'Pod' }).check(pod, meta)
  sourceOf({ kind: 'Pod' }).check(bare, meta)
  sourceOf().check(pod, meta)
  for (const kind of ['ConfigMap', 'Po', 'Pods']) {
    assert.throws(() => sourceOf({ kind }).check(pod, meta), new RegExp(`another kind than ${kind}`))
  }
})

test('a list of another kind is refused', async () => {
  const { signal } = new AbortController()
  assert.equal((await sourceOf({ kind: 'Pod' }).page({}, signal)).kind, 'PodList')
  assert.equal((await sourceOf().page({}, signal)).kind, 'PodList')
  await assert.rejects(sourceOf({ kind: 'ConfigMap' }).page({}, signal), /a list of another kind, PodList/)
})

test('where a page is too large, fewer objects are asked for at a time; one object that is too large alone is refused', async () => {
  const upstream = new ApiServer()
  for (let i = 0; i < 20; i++) upstream.put('pods', `a/p${i}`, { value: 'v'.repeat(500) })
  const { signal } = new AbortController()
  const scope = scopeOf({})
  const source = new Source({ upstream, clock: upstream.clock, scope, pageBytes: 2_500 })
  const names = new Set<string>()
  for (let token = ''; ; ) {
    const page = await source.page({ continueToken: token, objects: 100 }, signal)
    for (const item of page.items) names.add(String(item))
    token = page.continueToken
    if (token === '') break
  }
  assert.equal(names.size, 20)
  await assert.rejects(
    new Source({ upstream, clock: upstream.clock, scope, pageBytes: 300 }).page({}, signal),
    TooLarge,
  )
})
