import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../kube/caller.ts'
import type { TokenRequestFacts } from '../kube/tokenrequest.ts'
import { type Bench, makeJwt, openBench, settle } from './access.test-support.ts'
import { makeQuestion } from './question.ts'
import type { TokenAsked } from './tokens.ts'

const kubelet = { name: 'system:node:n1', uid: '', groups: ['system:nodes', 'system:authenticated'] }
const bound = { kind: 'Pod', apiVersion: 'v1', name: 'till-0', uid: 'p-1' }
const asked: TokenAsked = {
  namespace: 'shop',
  account: 'till',
  caller: kubelet,
  request: { audiences: [], expirationSeconds: 3607, boundTo: bound },
}

/** As kube-apiserver does it: the token itself lives for a year, the answer says an hour. */
function issue(
  bench: Bench,
  to: TokenAsked = asked,
  lifeMs = 365 * 86_400_000,
  aud = ['https://api'],
  accountUid = 'sa-1',
): TokenRequestFacts {
  const nowMs = bench.clock.now()
  const { boundTo } = to.request
  const pod = boundTo?.kind === 'Pod' ? { pod: { name: boundTo.name, uid: boundTo.uid } } : {}
  const serviceaccount = { name: to.account, uid: accountUid }
  const account = { namespace: to.namespace, serviceaccount, node: { name: 'n1', uid: 'n-1' }, ...pod }
  const token = makeJwt({ aud, exp: (nowMs + lifeMs) / 1000, iat: nowMs / 1000, 'kubernetes.io': account, jti: nowMs })
  const { expirationSeconds } = to.request
  const createdSeconds = nowMs / 1000
  const expiresSeconds = createdSeconds + (expirationSeconds ?? 3600)
  const facts = { ...to.request, uid: accountUid, createdSeconds, audiences: aud, token, expiresSeconds }
  bench.tokens.remember(to, facts, nowMs)
  return facts
}

test('the last token issued is answered again, with the asked life, also after a restart', async () => {
  let bench = await openBench()
  issue(bench)
  bench.clock.advance(1000)
  const { token } = issue(bench)
  bench.clock.advance(86_400_000)
  await settle()
  bench = await bench.crash()
  const answer = bench.tokens.answer(asked, bench.nowMs())
  assert.equal(answer?.facts.token, token)
  assert.equal(answer?.facts.expiresSeconds, bench.clock.now() / 1000 + 3607)
  assert.deepEqual(answer?.facts.audiences, ['https://api'])
  assert.deepEqual(answer?.facts.boundTo, bound)
  assert.equal(answer?.facts.uid, 'sa-1')
  assert.equal(answer?.warning, undefined)
})

test('a token is never said to live longer than it does; an expired one comes with its true end and a warning', async () => {
  const bench = await openBench()
  const endsMs = bench.clock.now() + 600_000
  issue(bench, asked, 600_000)
  assert.equal(bench.tokens.answer(asked, bench.nowMs())?.facts.expiresSeconds, endsMs / 1000)
  bench.clock.advance(700_000)
  const late = bench.tokens.answer(asked, bench.nowMs())
  assert.equal(late?.facts.expiresSeconds, endsMs / 1000)
  assert.match(late?.warning ?? '', /expired at 2026-01-01T00:10:00/)
})

test('[I1] no other caller, account, bound object or audience gets it', async () => {
  const bench = await openBench()
  issue(bench)
  const { request } = asked
  for (const other of [
    { ...asked, caller: { ...kubelet, name: 'system:node:n2' } },
    { ...asked, caller: { ...kubelet, groups: ['system:authenticated'] } },
    { ...asked, account: 'other' },
    { ...asked, namespace: 'other' },
    { ...asked, request: { ...request, boundTo: undefined } },
    { ...asked, request: { ...request, boundTo: { ...bound, uid: 'p-2' } } },
    { ...asked, request: { ...request, boundTo: { ...bound, kind: 'Secret' } } },
    { ...asked, request: { ...request, audiences: ['vault'] } },
  ]) {
    assert.equal(bench.tokens.answer(other, bench.nowMs()), undefined)
  }
  assert.ok(bench.tokens.answer({ ...asked, caller: { ...kubelet, groups: [...kubelet.groups].reverse() } }, 0))
})

test('audiences are a set; a token without a bound object is kept likewise', async () => {
  const bench = await openBench()
  const wish = { audiences: ['b', 'a'], expirationSeconds: undefined, boundTo: undefined }
  const { token } = issue(bench, { ...asked, request: wish }, 1e9, ['b', 'a'])
  const again = { ...asked, request: { ...wish, audiences: ['a', 'b', 'a'] } }
  const answer = bench.tokens.answer(again, bench.nowMs())
  assert.equal(answer?.facts.token, token)
  assert.equal(answer?.facts.expiresSeconds, bench.clock.now() / 1000 + 3600)
})

test('the confirmed deletion of the bound object takes its tokens away, also from the disk', async () => {
  let bench = await openBench()
  issue(bench)
  await settle()
  bench.tokens.dropBound('Pod', 'shop', 'till-0', 'p-2')
  bench.tokens.dropBound('Pod', 'other', 'till-0', 'p-1')
  assert.ok(bench.tokens.answer(asked, bench.nowMs()))
  bench.tokens.dropBound('Pod', 'shop', 'till-0', 'p-1')
  assert.equal(bench.tokens.answer(asked, bench.nowMs()), undefined)
  await settle()
  bench = await bench.crash()
  assert.equal(bench.tokens.answer(asked, bench.nowMs()), undefined)
})

test('a caller that shows a token which was issued through us is known at once, as the API server would see it', async () => {
  const bench = await openBench()
  const pods = makeQuestion({ verb: 'list', resource: 'pods' })
  const first = { kind: 'token', token: issue(bench).token } as const
  const caller = bench.access.held(first)
  assert.deepEqual(caller, {
    name: 'system:serviceaccount:shop:till',
    uid: 'sa-1',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    extra: {
      'authentication.kubernetes.io/node-name': ['n1'],
      'authentication.kubernetes.io/node-uid': ['n-1'],
      'authentication.kubernetes.io/pod-name': ['till-0'],
      'authentication.kubernetes.io/pod-uid': ['p-1'],
    },
  })
  const credential = { 'authentication.kubernetes.io/credential-id': ['JTI=1'] }
  bench.cloud.users.set(first.token, { ...(caller as Caller), extra: { ...credential, ...caller?.extra } })
  assert.equal(await bench.access.decide(first, pods), 'allowed')
  bench.clock.advance(1000)
  const second = { kind: 'token', token: issue(bench).token } as const
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(second, pods), 'allowed')
})

test('[I1] a token for another audience, or for another account than was asked, opens nothing', async () => {
  const bench = await openBench()
  const request = { ...asked.request, audiences: ['vault'] }
  const vault = issue(bench, { ...asked, request }, 1e9, ['vault'])
  assert.equal(bench.access.held({ kind: 'token', token: vault.token }), undefined)
  issue(bench)
  const both = issue(bench, { ...asked, request: { ...request, audiences: ['x', 'https://api'] } }, 1e9, [
    'x',
    'https://api',
  ])
  assert.ok(bench.access.held({ kind: 'token', token: both.token }))
  bench.tokens.remember({ ...asked, account: 'admin' }, { ...both, token: `${vault.token}x` }, bench.nowMs())
  assert.equal(bench.access.held({ kind: 'token', token: `${vault.token}x` }), undefined)
})

test('[I4] tokens are only in the records of their keeper', async () => {
  const bench = await openBench()
  const { token } = issue(bench)
  await bench.restart()
  const holding = bench.records.seen.filter((text) => text.includes(token))
  assert.equal(holding.length, 1)
  assert.ok(holding[0]?.startsWith('token\n'))
  assert.ok(!bench.records.seen.some((text) => text.split('\n')[1]?.includes(token)))
  assert.ok(!bench.lines.join('').includes(token))
})

test('kept tokens are bounded: the oldest go', async () => {
  const bench = await openBench()
  for (let i = 0; i < 2100; i++) issue(bench, { ...asked, account: `a${i}` })
  assert.equal(bench.tokens.answer({ ...asked, account: 'a0' }, 0), undefined)
  assert.ok(bench.tokens.answer({ ...asked, account: 'a2099' }, 0))
  await bench.restart()
  assert.equal([...bench.records.kept.values()].filter(({ kind }) => kind === 'token').length, 2048)
})

test('[I1] a refused wish loses its token at once and for good, others keep theirs', async () => {
  let bench = await openBench()
  const other = { ...asked, request: { ...asked.request, audiences: ['vault'] } }
  issue(bench)
  issue(bench, other, undefined, ['vault'])
  bench.tokens.refuse(asked)
  assert.equal(bench.tokens.answer(asked, bench.nowMs()), undefined)
  await settle()
  bench = await bench.crash()
  assert.equal(bench.tokens.answer(asked, bench.nowMs()), undefined)
  assert.ok(bench.tokens.answer(other, bench.nowMs()))
})

test('[I1] the tokens of an account that was deleted are given to nobody, also where another of its name came', async () => {
  let bench = await openBench()
  const other = { ...asked, caller: { ...kubelet, name: 'system:node:n2' } }
  const elsewhere = { ...asked, account: 'kiosk' }
  issue(bench)
  issue(bench, elsewhere)
  issue(bench, other, undefined, undefined, 'sa-2')
  assert.equal(bench.tokens.answer(asked, bench.nowMs()), undefined, 'it was of sa-1')
  bench.tokens.dropAccount('shop', 'till', 'sa-1')
  assert.ok(bench.tokens.answer(other, bench.nowMs()), 'of sa-2')
  bench.tokens.dropAccount('shop', 'till')
  await settle()
  bench = await bench.crash()
  for (const wish of [asked, other]) assert.equal(bench.tokens.answer(wish, bench.nowMs()), undefined)
  assert.ok(bench.tokens.answer(elsewhere, bench.nowMs()))
})
