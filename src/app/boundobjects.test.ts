import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccountTokens } from '../access/authenticate/accounttokens.ts'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import type { Cache } from '../cache/cache.ts'
import type { Event } from '../cache/event.ts'
import { makeItem } from '../cache/item.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { noFields } from '../kube/object.ts'
import { coveringOf, holdingOf } from '../mirror/covering.ts'
import { type Interest, interestOf, scopeOfName } from '../mirror/interest.ts'
import type { MirroredInterest } from '../mirror/mirrored.ts'
import type { Reachability, ReachabilityState } from '../upstream/upstream.ts'
import { MirroredObjects } from './boundobjects.ts'

const core = { group: '', version: 'v1', namespace: '' }

function podOf(metadata: object) {
  const bytes = Buffer.from(JSON.stringify({ metadata: { name: 'p', namespace: 'shop', uid: 'u', ...metadata } }))
  return makeItem(bytes, 7, noFields)
}

/** One interest, in step with the cloud. */
function world(interest: Interest, item = podOf({})) {
  const clock = fakeClock()
  const cache = {
    ...{ version: 7, isDamaged: false, isCorrupt: () => false, history: { floor: 0 } },
    get: (key: string) => (key === item.key ? item : undefined),
    observe: (tell: (event: Event) => void) => {
      told.push(tell)
      return () => {}
    },
  }
  const told: ((event: Event) => void)[] = []
  const mirrored = { interest, readable: cache, heardAt: clock.steady(), withdrawnAtMs: undefined, hopeless: false }
  const sharing = [mirrored as unknown as MirroredInterest]
  const reachability = { state: 'reachable' as ReachabilityState }
  const objects = new MirroredObjects({
    interests: {
      covering: (scope) => coveringOf(scope.resource === interest.resource ? sharing : [], scope, 0),
      holding: (scope, key) => holdingOf(scope.resource === interest.resource ? sharing : [], key),
      onResource: (resource, tell) => {
        if (resource === `v1/${interest.resource}`) tell(cache as unknown as Cache)
      },
    },
    reachability: reachability as Reachability,
    clock,
  })
  return { objects, cache, clock, reachability, told }
}

const ofNode = interestOf({ ...core, resource: 'pods', fields: parseFieldSelector('spec.nodeName=n1') })

test('an object is there, is not, or is not known, as far as the interests go', () => {
  const { objects } = world(ofNode)
  const found = objects.find('Pod', 'shop', 'p')
  assert.equal(typeof found === 'object' && found.uid, 'u')
  assert.equal(objects.find('Pod', 'shop', 'other'), 'unknown')
  assert.equal(objects.find('Pod', 'shop', 'other', 'n2'), 'unknown')
  assert.equal(objects.find('Pod', 'shop', 'other', 'n1'), 'absent')
  assert.equal(objects.find('ServiceAccount', 'shop', 'p'), 'unknown')
  const named = world(interestOf(scopeOfName({ ...core, resource: 'pods', namespace: 'shop' }, 'gone')))
  assert.equal(named.objects.find('Pod', 'shop', 'gone'), 'absent')
})

test('[I5] what is not in step with the cloud is not known while the cloud is there, and counts without it', () => {
  const { objects, clock, reachability } = world(ofNode)
  clock.advance(6_000)
  assert.equal(objects.find('Pod', 'shop', 'p'), 'unknown')
  assert.equal(objects.find('Pod', 'shop', 'other', 'n1'), 'unknown')
  reachability.state = 'unreachable'
  assert.equal(typeof objects.find('Pod', 'shop', 'p'), 'object')
  assert.equal(objects.find('Pod', 'shop', 'other', 'n1'), 'absent')
})

test('what may be missing by damage alone is not absent', () => {
  const { objects, cache } = world(ofNode)
  cache.isDamaged = true
  cache.isCorrupt = () => true
  assert.equal(objects.find('Pod', 'shop', 'p', 'n1'), 'unknown')
})

test('by when an object is to be gone is told', () => {
  const { objects } = world(ofNode, podOf({ deletionTimestamp: '2026-11-16T12:00:00Z' }))
  const found = objects.find('Pod', 'shop', 'p')
  assert.equal(typeof found === 'object' && found.deletionMs, Date.parse('2026-11-16T12:00:00Z'))
})

test('[I5] an object that goes, or comes back as another, is told at once', () => {
  const { objects, told } = world(ofNode)
  let doubts = 0
  objects.observe({ doubt: () => doubts++ } as unknown as AccountTokens)
  assert.equal(doubts, 1, 'from now on more is known')
  const tell = (event: Partial<Event>) => told[0]?.(event as Event)
  const [before, same, other] = [podOf({}), podOf({ labels: {} }), podOf({ uid: 'v' })]
  const counted = [
    [{ item: before }, 0],
    [{ previous: before, item: same }, 0],
    [{ previous: before }, 1],
    [{ previous: before, item: other }, 1],
  ] as const
  for (const [event, more] of counted) {
    const known: number = doubts
    tell(event)
    assert.equal(doubts - known, more)
  }
})

test('[I5] every change of a Secret is told: it may hold a token', () => {
  const { objects, told } = world(interestOf({ ...core, resource: 'secrets' }))
  let doubts = 0
  objects.observe({ doubt: () => doubts++ } as unknown as AccountTokens)
  told[0]?.({ previous: podOf({}), item: podOf({ labels: {} }) } as Partial<Event> as Event)
  assert.equal(doubts, 2)
})
