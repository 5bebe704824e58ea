/** Callers of an edge whose hub tells it their rules: judged without the cloud as where all roles are mirrored. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, type Bench, settle, aliceToken as token, withAlice } from './access.test-support.ts'
import { makeQuestion } from './question.ts'
import { Rbac } from './rbac/rbac.ts'
import { writeSubjectRules } from './rbac/subjectrules.ts'

const pods = makeQuestion({ verb: 'list', version: 'v1', resource: 'pods', namespace: 'shop' })
const secrets = makeQuestion({ verb: 'list', version: 'v1', resource: 'secrets', namespace: 'shop' })

/** As a hub writes them: the group of alice may read these in shop. */
function rulesOf(...resources: string[]): string {
  const rbac = new Rbac()
  const put = (resource: 'roles' | 'rolebindings', key: string, object: object) =>
    rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
  put('roles', 'shop/reads', { rules: [{ verbs: ['list'], apiGroups: [''], resources }] })
  put('rolebindings', 'shop/readers', {
    roleRef: { kind: 'Role', name: 'reads' },
    subjects: [{ kind: 'Group', name: 'devs' }],
  })
  return writeSubjectRules(rbac, alice) ?? ''
}

async function known(): Promise<Bench> {
  const bench = await withAlice()
  bench.cloud.allows = (_, { resourceAttributes: { resource } = {} }) => resource === 'pods'
  await bench.access.caller(token)
  return bench
}

const always =
  ({ clock }: Bench) =>
  () =>
    clock.steady()

test('[I2, L29] without the API server a first question is judged by what the hub told of its caller, after a restart too', async () => {
  const first = await known()
  first.cloud.state = 'unreachable'
  assert.equal(first.access.decide(token, pods), 'unknown')
  first.rules.told(alice, rulesOf('pods'), always(first))
  for (const bench of [first, await first.restart()]) {
    assert.equal(bench.access.decide(token, pods), 'allowed')
    assert.equal(bench.access.decide(token, secrets), 'denied')
    const text =
      'secrets is forbidden: User "alice" cannot list resource "secrets" in API group "" in the namespace "shop"'
    assert.equal(bench.access.refusal(token, secrets, 'denied').message, text)
    const opinion = bench.access.opinion(alice, pods)
    assert.equal(opinion?.reason, 'RBAC: allowed by RoleBinding "readers/shop" of Role "reads" to Group "devs"')
    assert.equal(bench.access.rules(alice, 'shop')?.resourceRules.length, 1)
    // Of others nothing was told.
    assert.equal(bench.access.opinion({ ...alice, groups: ['devs'] }, pods), undefined)
    assert.equal(bench.access.opinion({ ...alice, name: 'bob' }, pods), undefined)
  }
})

test('[I5, L29] what is told anew counts from then on, also over a crash; what is told no more does not', async () => {
  const bench = await known()
  bench.cloud.state = 'unreachable'
  bench.rules.told(alice, rulesOf('pods'), always(bench))
  assert.equal(bench.access.decide(token, pods), 'allowed')
  bench.rules.told(alice, rulesOf('secrets'), always(bench))
  await settle()
  const crashed = await bench.crash()
  for (const one of [bench, crashed]) {
    assert.equal(one.access.decide(token, pods), 'denied')
    assert.equal(one.access.decide(token, secrets), 'allowed')
  }
  crashed.rules.told(alice, undefined, always(crashed))
  await settle()
  assert.equal(crashed.access.decide(token, secrets), 'unknown')
  assert.equal((await crashed.crash()).access.decide(token, secrets), 'unknown')
})

test('[I5, L29] while the hub hears of changes, what was reviewed and follows is not asked again for minutes, and a right that goes at once', async () => {
  const bench = await known()
  const { access, cloud, clock, rules } = bench
  const told = { isCurrent: true }
  const heardAt = () => (told.isCurrent ? clock.steady() : Number.NEGATIVE_INFINITY)
  rules.told(alice, rulesOf('pods'), heardAt)
  clock.advance(60_000)
  assert.equal(await access.decide(token, pods), 'allowed')
  const asked = () => cloud.asked.filter((line) => line.startsWith('access')).length
  const before = asked()
  for (let at = 0; at < 6; at++) {
    clock.advance(20_000)
    assert.equal(await access.decide(token, pods), 'allowed')
    await settle()
  }
  assert.equal(asked(), before)
  told.isCurrent = false
  clock.advance(20_000)
  assert.equal(await access.decide(token, pods), 'allowed')
  assert.equal(asked(), before + 1)
  told.isCurrent = true
  rules.told(alice, rulesOf('services'), heardAt)
  cloud.allows = () => false
  assert.equal(await access.decide(token, pods), 'denied')
  // And where the line is cut before the caller asks, the rules count and not what was said before them.
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, pods), 'denied')
})

test('[A8, L29] rules of hundreds of callers, or of many bytes, are kept within limits', async () => {
  const bench = await known()
  const long = rulesOf(...Array.from({ length: 10_000 }, (_, at) => `resource-${at}`))
  for (let at = 0; at < 100; at++) {
    bench.clock.advance(1)
    bench.rules.told({ name: `caller-${at}`, groups: [] }, long.replace('reads', `reads-${at}`), always(bench))
  }
  assert.ok(bench.rules.size < 60, String(bench.rules.size))
  for (let at = 0; at < 600; at++) {
    bench.clock.advance(1)
    bench.rules.told({ name: `small-${at}`, groups: [] }, rulesOf('pods'), always(bench))
  }
  assert.ok(bench.rules.size <= 256)
  const again = await bench.restart()
  assert.ok(again.rules.size > 100 && again.rules.size <= 256)
  bench.clock.advance(31 * 86_400_000)
  bench.cloud.state = 'unreachable'
  const offline = await again.restart()
  assert.ok(offline.rules.size > 100, 'what was current at the cut is of callers of then')
  bench.cloud.state = 'reachable'
  const online = await offline.restart()
  assert.equal(online.rules.size, 0)
  await online.restart()
  assert.equal([...offline.records.kept.values()].filter(({ kind }) => kind === 'rules').length, 0)
})
