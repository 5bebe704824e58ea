/** What policies say of edges, by example. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPolicy } from './reading.ts'
import { applied, rulesBy } from './rules.ts'

type Spec = Readonly<Record<string, unknown>>

function policies(specs: Readonly<Record<string, Spec>>) {
  return Object.entries(specs).map(([name, spec]) => readPolicy(JSON.stringify({ metadata: { name }, spec })))
}

function rulesOf(node: string, specs: Readonly<Record<string, Spec>>, labels?: Readonly<Record<string, string>>) {
  const its = labels === undefined ? undefined : new Map(Object.entries(labels))
  return rulesBy(applied(policies(specs), { name: node, labels: its }))
}

const site = 'node-restriction.kubernetes.io/site'

test('without a policy an edge has nothing beyond its node, and nothing is forbidden', () => {
  const rules = rulesOf('n1', {})
  assert.equal(rules.trusts, false)
  assert.deepEqual(rules.rates, {})
  assert.deepEqual(rules.offline, {})
  assert.equal(rules.holds({ group: '', resource: 'pods', namespace: 'a', name: '' }).yes, false)
  assert.equal(rules.isNeverMirrored({ group: '', resource: 'pods', namespace: 'a' }).yes, false)
  assert.equal(rules.speaksFor({ name: 'jane', uid: '', groups: [] }).yes, false)
})

test('a policy is for the edges it names, those that its selector finds, or all', () => {
  const trust = true
  const matchLabels = { [site]: 'berlin' }
  const table: readonly (readonly [Spec, string, Readonly<Record<string, string>>, boolean])[] = [
    [{ trust }, 'n1', {}, true],
    [{ trust, nodes: {} }, 'n1', {}, false],
    [{ trust, nodes: { names: ['n1'] } }, 'n1', {}, true],
    [{ trust, nodes: { names: ['n1'] } }, 'n10', {}, false],
    [{ trust, nodes: { names: ['n1*'] } }, 'n10', {}, true],
    [{ trust, nodes: { names: ['*'] } }, 'x', {}, true],
    [{ trust, nodes: { selector: { matchLabels } } }, 'n1', { [site]: 'berlin' }, true],
    [{ trust, nodes: { selector: { matchLabels } } }, 'n1', { [site]: 'paris' }, false],
    [{ trust, nodes: { selector: { matchLabels } } }, 'n1', {}, false],
    [{ trust, nodes: { names: ['m*'], selector: { matchLabels } } }, 'n1', { [site]: 'berlin' }, false],
    [{ trust, nodes: { selector: {} } }, 'n1', {}, true],
  ]
  for (const [spec, name, labels, isTrusted] of table)
    assert.equal(rulesOf(name, { p: spec }, labels).trusts, isTrusted, JSON.stringify([spec, name, labels]))
})

test('a label that a node may give itself chooses no policy: what it allows nobody has, what it forbids everybody', () => {
  const selector = { matchLabels: { site: 'berlin' } }
  const neverMirrored = [{ apiGroups: [''], resources: ['secrets'] }]
  const rules = rulesOf('n1', { p: { nodes: { selector }, trust: true, neverMirrored } }, { site: 'paris' })
  assert.equal(rules.trusts, false)
  assert.deepEqual(rules.isNeverMirrored({ group: '', resource: 'secrets', namespace: '' }), {
    yes: true,
    by: 'policy/p spec.neverMirrored[0]',
  })
})

test('while Nodes cannot be read a policy by labels forbids and does not allow', () => {
  const [policy] = policies({
    p: { nodes: { selector: { matchLabels: { [site]: 'a' } } }, trust: true, rates: { edgeRequestsPerSecond: 5 } },
  })
  assert.ok(policy !== undefined)
  const rules = rulesBy(applied([policy], { name: 'n1', labels: 'unknown' }))
  assert.equal(rules.trusts, false)
  assert.deepEqual(rules.rates, { edgePerSecond: 5 })
})

test('an edge speaks for a caller whose name and groups one entry allows, and never for system:masters', () => {
  const speakFor = [
    { users: ['jane', 'ci-*'], groups: ['dev', 'qa-*'] },
    { groups: ['operators'] },
    { users: ['*'], groups: ['*'] },
    { users: ['system:kube-scheduler'] },
  ]
  const rules = rulesOf('n1', { people: { speakFor: speakFor.slice(0, 2) }, other: { speakFor: [speakFor[3]] } })
  const asked = (name: string, ...groups: string[]) => rules.speaksFor({ name, uid: '', groups })
  assert.equal(asked('jane', 'dev', 'qa-1', 'system:authenticated').by, 'policy/people spec.speakFor[0]')
  assert.equal(asked('ci-7').yes, true)
  assert.equal(asked('jane', 'dev', 'operators').yes, false, 'two entries in part')
  assert.equal(asked('joe', 'operators').by, 'policy/people spec.speakFor[1]')
  assert.equal(asked('joe').yes, false, 'in no group at all')
  assert.equal(asked('system:kube-scheduler').by, 'policy/other spec.speakFor[0]')
  const all = rulesOf('n1', { all: { speakFor: [speakFor[2]] } })
  assert.equal(all.speaksFor({ name: 'joe', uid: '', groups: ['x'] }).yes, true)
  for (const caller of [
    { name: 'system:kube-controller-manager', uid: '', groups: [] },
    { name: 'system:node:n2', uid: '', groups: ['system:nodes'] },
    { name: 'joe', uid: '', groups: ['system:masters'] },
  ])
    assert.equal(all.speaksFor(caller).yes, false, caller.name)
  const masters = rulesOf('n1', { p: { speakFor: [{ users: ['system:*', '*'], groups: ['system:*', '*'] }] } })
  assert.match(masters.speaksFor({ name: 'joe', uid: '', groups: ['x', 'system:masters'] }).by, /use a token/)
})

test('what is asked for lies in an interest altogether; what is never mirrored only has to touch it', () => {
  const rule = (more: object) => ({ apiGroups: ['', 'apps'], resources: ['configmaps', 'deployments'], ...more })
  const interests = [rule({ namespaces: ['a', 'shop-*'] }), rule({ namespaces: ['b'], names: ['x-*'] })]
  const rules = rulesOf('n1', { p: { interests, neverMirrored: [rule({ namespaces: ['vault'] })] } })
  const holds = (resource: string, namespace: string, name = '', group = '') =>
    rules.holds({ group, resource, namespace, name }).yes
  assert.ok(holds('configmaps', 'a'))
  assert.ok(holds('deployments', 'shop-1', '', 'apps'))
  assert.ok(holds('configmaps', 'b', 'x-1'))
  for (const [namespace, name] of [
    ['', ''],
    ['b', ''],
    ['b', 'y'],
    ['shop', ''],
    ['', 'x-1'],
  ] as const)
    assert.ok(!holds('configmaps', namespace, name), `${namespace}/${name}`)
  assert.ok(!holds('secrets', 'a'))
  const never = (namespace: string, isNamespaced?: boolean) =>
    rules.isNeverMirrored({
      ...{ group: '', resource: 'configmaps', namespace },
      ...(isNamespaced === undefined ? {} : { isNamespaced }),
    }).yes
  assert.deepEqual([never('vault'), never(''), never('a'), never('', false)], [true, true, false, false])
})

test('of numbers the lowest counts, also of a policy that allows nothing since something in it is wrong', () => {
  const rules = rulesOf('n1', {
    a: {
      rates: { edgeRequestsPerSecond: 50, callerRequestsPerSecond: 20 },
      offline: { tokenAge: '1h30m', serveAge: '72h' },
    },
    b: { rates: { edgeRequestsPerSecond: 80 }, offline: { tokenAge: '24h' } },
    c: { rates: { callerRequestsPerSecond: 7, edgeRequestsPerSecond: 0 }, trust: true, offline: { serveAge: 'soon' } },
  })
  assert.deepEqual(rules.rates, { edgePerSecond: 50, callerPerSecond: 7 })
  assert.deepEqual(rules.offline, { tokenAgeMs: 5_400_000, serveAgeMs: 72 * 3_600_000 })
  assert.equal(rules.trusts, false)
})

test('[L11] times of a policy are whole milliseconds, whatever fractions it has, and no longer than a frame can say', () => {
  const table: readonly (readonly [string, number | undefined])[] = [
    ...([
      ['1.1h', 3_960_000],
      ['0.5ms', 1],
      ['0.0000001s', 1],
      ['1.005s', 1_005],
      ['0.1s', 100],
    ] as const),
    ...([
      ['2562047h', 2_562_047 * 3_600_000],
      ['2562048h', undefined],
      ['9999999999999999999h', undefined],
    ] as const),
    ...([
      ['0s', undefined],
      ['0.0h', undefined],
    ] as const),
  ]
  for (const [text, ms] of table) {
    const { offline } = rulesOf('n1', { p: { offline: { tokenAge: text, serveAge: text } } })
    assert.deepEqual([offline.tokenAgeMs, offline.serveAgeMs], [ms, ms], text)
  }
})
