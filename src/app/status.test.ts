import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { createServer as createTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { Unavailable, UsageError } from '../base/fault.ts'
import { writeKubeconfig } from '../pki/kubeconfig.ts'
import { openPki } from '../pki/pki.ts'
import { type StatusDocument, status, statusText } from './status.ts'

const data = mkdtempSync(join(tmpdir(), 'ake-status-'))
after(() => rmSync(data, { recursive: true, force: true }))
const pki = await openPki({ folder: join(data, 'pki'), host: '127.0.0.1', now: Date.now() })
const nowMs = Date.UTC(2026, 0, 2)
const clock = fakeClock(nowMs)
const ago = (seconds: number) => new Date(nowMs - seconds * 1000).toISOString()

const empty: StatusDocument = {
  upstream: { state: 'reachable', why: '', since: ago(7200), servers: [], identity: 'system:node:edge-1' },
  interests: [],
  passedThrough: [],
  store: { healthy: true, historyBytes: 0, bytesWritten: 0 },
  version: '0.1.0',
}

const interest = { group: '', state: 'synced', watchers: 0, asked: ago(90) } as const
const full: StatusDocument = {
  ...empty,
  upstream: {
    state: 'unreachable',
    why: 'the last probe took too long',
    since: ago(754),
    servers: [
      { url: 'https://10.0.0.1:6443', current: true, why: 'no answer' },
      { url: 'https://10.0.0.2:6443', current: false, why: '' },
    ],
    identity: 'system:node:edge-1',
    credentialExpires: ago(3600),
  },
  interests: [
    {
      ...interest,
      resource: 'pods',
      fields: 'spec.nodeName=edge-1',
      objects: 12,
      bytes: 98_304,
      resourceVersion: 48_211,
      ageSeconds: 2,
      watchers: 3,
    },
    {
      ...interest,
      resource: 'gateways',
      group: 'example.com',
      namespace: 'shop',
      labels: 'tier=web',
      state: 'refused',
      why: 'the edge may not list it',
      objects: 0,
      bytes: 0,
      resourceVersion: 0,
      standing: true,
    },
  ],
  passedThrough: [{ resource: 'events', group: 'events.k8s.io', why: 'never mirrored' }],
  store: { healthy: false, historyBytes: 5_400_000, bytesWritten: 3 * 1024 ** 3 },
}

test('an edge with nothing to show says so', () => {
  assert.equal(
    statusText(empty, nowMs),
    `Version:    0.1.0
Upstream:   reachable for 120m
Identity:   system:node:edge-1
Store:      healthy, 0 of history, 0 written

Nothing is mirrored yet: nobody has asked, and no --mirror was given.
`,
  )
})

test('which cluster is mirrored, and what else answers in its place', () => {
  const shown = (cluster: StatusDocument['cluster']) =>
    /Cluster: +(.*)/.exec(statusText({ ...empty, ...(cluster && { cluster }) }, nowMs))?.[1]
  assert.equal(shown({ uid: 'u-1', changes: 0 }), 'u-1')
  assert.equal(shown({ changes: 0, other: 'another answers' }), 'of unknown uid; another answers')
  assert.equal(shown({ uid: 'u-2', changes: 1 }), 'u-2; the copy was begun anew for it since the start')
})

test('a full one is a block and tables with aligned columns', () => {
  assert.equal(
    statusText(full, nowMs),
    `Version:    0.1.0
Upstream:   unreachable for 12m: the last probe took too long
Servers:    https://10.0.0.1:6443 (in use, no answer)
            https://10.0.0.2:6443
Identity:   system:node:edge-1, EXPIRED 60m ago
Store:      THE DISK REFUSES WRITES, 5.1Mi of history, 3.0Gi written

RESOURCE               NAMESPACE   SELECTOR               STATE     OBJECTS   SIZE   VERSION   HEARD   ASKED      WATCHERS   WHY
pods                   *           spec.nodeName=edge-1   synced    12        96Ki   48211     2s      90s        3
gateways.example.com   shop        tier=web               refused   0         0      0         never   standing   0          the edge may not list it

Passed through to the API server, and so out of reach:
RESOURCE               WHY
events.events.k8s.io   never mirrored
`,
  )
})

/** `ake status` while this answers, with the certificate it came with. */
async function whileServing(code: number, body: string, output: 'text' | 'json' = 'text'): Promise<string> {
  let asked = ''
  const tls = { ...pki.serving, ca: pki.ca, requestCert: true }
  const server = createServer(tls, (request, response) => {
    asked = `${request.method} ${request.url}`
    response.writeHead(code).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await writeKubeconfig(join(data, 'admin.kubeconfig'), `https://127.0.0.1:${port}`, pki)
  try {
    return await status({ data, output }, clock)
  } finally {
    assert.equal(asked, 'GET /ake/status')
    server.close()
  }
}

test('the edge is asked with the folder’s certificate', async () => {
  assert.equal(await whileServing(200, JSON.stringify(full)), statusText(full, nowMs))
  assert.deepEqual(JSON.parse(await whileServing(200, JSON.stringify(full), 'json')), full)
})

test('what stands in the way is said in a sentence', async () => {
  const rejects = (asked: Promise<string>, type: typeof UsageError | typeof Unavailable, sentence: RegExp) =>
    assert.rejects(asked, (error) => {
      assert.ok(error instanceof type, String(error))
      assert.match((error as Error).message, sentence)
      return true
    })
  await rejects(whileServing(404, ''), Unavailable, /is not an edge: only "ake edge" has a status/)
  await rejects(whileServing(403, ''), Unavailable, /refuses to tell its status \(403\)/)
  await rejects(whileServing(200, 'no JSON'), Unavailable, /gives no answer that can be read/)
  // The kubeconfig still names the port of the last one, which has gone.
  await rejects(status({ data, output: 'text' }, clock), Unavailable, /^no ake runs on .*: start it with "ake edge"$/)
  const nowhere = join(data, 'nowhere')
  await rejects(status({ data: nowhere, output: 'text' }, clock), UsageError, /nowhere has no admin\.kubeconfig/)
  const mute = createTcp((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(mute, 'listening')
  const { port } = mute.address() as { port: number }
  await writeKubeconfig(join(data, 'admin.kubeconfig'), `https://127.0.0.1:${port}`, pki)
  await rejects(status({ data, output: 'text' }, clock), Unavailable, /gives no answer \(.+\): see its log/)
  mute.close()
  writeFileSync(join(data, 'admin.kubeconfig'), 'clusters: []\n')
  await rejects(status({ data, output: 'text' }, clock), UsageError, /is not as ake wrote it/)
})

test('what callers wrote into selectors neither speaks to the terminal nor fills it', () => {
  const wish = { ...interest, resource: 'pods', objects: 0, bytes: 0, resourceVersion: 1 }
  const fields = [`metadata.name=\x1b]0;owned\x07\r\nPassed`, `metadata.name=${'x'.repeat(5_000)}`]
  const text = statusText({ ...empty, interests: fields.map((one) => ({ ...wish, fields: one })) }, nowMs)
  assert.doesNotMatch(text, /[\x00-\x09\x0b-\x1f]/)
  assert.ok(text.split('\n').every((line) => line.length < 400))
})
