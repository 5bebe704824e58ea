import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const core = '/api/v1/namespaces/default'
const merge = 'application/merge-patch+json'

type Cause = { readonly field: string; readonly message: string }

test('an immutable ConfigMap keeps its content, and stays immutable', async () => {
  const world = new FakeWorld()
  const made = await world.send('POST', `${core}/configmaps`, {
    metadata: { name: 'a' },
    data: { k: '1' },
    immutable: true,
  })
  assert.equal(made.code, 201)
  const change = async (patch: object) => {
    const { code, body } = await world.send('PATCH', `${core}/configmaps/a`, patch, merge)
    return [code, ...(body.details?.causes ?? []).map((one: Cause) => `${one.field}: ${one.message}`)]
  }
  const forbidden = 'Forbidden: field is immutable when `immutable` is set'
  assert.deepEqual(await change({ data: { k: '2' }, binaryData: { b: 'AA==' }, immutable: false }), [
    422,
    `immutable: ${forbidden}`,
    `data: ${forbidden}`,
    `binaryData: ${forbidden}`,
  ])
  assert.deepEqual(await change({ immutable: null }), [422, `immutable: ${forbidden}`])
  assert.deepEqual(await change({ metadata: { labels: { a: 'b' } } }), [200])
})

test('the type of a Secret never changes, its content only if it may', async () => {
  const world = new FakeWorld()
  const url = `${core}/secrets`
  await world.send('POST', url, { metadata: { name: 'a' }, stringData: { k: '1' } })
  assert.equal((await world.send('PATCH', `${url}/a`, { stringData: { k: '2' } }, merge)).code, 200)
  const typed = await world.send('PATCH', `${url}/a`, { type: 'x' }, merge)
  assert.equal(typed.body.message, 'Secret "a" is invalid: type: Invalid value: "x": field is immutable')
  assert.equal((await world.send('PATCH', `${url}/a`, { immutable: true }, merge)).code, 200)
  const changed = await world.send('PATCH', `${url}/a`, { stringData: { k: '3' } }, merge)
  assert.deepEqual(
    changed.body.details.causes.map((one: Cause) => one.field),
    ['data'],
  )
})

test('keys are names of files, each once, and there is an end to their content', async () => {
  const world = new FakeWorld()
  const faults = async (kind: string, content: object) => {
    const { body } = await world.send('POST', `${core}/${kind}?dryRun=All`, { metadata: { name: 'a' }, ...content })
    return (body.details?.causes ?? []).map((one: Cause) => `${one.field}: ${one.message}`)
  }
  const [space, twice] = await faults('configmaps', { data: { 'a b': '1', c: '1' }, binaryData: { c: 'AA==' } })
  assert.match(space, /^data\[a b\]: Invalid value: "a b": a valid config key must .*'key.name', {2}or 'KEY_NAME'/)
  assert.equal(twice, 'data[c]: Invalid value: "c": duplicate of key present in binaryData')
  assert.deepEqual(await faults('secrets', { data: { '..': '' } }), [
    'data[..]: Invalid value: "..": must not be \'..\'',
  ])
  const large = 'x'.repeat(1024 * 1024)
  assert.deepEqual(await faults('configmaps', { data: { a: large } }), [])
  assert.deepEqual(await faults('configmaps', { data: { a: large, b: 'x' } }), [
    '[]: Too long: may not be more than 1048576 bytes',
  ])
})
