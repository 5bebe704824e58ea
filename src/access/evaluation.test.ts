import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../kube/caller.ts'
import { alice, type Bench, openBench, settle, aliceToken as token, withAlice } from './access.test-support.ts'
import { makeQuestion } from './question.ts'

const pods = makeQuestion({ verb: 'list', version: 'v1', resource: 'pods', namespace: 'shop' })
const onePod = makeQuestion({ verb: 'get', version: 'v1', resource: 'pods', namespace: 'shop', name: 'p' })
const secrets = makeQuestion({ verb: 'list', version: 'v1', resource: 'secrets', namespace: 'shop' })

/** How roles are followed: `heardAt` as a test sets it, else always now. */
function follow({ evaluation, clock }: Bench, heard: { at?: number | undefined } = {}): typeof heard {
  evaluation.follow({ heardAt: () => ('at' in heard ? heard.at : clock.steady()) })
  return heard
}

const readers = {
  roleRef: { kind: 'Role', name: 'reads' },
  subjects: [{ kind: 'Group', name: 'devs' }],
}

/** The group of alice may read pods in shop, and the API server judges by that alone. */
function grant(bench: Bench): void {
  const rules = [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }]
  bench.evaluation.put('roles', 'shop/reads', Buffer.from(JSON.stringify({ rules })))
  bench.evaluation.put('rolebindings', 'shop/readers', Buffer.from(JSON.stringify(readers)))
  bench.cloud.allows = (_, { resourceAttributes: { resource } = {} }) => resource === 'pods'
}

/** Some time after which nothing that differs can be a change under way. */
function rest({ clock, changes }: Bench): void {
  changes.note('')
  clock.advance(60_000)
}

/** Alice is known, and the cloud goes away before it was ever asked what she may do. */
async function knownAlice(): Promise<Bench> {
  const bench = await withAlice()
  follow(bench)
  grant(bench)
  await bench.access.caller(token)
  return bench
}

test('[I2] without the API server a first question is judged by its roles, and refused in its words', async () => {
  const bench = await knownAlice()
  const { access, cloud, evaluation } = bench
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, pods), 'allowed')
  assert.equal(access.decide(token, onePod), 'allowed')
  assert.equal(access.decide(token, secrets), 'denied')
  const text =
    'secrets is forbidden: User "alice" cannot list resource "secrets" in API group "" in the namespace "shop"'
  assert.equal(access.refusal(token, secrets, 'denied').message, text)
  evaluation.delete('roles', 'shop/reads')
  assert.equal(access.decide(token, pods), 'denied')
  const gone = `${text.replaceAll('secrets', 'pods')}: RBAC: role.rbac.authorization.k8s.io "reads" not found`
  assert.equal(access.refusal(token, pods, 'denied').message, gone)
  assert.deepEqual(cloud.asked, ['subject alice'])
})

test('[I2] while the API server can be asked a first question is reviewed, whatever roles say', async () => {
  const bench = await knownAlice()
  bench.cloud.allows = () => false
  assert.equal(await bench.access.decide(token, pods), 'denied')
})

test('[I2] where roles are not all here, nothing is told from them', async () => {
  const bench = await knownAlice()
  follow(bench, { at: undefined })
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(token, pods), 'unknown')
  assert.equal(bench.access.refusal(token, pods, 'unknown').code, 503)
})

test('[I3] anonymous is judged by its roles too', async () => {
  const bench = await openBench()
  follow(bench)
  const version = makeQuestion({ verb: 'get', path: '/version' })
  const rules = [{ verbs: ['get'], nonResourceURLs: ['/version'] }]
  const binding = {
    roleRef: { kind: 'ClusterRole', name: 'info' },
    subjects: [{ kind: 'Group', name: 'system:unauthenticated' }],
  }
  bench.evaluation.put('clusterroles', 'info', Buffer.from(JSON.stringify({ rules })))
  bench.evaluation.put('clusterrolebindings', 'info', Buffer.from(JSON.stringify(binding)))
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide({ kind: 'anonymous' }, version), 'allowed')
  assert.equal(bench.access.decide({ kind: 'anonymous' }, pods), 'denied')
})

test('[I5] what was reviewed is not asked again for minutes, as long as it follows from roles that are watched', async () => {
  const bench = await knownAlice()
  const { access, cloud, clock } = bench
  rest(bench)
  assert.equal(await access.decide(token, pods), 'allowed')
  const reviews = () => cloud.asked.filter((one) => one.startsWith('access')).length
  for (let i = 0; i < 17; i++) {
    clock.advance(10_000)
    await access.caller(token)
    assert.equal(access.decide(token, pods), 'allowed')
    await settle()
  }
  assert.equal(reviews(), 1)
  clock.advance(11_000)
  await access.caller(token)
  assert.equal(access.decide(token, pods), 'allowed')
  await settle()
  assert.equal(reviews(), 2, 'beside the request')
  follow(bench, { at: clock.steady() })
  clock.advance(10_000)
  await access.caller(token)
  const waiting = access.decide(token, pods)
  assert.ok(waiting instanceof Promise, 'the watch of roles was silent: what was reviewed 10 s ago is too old')
  assert.equal(await waiting, 'allowed')
})

test('[I5] a binding that is seen to go is asked about at once, and counts no more without the API server', async () => {
  const bench = await knownAlice()
  const { access, cloud, clock, evaluation, changes } = bench
  rest(bench)
  await access.caller(token)
  assert.equal(await access.decide(token, pods), 'allowed')
  clock.advance(10)
  evaluation.delete('rolebindings', 'shop/readers')
  changes.note('shop')
  cloud.allows = () => false
  assert.equal(await access.decide(token, pods), 'denied')

  const other = await knownAlice()
  rest(other)
  await other.access.caller(token)
  assert.equal(await other.access.decide(token, pods), 'allowed')
  other.evaluation.delete('rolebindings', 'shop/readers')
  other.cloud.state = 'unreachable'
  assert.equal(other.access.decide(token, pods), 'denied', 'the allowance is older than what is seen of the roles')
})

test('[I5] a binding that is seen to go is asked about at once, also right after another change of roles', async () => {
  const bench = await knownAlice()
  const { access, cloud, clock, evaluation, changes } = bench
  rest(bench)
  await access.caller(token)
  changes.note('elsewhere')
  assert.equal(await access.decide(token, pods), 'allowed')
  clock.advance(10)
  evaluation.delete('rolebindings', 'shop/readers')
  changes.note('shop')
  cloud.allows = () => false
  assert.equal(await access.decide(token, pods), 'denied')
})

test('a change of roles that leaves a decision as it was costs no review', async () => {
  const bench = await knownAlice()
  const { access, cloud, evaluation, changes } = bench
  rest(bench)
  await access.caller(token)
  await access.decide(token, pods)
  const before = cloud.asked.length
  const binding = { ...readers, subjects: [{ kind: 'User', name: 'bob' }] }
  evaluation.put('rolebindings', 'shop/others', Buffer.from(JSON.stringify(binding)))
  changes.note('shop')
  bench.clock.advance(6_000)
  assert.equal(access.decide(token, pods), 'allowed')
  assert.equal(cloud.asked.length, before)
})

test('[I1] an API server that judges otherwise ends the evaluation of a question: counted, logged, over a restart too', async () => {
  const bench = await knownAlice()
  const { access, cloud, clock } = bench
  rest(bench)
  cloud.allows = () => false
  await access.caller(token)
  assert.equal(await access.decide(token, pods), 'denied')
  assert.match(bench.evaluation.figures().join(''), /^ake_authorization_differences_total 1$/m)
  assert.equal(bench.lines.filter((line) => line.includes('access.differs')).length, 1)
  // Its authorizer may have a good day: that is no reason to trust roles again.
  clock.advance(10_000)
  cloud.allows = () => true
  assert.equal(await access.decide(token, pods), 'allowed')
  clock.advance(10_000)
  cloud.allows = () => false
  assert.equal(await access.decide(token, pods), 'denied')
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, pods), 'denied')
  assert.equal(
    access.decide(token, onePod),
    'unknown',
    'nothing new is allowed where something was denied against roles',
  )
  assert.equal(access.decide(token, secrets), 'denied')
  const next = await bench.restart()
  follow(next)
  grant(next)
  assert.equal(next.access.decide(token, pods), 'denied')
  assert.equal(next.access.decide(token, onePod), 'unknown')
})

test('[I2] an API server that allows more than its roles: its last word counts, and what was never asked is not denied', async () => {
  const bench = await knownAlice()
  const { access, cloud } = bench
  rest(bench)
  cloud.allows = () => true
  await access.caller(token)
  assert.equal(await access.decide(token, secrets), 'allowed')
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, secrets), 'allowed')
  assert.equal(access.decide(token, makeQuestion({ verb: 'list', resource: 'nodes' })), 'unknown')
  assert.equal(access.decide(token, pods), 'allowed')
})

test('what differs while roles change is no difference yet, and counts as reviewed', async () => {
  const bench = await knownAlice()
  const { access, cloud, changes, clock } = bench
  rest(bench)
  await access.caller(token)
  changes.note('shop')
  cloud.allows = () => false
  assert.equal(await access.decide(token, pods), 'denied')
  assert.match(bench.evaluation.figures().join(''), /^ake_authorization_differences_total 0$/m)
  clock.advance(10_000)
  cloud.allows = () => true
  assert.equal(await access.decide(token, pods), 'allowed')
  clock.advance(20_000)
  await access.caller(token)
  assert.equal(access.decide(token, pods), 'allowed', 'it follows from roles again')
})

test('a forwarded 403, which admission may have given, says nothing about roles', async () => {
  const bench = await knownAlice()
  const { access, clock } = bench
  rest(bench)
  await access.caller(token)
  access.learn(token, pods, { status: 403, askedAt: clock.steady() })
  assert.match(bench.evaluation.figures().join(''), /^ake_authorization_differences_total 0$/m)
})

test('[I2] of a node only what roles allow is told: the rest its own authorizer knows', async () => {
  const bench = await openBench()
  follow(bench)
  grant(bench)
  const node: Caller = { ...alice, name: 'system:node:n1', groups: ['system:nodes', 'devs'] }
  bench.cloud.users.set(token.token, node)
  await bench.access.caller(token)
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(token, pods), 'allowed')
  assert.equal(bench.access.decide(token, secrets), 'unknown')
  const why = 'no relationship found between node "n1" and this object'
  bench.evaluation.judgeNodesBy({ judge: () => ({ allowed: false, reason: why }), changedAt: 0 })
  assert.equal(bench.access.decide(token, secrets), 'denied')
  assert.ok(bench.access.refusal(token, secrets, 'denied').message.endsWith(`in the namespace "shop": ${why}`))
  bench.evaluation.judgeNodesBy({ judge: () => ({ allowed: true, reason: '' }), changedAt: 0 })
  assert.equal(bench.access.decide(token, secrets), 'allowed')
})

test('[I1] a caller that is told apart by its extra is judged by reviews alone: its scopes may be narrower than its roles', async () => {
  const bench = await openBench()
  follow(bench)
  grant(bench)
  bench.cloud.users.set(token.token, { ...alice, extra: { 'scopes.example.com': ['none'] } })
  const bound = { kind: 'token', token: 'bound' } as const
  bench.cloud.users.set(bound.token, { ...alice, extra: { 'authentication.kubernetes.io/pod-name': ['p'] } })
  await bench.access.caller(token)
  await bench.access.caller(bound)
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(token, pods), 'unknown')
  assert.equal(bench.access.decide(bound, pods), 'allowed')
})

test('[I2] reviews are answered by roles: what any caller may do and why, and the rules of a caller, as long as they are all', async () => {
  const bench = await knownAlice()
  const { access, cloud } = bench
  const why = 'RBAC: allowed by RoleBinding "readers/shop" of Role "reads" to Group "devs"'
  assert.deepEqual(access.opinion(alice, pods), { allowed: true, reason: why })
  assert.deepEqual(access.opinion({ name: 'bob', uid: '', groups: [] }, pods), { allowed: false, reason: '' })
  const rule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }
  const rules = { resourceRules: [rule], nonResourceRules: [], incomplete: false }
  assert.deepEqual(access.rules(alice, 'shop'), rules)
  const ofNode = access.rules({ ...alice, name: 'system:node:n1', groups: ['system:nodes', 'devs'] }, 'shop')
  const evaluationError = 'node authorizer does not support user rule resolution'
  assert.deepEqual(ofNode, { ...rules, incomplete: true, evaluationError }, 'a node may more than roles say')
  assert.equal(access.rules({ ...alice, extra: { 'scopes.example.com': ['none'] } }, 'shop'), undefined)
  rest(bench)
  cloud.allows = () => true
  await access.caller(token)
  await access.decide(token, secrets)
  assert.equal(access.rules(alice, 'shop'), undefined, 'the API server allows more')
})

test('while the line is only in doubt, what was never asked is left for the API server to deny', async () => {
  const bench = await knownAlice()
  bench.cloud.state = 'suspect'
  assert.equal(bench.access.decide(token, pods), 'allowed')
  assert.equal(bench.access.decide(token, secrets), 'unknown')
})

test('[I5] each change of what an allowance follows from has it looked at again, also where only the roles tell', async () => {
  const bytes = (object: object) => Buffer.from(JSON.stringify(object))
  const changes: readonly ((bench: Bench) => void)[] = [
    ({ evaluation }) => evaluation.delete('rolebindings', 'shop/readers'),
    ({ evaluation }) => evaluation.put('roles', 'shop/reads', bytes({ rules: [] })),
    ({ evaluation }) => evaluation.clear('rolebindings'),
    ({ evaluation }) => evaluation.judgeNodesBy({ judge: () => undefined, changedAt: 0 }),
  ]
  for (const change of changes) {
    const bench = await knownAlice()
    const { access, clock, evaluation } = bench
    // By the last of the changes it follows from what judges nodes alone.
    const isNode = change === changes.at(-1)
    if (isNode) evaluation.judgeNodesBy({ judge: () => ({ allowed: true, reason: '' }), changedAt: 0 })
    if (isNode) evaluation.clear('rolebindings')
    rest(bench)
    assert.equal(await access.decide(token, pods), 'allowed')
    clock.advance(11_000)
    await access.caller(token)
    assert.equal(access.decide(token, pods), 'allowed')
    change(bench)
    assert.ok(access.decide(token, pods) instanceof Promise)
    await settle()
  }
})

test('[I5] a review that agrees with roles of long ago makes nothing follow from those of now', async () => {
  const bench = await knownAlice()
  const { access, clock } = bench
  rest(bench)
  follow(bench, { at: clock.steady() - 6_000 })
  assert.equal(await access.decide(token, pods), 'allowed')
  follow(bench)
  clock.advance(10_000)
  await access.caller(token)
  assert.ok(access.decide(token, pods) instanceof Promise)
  await settle()
})

test('what differs while pods come and go is no difference yet; differences are logged once a minute and all counted', async () => {
  const bench = await knownAlice()
  const { access, cloud, clock, evaluation, lines } = bench
  rest(bench)
  await access.caller(token)
  cloud.allows = () => false
  evaluation.judgeNodesBy({ judge: () => ({ allowed: false, reason: '' }), changedAt: clock.steady() })
  assert.equal(await access.decide(token, pods), 'denied')
  assert.match(evaluation.figures().join(''), /^ake_authorization_differences_total 0$/m)
  clock.advance(11_000)
  await access.caller(token)
  for (const name of ['p', 'q', 'r']) {
    await access.decide(token, makeQuestion({ verb: 'get', version: 'v1', resource: 'pods', namespace: 'shop', name }))
  }
  assert.match(evaluation.figures().join(''), /^ake_authorization_differences_total 3$/m)
  assert.equal(lines.filter((line) => line.includes('access.differs')).length, 1)
})
