/** Protobuf as clients meet it: what is asked for in it, sent in it, watched in it, and where it is not spoken. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { forms } from '../cache/forms.ts'
import { decodeMessage, encodeMessage, type Message, messageOf, readEnvelope, wrap } from '../kube/protobuf/protobuf.ts'
import { eachField } from '../kube/protobuf/wirefield.ts'
import { type Answer, openWorld, type World } from './world.test-support.ts'

const mediaType = 'application/vnd.kubernetes.protobuf'
const accept = { accept: `${mediaType},application/json` }
const maps = '/api/v1/namespaces/default/configmaps'

function message(apiVersion: string, kind: string): Message {
  return messageOf(apiVersion === '' ? 'v1' : apiVersion, kind) as Message
}

/** What is in an envelope, as JSON. */
function opened(bytes: Buffer): any {
  const { raw, ...type } = readEnvelope(bytes)
  return JSON.parse(decodeMessage(message(type.apiVersion, type.kind), raw, type).toString())
}

/** The message that an API server would send of this JSON. */
function sent(json: string): Buffer {
  const { apiVersion = '', kind } = JSON.parse(json)
  return wrap({ apiVersion, kind }, encodeMessage(message(apiVersion, kind), Buffer.from(json)))
}

function isProtobuf({ headers, bytes }: Answer): void {
  assert.equal(headers['content-type'], mediaType)
  assert.equal(headers['content-length'], String(bytes.length))
}

async function withMaps(count = 3): Promise<World> {
  const world = await openWorld()
  for (let i = 0; i < count; i++) {
    const metadata = { name: `m${i}`, labels: { n: String(i) } }
    await world.ask('POST', maps, { metadata, data: { text: `${i}`.repeat(200) } })
  }
  return world
}

test('a GET is the message of the same object that JSON shows', async () => {
  const { ask } = await withMaps()
  const answer = await ask('GET', `${maps}/m1`, undefined, accept)
  isProtobuf(answer)
  const { text } = await ask('GET', `${maps}/m1`)
  assert.deepEqual(answer.bytes, sent(text))
  assert.deepEqual((await ask('GET', `${maps}/m1`, undefined, accept)).bytes, answer.bytes)
  assert.equal((await ask('GET', `${maps}/m1?pretty=1`, undefined, accept)).bytes.length, answer.bytes.length)
})

test('a LIST is made of the messages of its items, page by page', async () => {
  const { ask } = await withMaps(5)
  for (const query of ['', '?limit=2', '?labelSelector=n=3', '?labelSelector=n=none']) {
    const answer = await ask('GET', `${maps}${query}`, undefined, accept)
    isProtobuf(answer)
    const { text } = await ask('GET', `${maps}${query}`)
    assert.deepEqual(answer.bytes, sent(text), query)
  }
  const page = opened((await ask('GET', `${maps}?limit=2`, undefined, accept)).bytes)
  assert.equal(page.metadata.remainingItemCount, 3)
  const rest = await ask('GET', `${maps}?continue=${page.metadata.continue}`, undefined, accept)
  assert.deepEqual(
    opened(rest.bytes).items.map((one: any) => one.metadata.name),
    ['m2', 'm3', 'm4'],
  )
})

test('an object’s message is made once for GET, LIST and WATCH, and none where nobody asks for it', async () => {
  const { ask, open } = await withMaps(3)
  const before = forms.bytes
  await ask('GET', `${maps}/m1`)
  await ask('GET', maps)
  assert.equal(forms.bytes, before)
  await ask('GET', `${maps}/m1`, undefined, accept)
  const one = forms.bytes - before
  await ask('GET', maps, undefined, accept)
  assert.equal(forms.bytes - before, 3 * one)
  const watch = await open(`${maps}?watch=1`, accept)
  await watch.next()
  await watch.return?.()
  await ask('GET', `${maps}?labelSelector=n`, undefined, accept)
  assert.equal(forms.bytes - before, 3 * one)
  const content = { ...accept, 'content-type': 'application/json' }
  await ask('POST', maps, { metadata: { name: 'm9', labels: { n: '9' } }, data: { text: '9'.repeat(200) } }, content)
  const made = forms.bytes
  await ask('GET', maps, undefined, accept)
  assert.equal(forms.bytes, made, 'the answer to a write shares it too')
})

test('a large LIST goes out in pieces, compressed where that is asked for', async () => {
  const { ask } = await withMaps(700)
  const whole = await ask('GET', maps, undefined, accept)
  assert.ok(whole.bytes.length > 128 * 1024)
  const packed = await ask('GET', maps, undefined, { ...accept, 'accept-encoding': 'gzip' })
  assert.deepEqual([packed.headers['content-encoding'], packed.headers['content-type']], ['gzip', mediaType])
  assert.ok(gunzipSync(packed.bytes).equals(whole.bytes))
})

test('the first LIST of many objects lets others have their turn', async () => {
  const { ask } = await withMaps(700)
  let turns = 0
  let listing = true
  const count = () => {
    turns++
    if (listing) setImmediate(count)
  }
  setImmediate(count)
  const first = await ask('GET', maps, undefined, accept)
  const needed = turns
  assert.ok(needed >= 1, 'it paused')
  turns = 0
  assert.ok((await ask('GET', maps, undefined, accept)).bytes.equals(first.bytes))
  assert.equal(turns, 0, 'and made nothing the second time')
  listing = false
})

test('metadata alone, of one object, of a list and of custom resources too', async () => {
  const { ask } = await withMaps()
  const as = (kind: string) => ({ accept: `${mediaType};as=${kind};g=meta.k8s.io;v=v1` })
  const one = await ask('GET', `${maps}/m1`, undefined, as('PartialObjectMetadata'))
  isProtobuf(one)
  const inJson = { accept: as('PartialObjectMetadata').accept.replace(mediaType, 'application/json') }
  assert.deepEqual(one.bytes, sent((await ask('GET', `${maps}/m1`, undefined, inJson)).text))
  const list = await ask('GET', maps, undefined, as('PartialObjectMetadataList'))
  const { raw: _raw, ...type } = readEnvelope(list.bytes)
  assert.deepEqual(type, { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadataList' })
  const { items } = opened(list.bytes)
  assert.deepEqual(
    items.map((item: any) => item.metadata.labels.n),
    ['0', '1', '2'],
  )
  await ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  await ask('POST', meters, { apiVersion: 'example.com/v1', kind: 'Meter', metadata: { name: 'm' }, spec: { a: 1 } })
  const custom = await ask('GET', `${meters}/m`, undefined, as('PartialObjectMetadata'))
  assert.equal(opened(custom.bytes).metadata.name, 'm')
})

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'meters.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'meters', kind: 'Meter' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}
const meters = '/apis/example.com/v1/namespaces/default/meters'

test('custom resources come in JSON where the Accept allows it, are refused where not, and are not taken', async () => {
  const { ask } = await openWorld()
  await ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  const object = { apiVersion: 'example.com/v1', kind: 'Meter', metadata: { name: 'm' }, spec: { replicas: 1 } }
  await ask('POST', meters, object)
  assert.equal((await ask('GET', `${meters}/m`, undefined, accept)).json.kind, 'Meter')
  const refused = await ask('GET', `${meters}/m`, undefined, { accept: mediaType })
  assert.equal(refused.status, 406)
  assert.equal(opened(refused.bytes).reason, 'NotAcceptable', 'and that is told in protobuf')
  const content = { 'content-type': mediaType }
  const body = wrap({ apiVersion: 'example.com/v1', kind: 'Meter' }, Buffer.alloc(0))
  const { status, json } = await ask('POST', meters, body, content)
  assert.deepEqual([status, json.message.endsWith(': application/json, application/yaml')], [415, true])
  const scale = sent(
    '{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"m","namespace":"default"},"spec":{"replicas":3}}',
  )
  assert.equal((await ask('PUT', `${meters}/m/scale`, scale, content)).json.spec.replicas, 3, 'a Scale is a built-in')
  const options = sent('{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}')
  assert.equal((await ask('DELETE', `${meters}/m`, options, content)).status, 200)
  assert.equal((await ask('GET', `${meters}/m`)).status, 200, 'it was a dry run')
})

test('what is written in protobuf is what would be written in JSON, and answered in protobuf', async () => {
  const { ask } = await openWorld()
  const headers = { ...accept, 'content-type': mediaType }
  const json = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"<v>"}}'
  const created = await ask('POST', maps, sent(json), headers)
  assert.equal(created.status, 201)
  isProtobuf(created)
  assert.deepEqual(opened(created.bytes).data, { k: '<v>' })
  const stored = (await ask('GET', `${maps}/a`)).text
  assert.deepEqual(created.bytes, sent(stored))
  const updated = await ask('PUT', `${maps}/a`, sent(stored.replace('"k"', '"other"')), headers)
  assert.deepEqual([updated.status, opened(updated.bytes).data], [200, { other: '<v>' }])
  const merge = { ...accept, 'content-type': 'application/merge-patch+json' }
  const patched = await ask('PATCH', `${maps}/a`, '{"data":{"k":"v"}}', merge)
  assert.deepEqual(opened(patched.bytes).data, { other: '<v>', k: 'v' })
  const options = sent('{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"another"}}')
  const conflict = await ask('DELETE', `${maps}/a`, options, headers)
  assert.deepEqual([conflict.status, opened(conflict.bytes).reason], [409, 'Conflict'])
  const deleted = await ask('DELETE', `${maps}/a`, undefined, headers)
  assert.equal(opened(deleted.bytes).status, 'Success')
})

test('reviews, bindings and evictions are taken and answered in protobuf', async () => {
  const { ask } = await openWorld()
  const headers = { ...accept, 'content-type': mediaType }
  const asked = sent(
    '{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}',
  )
  const review = await ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', asked, headers)
  assert.deepEqual([review.status, opened(review.bytes).status.allowed], [201, true])
  const pods = '/api/v1/namespaces/default/pods'
  await ask('POST', pods, { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } })
  const binding = '{"kind":"Binding","apiVersion":"v1","metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}'
  assert.equal((await ask('POST', `${pods}/p/binding`, sent(binding), headers)).status, 201)
  assert.equal((await ask('GET', `${pods}/p`)).json.spec.nodeName, 'n1')
  const eviction =
    '{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p"},"deleteOptions":{"gracePeriodSeconds":0}}'
  const evicted = await ask('POST', `${pods}/p/eviction`, sent(eviction), headers)
  assert.deepEqual([evicted.status, opened(evicted.bytes).status], [201, 'Success'])
  assert.equal((await ask('GET', `${pods}/p`)).status, 404)
})

test('a body that lies is refused with the kind it claims, and writes nothing', async () => {
  const { ask } = await openWorld()
  const headers = { 'content-type': mediaType }
  const raw = encodeMessage(message('v1', 'ConfigMap'), Buffer.from('{"metadata":{"name":"a"}}'))
  const told = async (body: Buffer) => {
    const { status, json } = await ask('POST', maps, body, headers)
    assert.deepEqual([status, json.reason], [400, 'BadRequest'])
    return json.message
  }
  const unfit = (rest: string) =>
    `${rest.split(' ', 1)[0]} in version "v1" cannot be handled as a ConfigMap: ${rest.slice(rest.indexOf(' ') + 1)}`
  assert.equal(
    await told(wrap({ apiVersion: 'v1', kind: 'Secret' }, raw)),
    unfit('Secret converting (v1.Secret) to (core.ConfigMap): unknown conversion'),
  )
  assert.equal(
    await told(wrap({ apiVersion: 'v1', kind: 'ConfigMap' }, raw.subarray(0, 4))),
    unfit('ConfigMap unexpected EOF'),
  )
  const unrecognized = 'the object provided is unrecognized (must be of type ConfigMap): '
  assert.equal(await told(Buffer.from('k8s\0')), `${unrecognized}empty body (6b387300)`)
  const wrong = await ask('DELETE', `${maps}/a`, wrap({ apiVersion: 'v1', kind: 'Pod' }, raw), headers)
  assert.match(wrong.json.message, /^no kind "Pod" is registered for version "v1"/)
  assert.deepEqual(
    (await ask('GET', maps)).json.items.map((one: any) => one.metadata.name),
    [],
  )
})

test('a small message that unfolds into a huge object is refused', async () => {
  const { ask } = await openWorld()
  // A pod with a million empty containers, two bytes each.
  const containers = Buffer.alloc(2_000_000)
  for (let at = 0; at < containers.length; at += 2) containers[at] = 0x12
  const length = Buffer.from([0x12, 0x80, 0x89, 0x7a])
  const body = wrap({ apiVersion: 'v1', kind: 'Pod' }, Buffer.concat([length, containers]))
  const { status, json } = await ask('POST', '/api/v1/namespaces/default/pods', body, { 'content-type': mediaType })
  assert.deepEqual([status, json.reason], [413, 'RequestEntityTooLarge'])
})

test('nobody looks for unknown fields in protobuf, however strictly it is asked', async () => {
  const { ask } = await openWorld()
  const raw = encodeMessage(message('v1', 'ConfigMap'), Buffer.from('{"metadata":{"name":"a"}}'))
  const body = wrap({ apiVersion: 'v1', kind: 'ConfigMap' }, Buffer.concat([raw, Buffer.from([0x9a, 0x06, 1, 0x61])]))
  const { status, headers } = await ask('POST', `${maps}?fieldValidation=Strict`, body, { 'content-type': mediaType })
  assert.deepEqual([status, headers.warning], [201, undefined])
})

test('an answer that could not be read is refused before anything is written', async () => {
  const { ask } = await openWorld()
  const refused = await ask('POST', maps, { metadata: { name: 'a' } }, { accept: 'image/png' })
  assert.equal(refused.status, 406)
  assert.equal((await ask('GET', `${maps}/a`)).status, 404)
})

type Frame = { type: string; object: any; bytes: Buffer }

/** The frames of a chunk: each a length, and an event in whose object an envelope stands. */
function framesOf(chunk: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at < chunk.length; ) {
    const end = at + 4 + chunk.readUInt32BE(at)
    let type = ''
    let bytes: Buffer = chunk
    eachField(chunk.subarray(at + 4, end), (field) => {
      if (field.number === 1) type = field.text()
      else
        eachField(field.bytes(), (inner) => {
          bytes = inner.bytes()
        })
    })
    frames.push({ type, object: opened(bytes), bytes })
    at = end
  }
  return frames
}

test('a WATCH is frames of enveloped objects, with bookmarks, removals and its closing bookmark', async () => {
  const { ask, open } = await withMaps(2)
  const wanted = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const watch = await open(`${maps}?${wanted}&labelSelector=n`, accept)
  const next = async () => framesOf((await watch.next()).value)
  const [first, second, closing] = await next()
  assert.deepEqual([first?.type, second?.type], ['ADDED', 'ADDED'])
  assert.deepEqual(first?.bytes, sent((await ask('GET', `${maps}/m0`)).text))
  assert.equal(closing?.type, 'BOOKMARK')
  assert.equal(closing?.object.kind, 'ConfigMap')
  assert.deepEqual(closing?.object.metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
  const patch = { 'content-type': 'application/merge-patch+json' }
  const changed = await ask('PATCH', `${maps}/m0`, '{"data":{"a":"b"}}', patch)
  const [modified] = await next()
  assert.deepEqual([modified?.type, modified?.bytes], ['MODIFIED', sent(changed.text)])
  await ask('DELETE', `${maps}/m1`)
  const [deleted] = await next()
  assert.deepEqual([deleted?.type, deleted?.object.metadata.name], ['DELETED', 'm1'])
  const [before, after] = [changed.json, deleted?.object].map((object) => Number(object.metadata.resourceVersion))
  assert.ok(Number(after) > Number(before), 'labelled with its removal')
  await watch.return?.()
})

test('a WATCH says what it is in its headers, and a refusal is an ERROR event', async () => {
  const { ask } = await withMaps(1)
  const { status, headers, bytes } = await ask('GET', `${maps}?watch=1&resourceVersion=999999`, undefined, accept)
  assert.deepEqual([status, headers['content-type']], [200, `${mediaType};stream=watch`])
  const [error] = framesOf(bytes)
  assert.deepEqual([error?.type, error?.object.reason, error?.object.code], ['ERROR', 'Expired', 410])
})

test('an object that does not fit its kind is told of by name, and no watch falls over it', async () => {
  const { ask, open, copy } = await openWorld()
  const nodes = '/api/v1/nodes'
  // No write would have been taken so.
  const odd = (version: number) => `{"metadata":{"name":"odd","resourceVersion":"${version}"},"spec":7}`
  await copy.put('/nodes', 'odd', (version) => Buffer.from(odd(version)))
  for (const url of [nodes, `${nodes}/odd`]) {
    const { status, bytes } = await ask('GET', url, undefined, accept)
    assert.equal(status, 500)
    assert.match(opened(bytes).message, /odd cannot be written in protobuf/)
  }
  const watch = await open(`${nodes}?watch=1`, accept)
  const [frame] = framesOf((await watch.next()).value)
  assert.deepEqual([frame?.type, frame?.object.code], ['ERROR', 500])
  await ask('POST', nodes, { metadata: { name: 'fine' } })
  const [next] = framesOf((await watch.next()).value)
  assert.deepEqual([next?.type, next?.object.metadata.name], ['ADDED', 'fine'])
  await watch.return?.()
})
