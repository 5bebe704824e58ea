import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { authoritiesOf } from '../../hub/state/authorities.ts'
import { makeState } from '../../hub/state/state.ts'
import type { ReadPolicy } from '../../policy/reading.ts'
import { hubFigures, type OpenHub } from './figures.ts'
import { hubStatusOf } from './status.ts'
import { hubEdgesText, hubStatusText } from './statustext.ts'

const nowMs = Date.UTC(2026, 0, 1)
const reachability = { state: 'reachable', why: 'the API server answers', sinceMs: nowMs - 60_000 } as const

const state = makeState(nowMs)
const authority = new X509Certificate(state.ca.cert).fingerprint256

function edge(name: string, behind = 0, issuedAtMs = 0) {
  const endsAtMs = nowMs + (behind + 1) * 24 * 3_600_000
  const times = { issuedAtMs, vouchedAtMs: issuedAtMs, endsAtMs }
  const certificate = { serial: '', fingerprint: '', signer: 'hub' as const, authority, ...times }
  return {
    certificate,
    ...{ edge: name, from: '10.0.0.1', release: '0.1.0', state: 'open' as const, livedMs: 3_600_000, interests: 40 },
    ...{ version: 299, unlive: { waiting: 1, comparing: 2, syncing: 3 } },
    ...{ heldBytes: 1_000, bufferedBytes: 24, behind, sentBytes: 5_000_000, receivedBytes: 7_000, events: 9 },
  }
}

function policy(name: string, ...faults: string[]): ReadPolicy {
  return { name, faults } as unknown as ReadPolicy
}

const open: OpenHub = {
  listener: {
    ...{ links: 3, arriving: { all: 2, waiting: 1, turnedAway: 4 }, counts: { full: 5, resumed: 6, refused: 7 } },
  },
  peers: {
    figures: () => [edge('n10'), edge('n2', 8)],
    traffic: { sentBytes: 10_000_001, receivedBytes: 14_001, events: 19 },
  },
  sources: {
    figures: () => [
      { name: 'v1/configmaps@shop', readers: 0, views: 1 },
      { name: 'rbac.authorization.k8s.io/v1/roles', readers: 2, views: 1 },
    ],
  },
  forwarding: { counts: { answered: 11, refused: 12, limited: 13, failed: 14 } },
  epoch: { current: { number: 1_767_225_600, lost: 233 } },
  callers: { figures: () => [] },
  fleet: {
    others: [{ hub: 'hub-2', names: [{ name: 'n7', from: '10.0.0.7', link: 1, issuedAtMs: 0 }] }],
    events: { figures: () => [] },
  },
  identities: { counts: { renewed: 3, refused: 4 } },
  authorities: () => authoritiesOf(state),
  joining: { figures: () => [] },
  policies: {
    ...{ isKnown: true, why: '' },
    all: () => [policy('berlin'), policy('default'), policy('odd', 'spec.nodes: has no fields')],
    isFor: ({ name }, node) => name === 'default' || (name === 'berlin' && node === 'n2'),
  },
  policyStatus: { figures: () => [] },
  warnings: { figures: (name) => [`${name} 1\n`] },
}

const cache = { size: 3, bytes: 4_096, version: 300, history: { window: { bytes: 512, floor: { version: 250 } } } }
const waiting = { withdrawnAtMs: undefined, state: { kind: 'refused', why: 'HTTP 403', code: 403, sinceMs: 0 } }

function statusWith(parts: { open: OpenHub | undefined; why: string | undefined }) {
  return hubStatusOf({
    ...{ hub: 'hub-1', uid: 'u1', upstream: { reachability } as never, trustsEdges: true, historyBytesMax: 1 << 20 },
    interests: { named: (name) => (name.startsWith('v1/') ? undefined : (waiting as never)) },
    copy: { caches: new Map([['v1/configmaps@shop', cache]]) as never },
    ...{ nowMs, ...parts },
  })
}

test('a certificate that the cluster signed for a day is near its end when it should have been renewed, and not before', () => {
  const hourMs = 3_600_000
  const peers = (left: number) => ({ ...open.peers, figures: () => [edge('n1', 0, nowMs + 24 * hourMs - left)] })
  const said = (lifeMs: number) =>
    hubStatusText(statusWith({ open: { ...open, peers: peers(lifeMs) }, why: undefined }), nowMs)
  assert.doesNotMatch(said(6 * 24 * hourMs), /^Certificates:/m)
  assert.match(said(7 * 24 * hourMs), /^Certificates: +1 end soon and should have been renewed: n1$/m)
})

test('the status of a hub has its edges, what is followed for them and how far back that goes', () => {
  const document = statusWith({ open, why: undefined })
  assert.deepEqual(document.cluster, { uid: 'u1', epoch: 1_767_225_600, lost: 233 })
  assert.deepEqual(document.history, { bytes: 512, bytesMax: 1 << 20 })
  assert.equal(document.edges[1]?.since, new Date(nowMs - 3_600_000).toISOString())
  const { interests, unlive, version } = document.edges[1] ?? {}
  assert.deepEqual([interests, unlive, version], [40, { waiting: 1, comparing: 2, syncing: 3 }, 299])
  assert.deepEqual(document.resources[0], {
    ...{ name: 'v1/configmaps@shop', state: 'waiting', readers: 0, views: 1, objects: 3, bytes: 4_096 },
    ...{ resourceVersion: 300, historyFrom: 250 },
  })
  const text = hubStatusText(document, nowMs)
  assert.match(text, /^Edges: +2 here$/m)
  assert.match(text, /^Authority: +current, sha256:[0-9a-f]{16}…, ends in 10y$/m)
  assert.match(text, /^Certificates: +1 end soon and should have been renewed: n10$/m)
  assert.match(text, /^Replica: +hub-2, 1 edges$/m)
  assert.deepEqual(
    hubEdgesText(document, nowMs)
      .split('\n')
      .slice(0, 4)
      .map((line) => line.split(/ {2,}/).slice(0, 8).join('|').trimEnd()),
    [
      'EDGE|HUB|FROM|RELEASE|FOR|ENDS IN|SIGNED BY|POLICIES',
      'n2|hub-1|10.0.0.1|0.1.0|60m|9d|current|berlin,default',
      'n7|hub-2|10.0.0.7|-|-|-|-|-',
      'n10|hub-1|10.0.0.1|0.1.0|60m|24h|current|default',
    ],
  )
  assert.match(text, /^Policies: +for edges here: default \(2\), berlin \(1\), odd \(0\)$/m)
  assert.match(text, /^Policies: +odd allows nothing, it cannot be read whole: spec\.nodes: has no fields$/m)
  const unknown = { ...open, policies: { ...open.policies, isKnown: false, why: 'not allowed' } }
  assert.match(
    hubStatusText(statusWith({ open: unknown, why: undefined }), nowMs),
    /^Policies: +not known: not allowed$/m,
  )
  const none = { ...open, policies: { ...open.policies, all: () => [] } }
  assert.match(hubStatusText(statusWith({ open: none, why: undefined }), nowMs), /^Policies: +none$/m)
  assert.match(text, /^Cluster: +u1, epoch 1767225600, versions up to 233 are lost$/m)
  assert.match(text, /^Trust: +--trust-edges/m)
  assert.match(text, /^n2 +10\.0\.0\.1 +0\.1\.0 +open +60m +34\/40 +299 +8 +1\.0Ki +4\.8Mi +6\.8Ki$/m)
  assert.ok(text.indexOf('\nn2 ') < text.indexOf('\nn10 '))
  assert.match(text, /^configmaps@shop +waiting +0 +1 +3 +4\.0Ki +300 +250$/m)
  assert.match(text, /^roles\.rbac\.auth.* +refused +2 .*\n {4}HTTP 403$/m)
  for (const line of text.split('\n')) assert.ok(line.length <= 100, line)
})

test('a hub that lets nobody in says why; of hundreds of edges those that are behind are shown', () => {
  const closed = statusWith({ open: undefined, why: 'which cluster this is is not known' })
  assert.equal(closed.open, false)
  assert.match(hubStatusText(closed, nowMs), /^Edges: +0 here, none is let in: which cluster this is is not known$/m)
  const edges = Array.from({ length: 300 }, (_, at) => edge(`n${at}`, at))
  const crowded = statusWith({ open: { ...open, peers: { ...open.peers, figures: () => edges } }, why: undefined })
  const text = hubStatusText(crowded, nowMs)
  assert.match(text, /^n299 /m)
  assert.doesNotMatch(text, /^n199 /m)
  assert.match(text, /^and 200 more, which are less behind/m)
})

test('the figures of a hub are its links, edges, sources, bytes and requests; before it is open there are none', () => {
  const parts = { comparison: { found: 2 }, reachability }
  const text = hubFigures({ ...parts, open }).join('')
  for (const line of [
    ...['ake_hub_open 1', 'ake_hub_links 3', 'ake_hub_arrivals 2', 'ake_hub_arrivals_waiting 1'],
    ...['ake_hub_arrivals_turned_away_total 4', 'ake_hub_handshakes_total{kind="full"} 5'],
    ...['ake_hub_handshakes_total{kind="resumed"} 6', 'ake_hub_refused_total 7', 'ake_hub_sent_bytes_total 10000001'],
    ...['ake_hub_received_bytes_total 14001', 'ake_hub_events_total 19', 'ake_hub_edges{state="open"} 2'],
    ...['ake_hub_edges{state="leaving"} 0', 'ake_hub_interests 80', 'ake_hub_held_bytes 2000'],
    ...['ake_hub_queued_bytes 48', 'ake_hub_unacknowledged_events 8', 'ake_hub_sources{readers="some"} 1'],
    ...['ake_hub_sources{readers="none"} 1', 'ake_hub_views 2', 'ake_hub_epoch 1767225600'],
    ...['ake_hub_forwarded_total{result="limited"} 13', 'ake_hub_silent_differences_total 2'],
    ...['ake_upstream_state{state="reachable"} 1', 'ake_hub_edge_refusals_total 1'],
  ])
    assert.ok(text.split('\n').includes(line), line)
  const before = hubFigures({ ...parts, open: undefined }).join('')
  assert.match(before, /^ake_hub_open 0$/m)
  assert.doesNotMatch(before, /ake_hub_links/)
})
