import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LinkFrame } from '../frames/frames.ts'
import { EdgeSession } from './edge.ts'
import { HubSession } from './hub.ts'
import { SharedChanges } from './sharedchanges.ts'
import { edgeTakes, hubTakes, type SessionState, sessionStates } from './table.ts'

/** One of each kind, harmless where it may come at all: a kind that is added and not here does not compile. */
const samples: { readonly [Kind in LinkFrame['kind']]: LinkFrame & { readonly kind: Kind } } = {
  hello: {
    ...{ kind: 'hello', oldest: 1, newest: 1, edge: 'e', release: '1' },
    cluster: '',
    epoch: 0,
    window: 2 ** 18,
    counts: 1,
  },
  welcome: {
    ...{ kind: 'welcome', protocol: 1, hub: 'h', release: '1', cluster: 'c', epoch: 1, window: 2 ** 18, trusts: 0 },
    digestKey: Buffer.of(1),
    counts: 1,
  },
  refused: { kind: 'refused', interest: 1, reason: 'forbidden', retryAfterMs: 0, sentence: '' },
  subscribe: {
    kind: 'subscribe',
    interests: [{ interest: 2, name: 's1', version: 0, wish: 'resume', partial: 0, after: '' }],
    epoch: 1,
  },
  unsubscribe: { kind: 'unsubscribe', interests: [1] },
  accepted: { kind: 'accepted', interests: [{ interest: 1, source: 1, start: 'snapshot', version: 5 }] },
  block: { kind: 'block', interest: 1, version: 5, after: '', size: 9, offset: 0, piece: Buffer.of(1) },
  complete: { kind: 'complete', interest: 1, version: 5, root: 0 },
  events: { kind: 'events', position: 1, events: [{ interest: 1, change: Buffer.from('0003612f6201', 'hex') }] },
  acknowledge: { kind: 'acknowledge', position: 0, bulk: 0 },
  progress: { kind: 'progress', marks: [{ source: 1, version: 5 }] },
  compare: { kind: 'compare', interest: 1, version: 5, request: Buffer.of() },
  compared: { kind: 'compared', interest: 1, version: 4, answer: Buffer.of() },
  lost: { kind: 'lost', interest: 0, epoch: 2, version: 5 },
  ping: { kind: 'ping', number: 7 },
  pong: { kind: 'pong', number: 0, ageMs: 0, stale: [] },
  drain: { kind: 'drain', withinMs: 1_000, sentence: '' },
  terms: { kind: 'terms', trusts: 1, tokenAgeMs: 5, serveAgeMs: 0 },
  documents: { kind: 'documents', signs: [Buffer.of(1, 2)] },
  tunnel: { kind: 'tunnel', type: 0x80, payload: Buffer.of(1) },
}
const kinds = Object.keys(samples) as LinkFrame['kind'][]

function hubIn(state: SessionState): HubSession {
  const session = new HubSession({
    ...{ hub: 'h', release: '1', cluster: 'c', epoch: 1, lost: 0, digestKey: Buffer.of(1), now: 0 },
    ...{ changes: new SharedChanges(), admit: () => undefined },
  })
  if (state === 'greeting') return session
  session.receive(samples.hello, 0)
  const interest = { interest: 1, name: 's0', version: 0, wish: 'resume', partial: 0, after: '' } as const
  session.receive({ kind: 'subscribe', interests: [interest], epoch: 1 }, 0)
  if (state === 'leaving') session.drain(60_000, '', 0)
  if (state === 'closed') session.close({ reason: 'other', retryAfterMs: 0, sentence: '' })
  session.tick(0)
  return session
}

/** Its interest is live, so that what may come at all fits; a block or a comparison needs another one first. */
function edgeIn(state: SessionState, kind: LinkFrame['kind']): EdgeSession {
  const session = new EdgeSession({
    ...{ edge: 'e', release: '1', cluster: 'c', epoch: 1, keepaliveMs: 30_000, held: () => undefined, now: 0 },
  })
  session.subscribe('s0', { epoch: 1, version: 1, wish: 'resume' })
  if (state === 'greeting') return session
  session.receive(samples.welcome, 0)
  const start = kind === 'accepted' ? undefined : kind === 'block' ? 'snapshot' : 'replay'
  if (start !== undefined)
    session.receive({ kind: 'accepted', interests: [{ interest: 1, source: 1, start, version: 1 }] }, 0)
  if (state === 'leaving') session.receive(samples.drain, 0)
  if (state === 'closed') session.close('')
  session.tick(0)
  return session
}

test('[L8] every frame in every state is taken or closes the link with a reason, on both sides; a closed one says nothing', () => {
  let seen = 0
  for (const state of sessionStates) {
    for (const kind of kinds) {
      const sides = [
        ['hub', hubIn(state), hubTakes[state]],
        ['edge', edgeIn(state, kind), edgeTakes[state]],
      ] as const
      for (const [side, session, takes] of sides) {
        assert.equal(session.state, state)
        const before = `${side} ${state} ${kind}`
        const effects = session.receive(samples[kind], 1)
        const end = effects.find(({ effect }) => effect === 'close')
        seen++
        if (state === 'closed') assert.deepEqual(effects, [], before)
        else if (takes.includes(kind) && !(kind === 'refused' && state === 'greeting'))
          assert.equal(end, undefined, `${before} closed: ${JSON.stringify(effects)}`)
        else {
          assert.deepEqual([session.state, end?.effect === 'close' && end.reason], ['closed', 'frame'], before)
          assert.ok(effects.some((effect) => effect.effect === 'send' && effect.frame.kind === 'refused'))
          assert.equal(effects.at(-1)?.effect, 'close', 'nothing is done after the end')
        }
      }
    }
  }
  assert.equal(seen, sessionStates.length * kinds.length * 2)
})
