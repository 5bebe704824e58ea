/** What the soak lets a client be shown while the cloud becomes another under its edge: its own judges, judged. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Listed, Shown, Truth } from '../conformance/shown.ts'
import type { Edge } from '../conformance/site.ts'

const edge = { restarts: 0 } as Edge

function listed(version: number, objects: Record<string, number>, value = ''): Listed {
  const items = Object.entries(objects).map(([uid, one]) => ({ metadata: { uid, resourceVersion: `${one}` }, value }))
  return { metadata: { resourceVersion: `${version}` }, items }
}

test('a list may go back once each time the truth changes, and never otherwise', () => {
  const truth = new Truth()
  const shown = new Shown(edge, truth)
  assert.equal(shown.take(listed(10, { a: 9, b: 10 }), 0), undefined)
  assert.match(shown.take(listed(9, { a: 9 }), 0) ?? '', /from 10 to 9/)
  assert.match(shown.take(listed(11, { a: 7 }), 0) ?? '', /object a went back from 9 to 7/)
  truth.changes()
  assert.equal(shown.take(listed(12, { a: 8 }), 0), undefined, 'the edge has not found out')
  assert.equal(shown.take(listed(5, { a: 4 }), 0), undefined, 'it has')
  assert.match(shown.take(listed(4, { a: 4 }), 0) ?? '', /from 5 to 4/)
  truth.changed({})
  assert.match(shown.take(listed(3, { a: 4 }), 0) ?? '', /from 4 to 3/)
})

test('of a past that is over no object is shown, though another has its uid and its version; of another cluster no uid', () => {
  const truth = new Truth()
  assert.equal(truth.settled, 0)
  truth.changes()
  assert.equal(truth.settled, undefined)
  truth.changed({
    lost: listed(1, { a: 9 }, 'lost').items.map((one) => JSON.stringify(one)),
    strangers: new Set(['x']),
  })
  assert.equal(truth.settled, 1)
  assert.match(truth.overIn(listed(20, { b: 3, a: 9 }, 'lost')) ?? '', /"uid":"a"/)
  assert.equal(truth.overIn(listed(20, { a: 9 }, 'new')), undefined)
  assert.match(truth.overIn(listed(20, { x: 1 })) ?? '', /"uid":"x"/)
  truth.changes()
  truth.changed({ strangers: new Set(['y']) })
  assert.equal(truth.overIn(listed(20, { x: 1 })), undefined, 'back at the first cluster')
  assert.match(truth.overIn(listed(20, { a: 9 }, 'lost')) ?? '', /"uid":"a"/, 'what is lost stays so')
})
