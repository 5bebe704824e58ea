/** What `ake hub policy test` prints of policies: which rule decides, and what they say of an edge altogether. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerTo, type PolicyQuestion, summaryOf } from './explaining.ts'
import { readPolicy } from './reading.ts'
import { applied } from './rules.ts'

const maps = { group: '', resource: 'configmaps', namespace: 'shop', name: '', isNamespaced: true }
const rule = { apiGroups: [''], resources: ['configmaps'], namespaces: ['shop'] }

function those(specs: Readonly<Record<string, object>>) {
  const read = Object.entries(specs).map(([name, spec]) => readPolicy(JSON.stringify({ metadata: { name }, spec })))
  return applied(read, { name: 'n1', labels: undefined })
}

test('the rule that decides is named: forbidding before trust, trust before what is given', () => {
  const asked: PolicyQuestion = { about: 'interest', of: maps }
  const specs = { a: { interests: [rule] }, b: { trust: true }, c: { neverMirrored: [rule] } }
  assert.deepEqual(answerTo(those(specs), asked), { yes: false, by: 'policy/c spec.neverMirrored[0]' })
  const { c: _, ...without } = specs
  assert.deepEqual(answerTo(those(without), asked), { yes: true, by: 'policy/b spec.trust' })
  assert.deepEqual(answerTo(those({ a: specs.a }), asked), { yes: true, by: 'policy/a spec.interests[0]' })
  assert.deepEqual(answerTo(those({}), asked), { yes: false, by: 'no policy lets this edge hold it' })
  assert.equal(answerTo(those(specs), { about: 'never', of: maps }).yes, true)
  const spoken = those({ p: { speakFor: [{ users: ['jane'] }] } })
  assert.equal(answerTo(spoken, { about: 'caller', name: 'jane', groups: [] }).by, 'policy/p spec.speakFor[0]')
})

test('all that policies say of an edge is printed with whose word it is', () => {
  const specs = {
    a: { rates: { edgeRequestsPerSecond: 50 }, offline: { serveAge: '72h' }, interests: [rule, rule] },
    b: { rates: { edgeRequestsPerSecond: 20 }, trust: true, neverMirrored: [rule] },
    c: { offline: { tokenAge: '90s' }, nodes: { names: ['n*'] } },
  }
  assert.deepEqual(summaryOf(those(specs)), [
    'trusted: yes, by policy/b spec.trust',
    'rates.edgeRequestsPerSecond: 20, by policy/b',
    'offline.tokenAge: 90s, by policy/c',
    'offline.serveAge: 3d, by policy/a',
    'policy/a: 2 interests',
    'policy/b: 1 neverMirrored',
  ])
  assert.deepEqual(summaryOf(those({})), ['no policy says anything of it'])
})

test('that an edge is trusted is named also where everything is never mirrored', () => {
  const everything = { apiGroups: ['*'], resources: ['*'] }
  const [first] = summaryOf(those({ a: { neverMirrored: [everything] }, b: { trust: true } }))
  assert.equal(first, 'trusted: yes, by policy/b spec.trust')
})
