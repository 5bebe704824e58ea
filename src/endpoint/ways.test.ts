/** One way of a request: an authority, and an edge that mirrors it, asked the same, say the same. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamRequest } from '../upstream/upstream.ts'
import { cancel } from './answer/pieces.ts'
import { aliceToken, answered, EdgeCloud, EdgeWorld, whole } from './edgeworld.test-support.ts'
import type { Request, Response } from './endpoint.ts'
import { openWorld, type World } from './world.test-support.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const now = `${maps}?resourceVersion=0`
const as = (kind: string) => `application/json;as=${kind};v=v1;g=meta.k8s.io`
const forms = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'text/html',
  '*/*;pretty=1',
]
const accepts = [...forms, ...['Table', 'PartialObjectMetadata', 'PartialObjectMetadataList'].map(as)]

/** What an edge mirrors is an authority here, asked by the very call that sockets make. */
async function mirrored(): Promise<{ authority: World; edge: EdgeWorld }> {
  const cloud = new EdgeCloud()
  const authority = await openWorld({ clock: cloud.clock, documents: true })
  cloud.script = async ({ method, path, headers = {}, body, signal }: UpstreamRequest) => {
    if (/selfsubject(access)?reviews$/.test(path)) return undefined
    const sent = body === undefined ? undefined : await whole(body)
    const { status, headers: told, body: said } = await authority.respond(method, path, sent, headers as Sent)
    signal?.addEventListener('abort', () => cancel(said))
    const stream = async function* () {
      if (Buffer.isBuffer(said)) yield said
      else yield* said
    }
    return { ...answered(status, '', told), body: stream() }
  }
  for (const [name, colour] of Object.entries({ c1: 'red', c2: 'blue', c3: 'red' })) {
    const metadata = { name, namespace: 'default', labels: { colour } }
    assert.equal((await authority.ask('POST', maps, { metadata, data: { a: '1' } })).status, 201)
  }
  const edge = await EdgeWorld.open({ cloud })
  const first = edge.later('GET', now)
  await edge.until(() => first.done)
  return { authority, edge }
}

type Sent = Request['headers']

/** All that a client is told, but for what is another each time; of a watch only its beginning. */
async function told({ status, headers, body }: Response, url: string): Promise<unknown> {
  const { 'audit-id': _, date: __, ...rest } = headers
  if (!url.includes('watch') || status !== 200) {
    return { status, headers: rest, text: (await whole(body)).toString('latin1') }
  }
  cancel(body)
  return { status, headers: rest }
}

async function compare(urls: readonly string[], { passed = false } = {}): Promise<void> {
  const { authority, edge } = await mirrored()
  await using _ = edge
  for (const url of urls) {
    for (const accept of accepts) {
      const headers = { accept }
      const answer = await edge.response('GET', url, { token: aliceToken, headers })
      assert.equal(answer.passedThrough ?? false, passed, url)
      const theirs = await authority.respond('GET', url, undefined, headers)
      assert.deepEqual(await told(answer, url), await told(theirs, url), `${url} in ${accept}`)
    }
  }
}

test('[A5] what a copy answers is what an authority answers, in every form', () =>
  compare([
    now,
    `${maps}/c1?resourceVersion=0`,
    `${maps}/c1?resourceVersion=0&pretty=1`,
    `${maps}/none?resourceVersion=0`,
    `${now}&labelSelector=colour%3Dred`,
    `${now}&fieldSelector=metadata.name%3Dc1`,
    `${maps}?watch=1&timeoutSeconds=1&resourceVersion=1`,
    `${maps}?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1`,
  ]))

test('a copy refuses as an authority does, in its words and its order: the form, then what is asked for', () =>
  compare([
    `${now}&fieldSelector=spec.x%3Dc1`,
    `${now}&labelSelector=%21%21`,
    `${now}&limit=x`,
    `${now}&resourceVersionMatch=Exact`,
    `${maps}?resourceVersion=x`,
    `${maps}/c1?resourceVersion=x`,
    `${maps}?continue=x`,
    `${maps}?watch=1&sendInitialEvents=1`,
    `/api/v1/watch/namespaces/default/configmaps/c1?fieldSelector=metadata.name%3Dc2`,
    `${now}&timeout=x`,
    `${maps}?a;b`,
    `${now}&x=%zz`,
  ]))

test('what an edge does not answer is the answer of what it mirrors, as it is', () =>
  compare(['/nothing', '/api/v9/pods', `${maps}/c1/none`, '/api/v1/componentstatuses', `${maps}/..`], { passed: true }))
