import assert from 'node:assert/strict'
import type { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import type { Verdict } from '../../access/access.ts'
import type { Question } from '../../access/question.ts'
import { forbiddenStatus } from '../../access/refusal.ts'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import { Warnings } from '../../base/warnings.ts'
import type { Caller } from '../../kube/caller.ts'
import { StatusError } from '../../kube/status.ts'
import { type Headers, type Identity, Unspoken } from '../../upstream/upstream.ts'
import { nowMs, shownBy, TestAuthority } from './certificates.test-support.ts'
import { CallerCertificates } from './certificates.ts'
import { SpokenCallers } from './spoken.ts'

const cluster = new TestAuthority('kubernetes')

type Wishes = {
  authorities?: readonly X509Certificate[]
  isConstrained?: boolean
  allowsLegacy?: boolean
  verdict?: Verdict
}

function opened(wishes: Wishes = {}) {
  const { authorities = [cluster.certificate], isConstrained = true, allowsLegacy = false, verdict = 'denied' } = wishes
  const asked: string[] = []
  const granted = new Set<string>()
  const lines: string[] = []
  const callerOf = (identity: Identity): Caller => (identity as Extract<Identity, { kind: 'named' }>).caller
  const spell = ({ verb, group, resource, subresource, namespace, name, path }: Question) =>
    `${verb} ${[group, resource, subresource].filter((one) => one !== '').join('/')}${path} ${namespace}:${name}`
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  const spoken = new SpokenCallers({
    certificates: new CallerCertificates({ authorities: () => authorities, clock: { now: () => nowMs } }),
    speaksFor: (edge, { name, groups }) => {
      const yes = edge === 'n1' && (groups.includes('dev') || name === 'system:node:other')
      return { yes, by: yes ? 'policy/a spec.speakFor[0]' : 'no policy lets this edge speak for it' }
    },
    isConstrained: () => isConstrained,
    allowsLegacy,
    access: {
      recheck: async (identity, question) => {
        asked.push(`${callerOf(identity).name} ${spell(question)}`)
        return granted.has(spell(question)) ? 'allowed' : verdict
      },
      refusal: (identity, question) => forbiddenStatus(callerOf(identity), question),
    },
    warnings: new Warnings({ clock: fakeClock(), log, kinds: ['caller'] }),
  })
  const get = (name: string, group: string | undefined, headers: Headers = {}, edge = 'n1') =>
    spoken.request(edge, shownBy(cluster.issue(name, group)), {
      method: 'GET',
      path: '/api/v1/namespaces/shop/pods',
      headers,
    })
  return { spoken, get, asked, granted, lines }
}

const saying =
  (expected: RegExp, code?: number) =>
  (error: unknown): boolean => {
    const isKind =
      code === undefined ? error instanceof Unspoken : error instanceof StatusError && error.status.code === code
    assert.ok(isKind, String(error))
    assert.match((error as Error).message, expected)
    return true
  }

test('[L27] a caller is spoken for where a policy lets its edge, and nobody else is', async () => {
  const { get, asked, lines } = opened()
  const { caller, headers } = await get('jane', 'dev')
  assert.equal(caller.name, 'jane')
  assert.equal(headers['impersonate-user'], 'jane')
  assert.equal(headers['impersonate-group'], 'dev')
  assert.match(String(headers['impersonate-extra-authentication.kubernetes.io%2fcredential-id']), /^X509SHA256=/)
  await assert.rejects(get('jane', 'ops'), saying(/does not let node "n1" speak for it \(no policy/))
  await assert.rejects(get('jane', 'dev', {}, 'n2'), saying(/does not let node "n2" speak for it/))
  await assert.rejects(get('root', 'system:masters'), saying(/speaks for no member of system:masters/))
  const foreign = new TestAuthority('kubernetes').issue('jane', 'dev')
  for (const [certificate, why] of [
    [foreign, /no authority by which the cluster knows clients/],
    [cluster.issue('jane', 'dev', { notAfter: nowMs - 1 }), /has expired/],
  ] as const) {
    const asking = opened()
    const request = asking.spoken.request('n1', shownBy(certificate), { method: 'GET', path: '/api', headers: {} })
    await assert.rejects(request, saying(/^Unauthorized$/, 401))
    assert.match(asking.lines.join('\n'), /warn hub.unspoken .*edge=n1/)
    assert.match(asking.lines.join('\n'), why)
  }
  assert.equal(lines.length, 3)
  for (let at = 0; at < 100; at++) await assert.rejects(get('jane', 'ops'))
  assert.equal(lines.length, 3)
  assert.deepEqual(asked, [])
})

test('[L27] before it is known who signs for callers, none is told that its certificate does not count', async () => {
  const { get, spoken, asked } = opened({ authorities: [] })
  await assert.rejects(get('jane', 'dev'), (error: unknown) => {
    assert.ok(error instanceof StatusError)
    const { code, reason, details } = error.status
    assert.deepEqual([code, reason, details?.retryAfterSeconds], [503, 'ServiceUnavailable', 1])
    return true
  })
  const judged = spoken.judge('n1', shownBy(cluster.issue('jane', 'dev')))
  assert.ok('isUnread' in judged && judged.isUnread, 'a proof by it is not refused either')
  assert.deepEqual(asked, [])
})

test('[L27] where the API server does not constrain impersonation nobody is spoken for, unless the hub is told to', async () => {
  await assert.rejects(opened({ isConstrained: false }).get('jane', 'dev'), saying(/--legacy-impersonation/))
  const { headers } = await opened({ isConstrained: false, allowsLegacy: true }).get('jane', 'dev')
  assert.equal(headers['impersonate-group'], 'dev')
  const other = await opened({ isConstrained: false, allowsLegacy: true }).get('system:node:other', 'system:nodes')
  assert.deepEqual(other.headers, { 'impersonate-user': 'system:node:other', 'impersonate-group': 'system:nodes' })
  const alone = await opened().get('system:node:other', 'system:nodes')
  assert.deepEqual(alone.headers, { 'impersonate-user': 'system:node:other' })
})

test('[L28] a caller who impersonates is asked about first, then the other is spoken for', async () => {
  const { get, asked, granted } = opened()
  const as = { 'impersonate-user': 'bob', 'impersonate-group': ['qa', 'ops'] }
  await assert.rejects(
    get('jane', 'dev', as),
    saying(/User "jane" cannot impersonate-on:user-info:list resource "pods"/, 403),
  )
  granted.add('impersonate users :bob').add('impersonate groups :qa').add('impersonate groups :ops')
  asked.length = 0
  const { caller, headers } = await get('jane', 'dev', as)
  assert.deepEqual(caller, { name: 'bob', uid: '', groups: ['qa', 'ops', 'system:authenticated'] })
  assert.deepEqual(headers, { 'impersonate-user': 'bob', 'impersonate-group': ['qa', 'ops'] })
  assert.deepEqual(asked, [
    'jane impersonate-on:user-info:list pods shop:',
    'jane impersonate users :bob',
    'jane impersonate groups :qa',
    'jane impersonate groups :ops',
  ])
  granted.clear()
  granted.add('impersonate-on:user-info:list pods shop:').add('impersonate:user-info authentication.k8s.io/users :bob')
  granted.add('impersonate:user-info authentication.k8s.io/groups :qa')
  await assert.rejects(get('jane', 'dev', as), saying(/cannot impersonate:user-info resource "groups"/, 403))
  granted.add('impersonate:user-info authentication.k8s.io/groups :ops')
  assert.equal((await get('jane', 'dev', as)).caller.name, 'bob')
})

test('[L28] narrow rights count only where the API server was seen to know them', async () => {
  const { get, granted } = opened({ isConstrained: false, allowsLegacy: true })
  granted.add('impersonate-on:user-info:list pods shop:').add('impersonate:user-info authentication.k8s.io/users :bob')
  await assert.rejects(
    get('jane', 'dev', { 'impersonate-user': 'bob' }),
    saying(/cannot impersonate resource "users"/, 403),
  )
})

test('[L28] nobody becomes a member of system:masters, whatever the caller may, and no spelling goes around the question', async () => {
  const { get, granted } = opened()
  granted.add('impersonate users :bob').add('impersonate groups :system:masters').add('impersonate users :x')
  const masters = { 'impersonate-user': 'bob', 'impersonate-group': 'system:masters' }
  await assert.rejects(get('jane', 'dev', masters), saying(/no member of system:masters: ask with a token/, 403))
  // The hub reads headers by their lower-case names; what says nothing of a user is no impersonation, or a fault.
  await assert.rejects(
    get('jane', 'dev', { 'impersonate-group': 'qa' }),
    saying(/without impersonating a user name/, 400),
  )
  const { caller, headers } = await get('jane', 'dev', { 'impersonate-user': '' })
  assert.deepEqual([caller.name, headers['impersonate-user']], ['jane', 'jane'])
  await assert.rejects(
    get('jane', 'dev', { 'impersonate-user': ['x', 'admin'], 'impersonate-uid': '1' }),
    saying(/cannot impersonate/, 403),
  )
  const many = { 'impersonate-user': 'x', 'impersonate-group': Array.from({ length: 70 }, (_, at) => `g${at}`) }
  await assert.rejects(get('jane', 'dev', many), saying(/more than 64/, 400))
})

test('[L28] what cannot be asked now is no denial', async () => {
  const { get } = opened({ verdict: 'unknown' })
  await assert.rejects(get('jane', 'dev', { 'impersonate-user': 'bob' }), saying(/cannot tell now/, 503))
})
