/** Which cluster answers, row by row, and a line that leads now here and now there by seed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Candidate,
  type Cluster,
  isBelieved,
  refreshed,
  type Sight,
  type Site,
  sighted,
  sightOf,
  verdictOf,
} from './cluster.ts'

const site = (authorities = 'ca', addresses = 'x'): Site => ({
  authorities: authorities.split(' '),
  addresses: addresses.split(' '),
})
const known: Cluster = { uid: 'a', ...site() }
const uid = (text: string): Sight => ({ kind: 'uid', uid: text })
const hidden: Sight = { kind: 'hidden' }
const absent: Sight = { kind: 'absent' }

test('what a cluster says of itself is taken from a Namespace alone', () => {
  const namespace = { kind: 'Namespace', metadata: { name: 'kube-system', uid: 'u-1' } }
  const rows: [number, unknown, string][] = [
    [200, namespace, 'uid'],
    [200, { ...namespace, metadata: { name: 'other', uid: 'u-1' } }, 'unclear'],
    [200, { ...namespace, metadata: { name: 'kube-system' } }, 'unclear'],
    [200, { ...namespace, metadata: { name: 'kube-system', uid: 'x'.repeat(1_000) } }, 'unclear'],
    [200, { ...namespace, metadata: { name: 'kube-system', uid: 'a\nb' } }, 'unclear'],
    [200, { ...namespace, kind: 'Pod' }, 'unclear'],
    [200, 'null', 'unclear'],
    [200, '<html>welcome</html>', 'unclear'],
    [403, '', 'hidden'],
    [401, '', 'hidden'],
    [404, { kind: 'Status', code: 404 }, 'absent'],
    [404, '<html>no such page</html>', 'unclear'],
    [500, { kind: 'Status' }, 'unclear'],
    [429, { kind: 'Status' }, 'unclear'],
    [302, '', 'unclear'],
  ]
  for (const [status, body, kind] of rows) {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    assert.equal(sightOf(status, Buffer.from(text)).kind, kind, `${status} ${text}`)
  }
})

test('the uid decides; where it cannot be read, authority and address do', () => {
  const unread: Cluster = { ...known, uid: '' }
  const rows: [Cluster, Sight, Site, string][] = [
    [known, uid('a'), site('other', 'y'), 'same'],
    [known, uid('b'), site(), 'other'],
    [known, hidden, site(), 'same'],
    [known, hidden, site('ca new', 'y x'), 'same'],
    [known, hidden, site('other'), 'other'],
    [known, hidden, site('ca', 'y'), 'other'],
    [known, absent, site(), 'unclear'],
    [known, absent, site('other', 'y'), 'other'],
    [known, { kind: 'unclear', why: '' }, site('other', 'y'), 'unclear'],
    [unread, absent, site(), 'same'],
    [unread, uid('b'), site(), 'same'],
    [unread, uid('b'), site('other', 'y'), 'other'],
    [unread, hidden, site(), 'same'],
    [unread, hidden, site('other', 'y'), 'other'],
  ]
  for (const [of, sight, at, verdict] of rows) {
    assert.equal(verdictOf(of, sight, at), verdict, JSON.stringify([of, sight, at]))
  }
  assert.equal(refreshed(known, hidden, site()).uid, 'a', 'a refusal does not make it forgotten')
  assert.equal(refreshed(unread, uid('b'), site()).uid, 'b', 'one that can be read later is known from then on')
})

/** Sightings of one cluster at these times and addresses. */
function after(times: readonly (readonly [ms: number, address?: string, of?: Sight])[], at = site()): Candidate {
  let candidate: Candidate | undefined
  for (const [nowMs, address = 'x', sight = uid('b')] of times) {
    candidate = sighted(candidate, { sight, address, site: at, nowMs, spanMs: 100 })
  }
  return candidate as Candidate
}

test('another cluster is believed in after a span of the same answer, at every address of the known one', () => {
  const believed = (of: Candidate, before = known) => isBelieved(of, before, 100)
  assert.equal(believed(after([[0], [50], [99]])), false, 'too short')
  assert.equal(believed(after([[0], [100]])), false, 'too few')
  assert.equal(believed(after([[0], [50], [100]])), true)
  assert.equal(believed(after([[0], [150], [300]])), true, 'probes may be further apart than the span is long')
  assert.equal(believed(after([[0], [50], [400_000]])), false, 'a long pause')
  assert.equal(believed(after([[0], [50], [100, 'x', uid('c')]])), false, 'a third one')
  assert.equal(
    believed(
      after([
        [0, 'x', absent],
        [50, 'x', absent],
        [100, 'x', uid('b')],
        [150, 'x', uid('b')],
      ]),
    ),
    false,
  )
  const two = site('ca', 'x y')
  const both = { ...known, ...two }
  const atY = [
    [0, 'y'],
    [50, 'y'],
    [100, 'y'],
  ] as const
  assert.equal(believed(after(atY, two), both), false, 'the other address has only not answered')
  assert.equal(believed(after([...atY, [120, 'x']], two), both), true)
  assert.equal(believed(after(atY, two)), false, 'where the known one was')
  assert.equal(
    believed(after(atY, site('ca', 'y')), both),
    true,
    'an address that is configured no more need not answer',
  )
})

test('a line that leads to two clusters in turn never makes the second one believed in', () => {
  for (let seed = 1; seed <= 50; seed++) {
    let state = seed
    const random = () => {
      state = (state * 48271) % 2147483647
      return state / 2147483647
    }
    let candidate: Candidate | undefined
    let lastSameMs = 0
    for (let nowMs = 0; nowMs < 20_000; nowMs += random() * 40) {
      const isOther = random() < 0.8
      if (!isOther) {
        candidate = undefined
        lastSameMs = nowMs
        continue
      }
      candidate = sighted(candidate, { sight: uid('b'), address: 'x', site: site(), nowMs, spanMs: 400 })
      const calmMs = nowMs - lastSameMs
      if (isBelieved(candidate, known, 400)) assert.ok(calmMs >= 400, `seed ${seed}: after ${calmMs} ms`)
    }
  }
})
