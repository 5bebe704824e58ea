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
import { status } from './status.ts'
import type { StatusDocument } from './statusdocument.ts'
import { statusText } from './statustext.ts'
import { columnsMax } from './terminal.ts'

const data = mkdtempSync(join(tmpdir(), 'ake-status-'))
after(() => rmSync(data, { recursive: true, force: true }))
const pki = await openPki({ folder: join(data, 'pki'), hosts: ['127.0.0.1'], now: Date.now() })
const nowMs = Date.UTC(2026, 0, 2)
const clock = fakeClock(nowMs)
const ago = (seconds: number) => new Date(nowMs - seconds * 1000).toISOString()

const empty: StatusDocument = {
  upstream: { state: 'reachable', why: '', since: ago(7200), servers: [] },
  credentials: [{ use: 'edge', name: 'system:node:edge-1' }],
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
  },
  credentials: [{ use: 'edge', name: 'system:node:edge-1', expires: ago(3600) }],
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
      code: 403,
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

test('whether a reboot would be survived is a line', () => {
  const shown = (survives: 'yes' | 'no' | 'unknown') => {
    const checks = (['ok', 'failed', 'unknown'] as const).map((state) => ({ name: `is-${state}`, state, what: '' }))
    return /Reboot: +(.*)/.exec(statusText({ ...empty, survival: { survives, checks } }, nowMs))?.[1]
  }
  assert.equal(shown('yes'), 'would be survived without the API server')
  assert.match(shown('no') ?? '', /^WOULD NOT BE SURVIVED without the API server \(is-failed\): see "ake check"$/)
  assert.match(shown('unknown') ?? '', /^not known whether .* \(is-unknown\): see "ake check"$/)
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

RESOURCE               NAMESPACE   STATE     OBJECTS   SIZE   HEARD   ASKED      WATCHES
gateways.example.com   shop        refused   0         0      never   standing   0
    tier=web
    the edge may not list it
pods                   *           synced    12        96Ki   2s      90s        3
    spec.nodeName=edge-1

Passed through to the API server, and so out of reach:
RESOURCE               WHY
events.events.k8s.io   never mirrored

Next:
- Free space on the disk, mount it writable, or replace it: nothing new is stored until it takes
  writes.
- Renew the edge's credential, which expired 60m ago, in its kubeconfig: the file is read again when
  it changes.
- See why the API server cannot be reached (the last probe took too long). What is mirrored is
  served meanwhile; writes are refused.
- Let the edge get, list and watch gateways.example.com (deploy/edge-rbac.yaml): without that they
  are gone when the API server is.
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

test('how long the cloud is away counts from the last contact; a first start says that there was none', () => {
  const { upstream } = full
  const shown = (lastContact: string | null) =>
    /Upstream: +(.*)/.exec(statusText({ ...full, upstream: { ...upstream, lastContact } }, nowMs))?.[1]
  assert.equal(shown(ago(754)), 'unreachable for 12m: the last probe took too long')
  assert.equal(shown(null), 'unreachable for 12m, and never reached before: the last probe took too long')
})

test('what keeps everything waiting is said once, and what keeps one thing waiting beside it', () => {
  const { why } = full.upstream
  const waiting = { ...full.interests[0]!, state: 'waiting', why } as const
  const told = (...reasons: string[]) =>
    statusText({ ...full, interests: reasons.map((why) => ({ ...waiting, why })) }, nowMs).split('\n\n')[1]
  assert.doesNotMatch(told(why) ?? '', /probe/)
  assert.match(told(why, 'the edge may not list it') ?? '', /the edge may not list it/)
  const renewed = { ...full, upstream: { ...full.upstream, why: `${why}; the certificate expired` } }
  assert.doesNotMatch(statusText({ ...renewed, interests: [waiting] }, nowMs).split('\n\n')[1] ?? '', /probe/)
})

test('writes that were refused since the cut have a row for each resource and caller', () => {
  const writes = [
    { resource: 'pods', group: '', subresource: 'status', caller: 'system:node:edge-1', count: 41 },
    { resource: 'deployments', group: 'apps', subresource: '', caller: '', count: 2 },
    { resource: '', group: '', subresource: '', caller: '', count: 1 },
  ]
  const shown = (over: boolean) =>
    statusText({ ...full, refusedWrites: { since: ago(600), over, total: 44, writes } }, nowMs)
      .split('\n\n')
      .find((one) => one.startsWith('Writes refused'))
  assert.equal(
    shown(false),
    `Writes refused since the cut or the last start, for 10m (44):
RESOURCE           CALLER               COUNT
pods/status        system:node:edge-1   41
deployments.apps   (unknown)            2
(others)                                1`,
  )
  assert.match(shown(true) ?? '', /^Writes refused in the last cut, which began to refuse 10m ago \(44\):/)
})

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
  assert.ok(text.split('\n').every((line) => line.length <= columnsMax))
})

test('whatever there is to say fits a terminal of 100 columns, and hundreds of names are one row', () => {
  const long = 'a-name-that-goes-on-and-on'.repeat(4)
  const why = `${long} is forbidden: User "system:node:edge-1" cannot list resource "${long}" in API group "${long}"`
  const wish = { ...interest, objects: 1, bytes: 1e9, resourceVersion: 1e15, ageSeconds: 1e7, watchers: 12_345 }
  const byName = Array.from({ length: 300 }, (_, at) => {
    return { ...wish, resource: 'secrets', namespace: 'shop', fields: `metadata.name=secret-${at}` }
  })
  const wide = { ...wish, resource: long, group: long, namespace: long, state: 'withdrawn', labels: long, why } as const
  const text = statusText(
    {
      ...full,
      upstream: { ...full.upstream, why, servers: [{ url: `https://${long}:6443`, current: true, why }] },
      cluster: { uid: long, other: why, changes: 1 },
      interests: [wide, ...byName, { ...wide, state: 'refused', code: 403 }],
      passedThrough: [
        { resource: long, group: long, why, state: 'tooLarge' },
        { resource: 'events', group: '', why },
      ],
      store: { ...full.store, damage: [why, why] },
    },
    nowMs,
  )
  for (const line of text.split('\n')) assert.ok(line.length <= columnsMax, line)
  assert.equal(text.match(/^secrets /gm)?.length, 1)
  assert.match(text, /^secrets +shop +synced +300 /m)
  assert.match(text, /^ {4}300 by name: secret-0, secret-1, secret-2, secret-3, secret-4, …$/m)
  assert.ok(text.replace(/\s/g, '').includes(why.replace(/\s/g, '')), 'no reason is cut')
})

test('what to do next is said only where there is something to do', () => {
  assert.doesNotMatch(statusText(empty, nowMs), /Next:/)
  const next = (more: Partial<StatusDocument>) =>
    /Next:\n(.*)/s.exec(statusText({ ...empty, ...more }, nowMs))?.[1]?.replace(/\s+/g, ' ')
  const passed = { resource: 'pods', group: '', why: 'no' }
  assert.match(String(next({ passedThrough: [{ ...passed, state: 'refused', code: 401 }] })), /Renew .* \(401\)/)
  assert.match(String(next({ passedThrough: [{ ...passed, state: 'refused', code: 403 }] })), /watch pods \(deploy/)
  assert.match(String(next({ passedThrough: [{ ...passed, state: 'tooLarge' }] })), /--mirror-bytes.* of pods/)
  assert.match(String(next({ passedThrough: [{ ...passed, state: 'noRoom' }] })), /there is no room/)
  assert.match(String(next({ cluster: { changes: 0, other: 'x' } })), /--server and --kubeconfig/)
  assert.equal(next({ passedThrough: [{ ...passed, resource: 'events' }] }), undefined)
})

test('of an edge behind a hub it is said what its hub needs, and not its API server', () => {
  const servers = [{ url: 'wss://hub:10002/', current: true, why: '' }]
  const linked = { ...empty, upstream: { ...empty.upstream, servers } }
  const next = (more: Partial<StatusDocument>) =>
    String(/Next:\n(.*)/s.exec(statusText({ ...linked, ...more }, nowMs))?.[1]?.replace(/\s+/g, ' '))
  const refused = { resource: 'pods', group: '', why: 'no', state: 'refused', code: 403 } as const
  assert.match(next({ passedThrough: [refused] }), /Have somebody who may read pods ask this edge.* system:nodes/)
  assert.match(next({ credentials: [{ use: 'edge', name: 'n', expires: ago(60) }] }), /in the file of --credential/)
  assert.match(next({ cluster: { changes: 0, other: 'x' } }), /Check --hub/)
})

test('what is to be put right stands below, in lines that a terminal can hold', () => {
  const misconfigured = [
    `--mirror nosuch: ${'the API server has no such resource '.repeat(5)}: see "x"`,
    'short: do it',
  ]
  const text = statusText({ ...empty, misconfigured }, nowMs)
  const [, section = ''] = /To be put right:\n([\s\S]*?)\n\n/.exec(text) ?? []
  const lines = section.split('\n')
  assert.equal(lines.length, 4)
  assert.match(section, /^ {2}--mirror nosuch: the API.*\n {4}\S.*\n {4}.*: see "x"\n {2}short: do it$/)
  for (const line of lines) assert.ok(line.length <= 100, line)
  assert.doesNotMatch(statusText(empty, nowMs), /put right/)
})

test('one that lives for a week is not to be renewed before it should have been', () => {
  const credentials = (renewBy: string) =>
    [{ use: 'edge', name: 'edge-1', expires: ago(-2 * 86_400), renewBy }] as const
  const said = (renewBy: string) => statusText({ ...empty, credentials: credentials(renewBy) }, nowMs)
  assert.doesNotMatch(said(ago(-60)), /Renew/)
  assert.match(said(ago(60)).replace(/\n +/g, ' '), /Renew the edge's credential, which expires in 2d/)
})

test('credentials are shown with how long they last; one that ends within a week is to be renewed', () => {
  const inDays = (days: number) => ago(-days * 86_400)
  const text = statusText(
    {
      ...empty,
      credentials: [
        { use: 'edge', name: 'edge-1', expires: inDays(300) },
        { use: 'caller', name: 'system:node:edge-1', expires: inDays(3) },
        { use: 'caller', name: 'other', missing: 'the client certificate x cannot be read' },
        { use: 'serving', expires: ago(60) },
      ],
    },
    nowMs,
  )
  assert.match(text, /^Identity: +edge-1, expires in 300d\nCallers: +system:node:edge-1, expires in 3d\n/m)
  assert.match(text, /^ +other, UNUSABLE: the client certificate x cannot be read\nServing: +EXPIRED 60s ago$/m)
  const [, next = ''] = text.replace(/\n +/g, ' ').split('Next:\n')
  assert.match(next, /^- Renew the credential of system:node:edge-1, which expires in 3d, in the files of/)
  assert.match(next, /\n- Renew the serving certificate, which expired 60s ago, by a restart/)
  assert.doesNotMatch(next, /the edge's credential/)
})
