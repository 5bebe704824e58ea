/** Who has to go when there are too many connections. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Holder } from '../holder.ts'
import { Connections, type Visit } from './connections.ts'

const max = 128 // of which callers leave two
const admin: Holder = { standing: 'own', name: 'ake-admin' }
const caller = (name: string): Holder => ({ standing: 'known', name })

function crowd() {
  const connections = new Connections(max)
  const cut: string[] = []
  const admit = (name: string): Visit => connections.admit(() => void cut.push(name))
  const known = (name: string, holder: Holder): Visit => {
    const visit = admit(name)
    connections.greeted(visit, holder)
    return visit
  }
  return { connections, cut, admit, known }
}

test('[A8] strangers go in the order of their worth: no request, with or without a handshake, idle, busy; the oldest first', () => {
  const { connections, cut, admit, known } = crowd()
  const busy = admit('busy')
  connections.greeted(busy, undefined)
  connections.begin(busy)
  const idle = admit('idle')
  connections.greeted(idle, undefined)
  connections.begin(idle)
  idle.over()
  connections.greeted(admit('silent1'), undefined)
  admit('silent2')
  connections.greeted(admit('silent3'), undefined)
  for (let n = connections.size; n < max; n++) known(`caller${n}`, caller(`c${n % 7}`))
  for (let n = 0; n < 6; n++) connections.greeted(admit(`new${n}`), undefined)
  assert.deepEqual(cut, ['silent1', 'silent2', 'silent3', 'new0', 'new1', 'new2'])
  assert.equal(connections.size, max)
  for (let n = 0; n < 3; n++) connections.begin(admit(`late${n}`))
  assert.deepEqual(cut.slice(6), ['new3', 'new4', 'new5'])
  for (let n = 0; n < 2; n++) connections.begin(admit(`later${n}`))
  assert.deepEqual(cut.slice(9), ['idle', 'busy'])
})

test('[A8] any number of connections that ask for nothing leave the administrator in', () => {
  const { connections, cut, admit, known } = crowd()
  for (let n = 0; n < max * 3; n++) connections.greeted(admit(`idle${n}`), undefined)
  const one = known('admin', admin)
  connections.begin(one)
  for (let n = 0; n < max * 3; n++) connections.greeted(admit(`more${n}`), undefined)
  assert.equal(connections.size, max)
  assert.equal(cut.includes('admin'), false)
  // A token says who it is only with the first request: until then it is one of them, but the youngest.
  const token = admit('token')
  connections.greeted(token, undefined)
  for (let n = 0; n < max / 2; n++) connections.greeted(admit(`last${n}`), undefined)
  connections.know(token, caller('token'))
  for (let n = 0; n < max * 3; n++) connections.greeted(admit(`end${n}`), undefined)
  assert.equal(cut.includes('token'), false)
})

test('[A8] callers are pushed out by no stranger, and among them the one that has the most goes', () => {
  const { connections, cut, admit, known } = crowd()
  const modest = known('modest', caller('modest'))
  connections.begin(modest)
  for (let n = 0; n < max; n++) connections.begin(known(`greedy${n}`, caller('greedy')))
  assert.deepEqual(cut, ['greedy0', 'greedy1', 'greedy2'])
  for (let n = 0; n < max; n++) admit(`stranger${n}`)
  assert.ok(cut.slice(3).every((name) => name.startsWith('stranger')))
})

test('[A8] where every connection is in use, and nobody has half of them, only the administrator still gets in', () => {
  const { connections, cut, known } = crowd()
  for (let n = 0; n < max - 2; n++) connections.begin(known(`c${n}`, caller(`c${n % 5}`)))
  assert.deepEqual(cut, [])
  connections.begin(known('another', caller('another')))
  assert.deepEqual(cut, ['another'])
  connections.begin(known('admin', admin))
  assert.deepEqual(cut, ['another', 'c0'])
})

test('an idle connection of the caller with the most goes before any that is used', () => {
  const { connections, cut, known } = crowd()
  const visits = Array.from({ length: max - 2 }, (_, n) => known(`c${n}`, caller(n < 10 ? 'few' : 'many')))
  for (const visit of visits) connections.begin(visit)
  for (const n of [50, 40, 3]) visits[n]?.over()
  known('new1', caller('new1'))
  known('new2', caller('new2'))
  assert.deepEqual(cut, ['c50', 'c40'])
})

test('one that was cut changes nothing any more when its last request ends', () => {
  const { connections, admit } = crowd()
  const visit = admit('one')
  connections.greeted(visit, undefined)
  connections.begin(visit)
  connections.remove(visit)
  visit.over()
  connections.know(visit, admin)
  assert.equal(connections.size, 0)
  assert.equal(connections.underWay, 0)
})
