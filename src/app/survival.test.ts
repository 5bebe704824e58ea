/** Whether a node would come back from a reboot without the cloud, case by case. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { type CredentialFact, type Need, type RebootCheck, type SurvivalFacts, survivalOf } from './survival.ts'

const nowMs = Date.UTC(2026, 0, 2)
const day = 24 * 3_600_000
const mi = 1024 * 1024

const need = (more: Partial<Need>): Need => ({
  ...{ for: 'pods', group: '', resource: 'secrets', namespace: 'shop', name: 's', state: 'held', why: '' },
  ...more,
})

const well: SurvivalFacts = {
  nowMs,
  isReachable: true,
  node: 'edge-1',
  needs: [
    need({}),
    need({ for: 'node', resource: 'pods', namespace: '', name: '' }),
    need({ for: 'services', resource: 'endpointslices', group: 'discovery.k8s.io', namespace: '', name: '' }),
  ],
  tokens: [{ pod: 'shop/web', endsMs: nowMs + 3_600_000 }],
  credentials: [{ use: 'edge', endsAtMs: nowMs + 90 * day }],
  subject: { name: 'edge-1', groups: ['ake:edges', 'system:authenticated'] },
  isCatalogKnown: true,
  misconfigured: [],
  disk: { isHealthy: true, damage: [], freeBytes: 4_096 * mi },
  clockBehindMs: 0,
}

test('an edge of which everything is well says yes, in every check', () => {
  const { survives, checks } = survivalOf(well)
  assert.equal(survives, 'yes')
  assert.deepEqual(
    checks.filter(({ state, todo }) => state !== 'ok' || todo !== undefined),
    [],
  )
  assert.deepEqual(
    checks.map(({ name }) => name).join(' '),
    'node pods names services tokens rights options discovery credentials disk clock',
  )
})

type Row = readonly [change: Partial<SurvivalFacts>, survives: string, check: string, state: string, said: RegExp]

const expires = (ms: number, use: CredentialFact['use'] = 'caller') => [
  { use, name: 'system:node:edge-1', endsAtMs: nowMs + ms },
]
const unreadable = (use: CredentialFact['use']) => [{ use, name: 'x', missing: 'the key k cannot be read' }]
const denied = need({ state: 'denied', why: 'forbidden' })
const disk = well.disk

const rows: readonly Row[] = [
  [{ node: undefined }, 'unknown', 'node', 'unknown', /not known.*--node NAME/s],
  [{ isReachable: false }, 'yes', 'names', 'ok', /1 held, as of before the API server went away/],
  [{ needs: [need({ state: 'missing', why: 'not begun' })] }, 'no', 'names', 'failed', /secrets shop\/s \(not begun\)/],
  [
    { needs: [need({ for: 'node', resource: 'pods', namespace: '', name: '', state: 'missing' })] },
    'no',
    'pods',
    'failed',
    /not held: pods \(/,
  ],
  [{ needs: [need({ for: 'services', state: 'missing' })] }, 'no', 'services', 'failed', /not held/],
  [{ needs: [need({ state: 'behind', why: 'an old list' })] }, 'yes', 'names', 'warning', /not fresh.*an old list/],
  [{ needs: [denied] }, 'no', 'names', 'failed', /may not read it/],
  [
    { needs: [denied, need({ state: 'denied', name: 't' })] },
    'no',
    'rights',
    'failed',
    /may not read secrets shop\/s, secrets shop\/t\n.*:\nkubectl create role ake-edge-reads-secrets -n shop --verb=get,list,watch --resource=secrets && kubectl create rolebinding ake-edge-reads-secrets -n shop --role=ake-edge-reads-secrets --group=ake:edges$/,
  ],
  [
    {
      needs: [
        need({ for: 'option', group: 'example.com', resource: 'gateways', namespace: '', name: '', state: 'denied' }),
      ],
    },
    'no',
    'rights',
    'failed',
    /kubectl create clusterrole ake-edge-reads-gateways\.example\.com --verb=get,list,watch --resource=gateways\.example\.com && kubectl create clusterrolebinding ake-edge-reads-gateways\.example\.com --clusterrole=ake-edge-reads-gateways\.example\.com --group=ake:edges$/,
  ],
  [
    { needs: [1, 2, 3, 4, 5].map((n) => need({ name: `s${n}`, state: 'missing' })) },
    'no',
    'names',
    'failed',
    /s3 and 2 more/,
  ],
  [
    { tokens: [{ pod: 'shop/web', endsMs: undefined }] },
    'no',
    'tokens',
    'failed',
    /no token is kept for shop\/web.*kubeconfig/s,
  ],
  [{ tokens: [{ pod: 'shop/web', endsMs: nowMs }] }, 'yes', 'tokens', 'warning', /expired.*shop\/web/],
  [{ tokens: [] }, 'yes', 'tokens', 'ok', /kept for 0 pods$/],
  [
    { misconfigured: ['--mirror nosuch: do that'] },
    'yes',
    'options',
    'warning',
    /1 to be put right\n--mirror nosuch: do that/,
  ],
  [
    { needs: [need({ for: 'option', state: 'missing', why: 'too large' })] },
    'yes',
    'options',
    'warning',
    /secrets shop\/s is not held: too large/,
  ],
  [{ needs: [need({ for: 'option' })] }, 'yes', 'options', 'ok', /; 1 resources named are held/],
  [{ isCatalogKnown: false }, 'no', 'discovery', 'failed', /never read/],
  [{ credentials: [] }, 'yes', 'credentials', 'ok', /none has an end/],
  [{ credentials: expires(8 * day) }, 'yes', 'credentials', 'ok', /system:node:edge-1 ends in 8d/],
  [{ credentials: expires(6 * day) }, 'yes', 'credentials', 'warning', /ends in 6d.*renew/s],
  [{ credentials: expires(-3_600_000) }, 'no', 'credentials', 'failed', /EXPIRED 60m ago.*renew/s],
  [{ credentials: expires(-3_600_000, 'edge') }, 'yes', 'credentials', 'warning', /EXPIRED 60m ago.*renew/s],
  [{ credentials: expires(day, 'serving') }, 'yes', 'credentials', 'ok', /ends in 24h/],
  [
    { credentials: unreadable('caller') },
    'no',
    'credentials',
    'failed',
    /the key k cannot be read.*renew the certificate of x/s,
  ],
  [{ credentials: unreadable('edge') }, 'yes', 'credentials', 'warning', /the key k cannot be read/],
  [{ disk: { ...disk, isHealthy: false } }, 'no', 'disk', 'failed', /refuses writes/],
  [{ disk: { ...disk, freeBytes: 63 * mi } }, 'no', 'disk', 'failed', /63Mi free.*make room/s],
  [{ disk: { ...disk, freeBytes: 100 * mi } }, 'yes', 'disk', 'warning', /100Mi free/],
  [{ disk: { ...disk, damage: ['damaged: x'] } }, 'yes', 'disk', 'warning', /damaged: x/],
  [{ disk: { ...disk, freeBytes: undefined } }, 'unknown', 'disk', 'unknown', /not looked at/],
  [{ clockBehindMs: 2 * day }, 'yes', 'clock', 'warning', /2d behind/],
  [{ clockBehindMs: -day }, 'yes', 'clock', 'ok', /not behind/],
]

test('each thing that is not well is named, with what to do, and decides as it should', () => {
  for (const [change, survives, name, state, said] of rows) {
    const found = survivalOf({ ...well, ...change })
    const check = found.checks.find((one) => one.name === name)
    assert.deepEqual([found.survives, check?.state], [survives, state], `${name}: ${JSON.stringify(change)}`)
    assert.match([check?.what, check?.todo, ...(check?.commands ?? [])].filter(Boolean).join('\n'), said)
  }
})

test('what is not ok says what to do, and a sentence is short whatever there is', () => {
  const many = Array.from({ length: 900 }, (_, at) =>
    need({ name: `s${at}`, namespace: `n${at % 7}`, state: 'denied' }),
  )
  const { checks } = survivalOf({ ...well, needs: many })
  for (const { name, what } of checks) assert.ok(what.length < 200, `${name}: ${what}`)
  assert.equal(checks.find(({ name }) => name === 'rights')?.commands?.length, 7, 'a command for each namespace')
})

test('a right is granted to the edge as the API server knows it, else as its credential does; where neither tells no command is made up', () => {
  const account = 'system:serviceaccount:sites:edge-2'
  const edges = 'system:serviceaccounts:ake-edges'
  const credentials = (name: string) => [{ use: 'edge', name } as const]
  const rows: readonly [Partial<SurvivalFacts>, name: string | undefined, flag?: string][] = [
    [{ subject: { name: 'system:serviceaccount:ake-edges:e', groups: [edges] } }, 'secrets', `--group=${edges}`],
    [{ subject: { name: account, groups: [] } }, 'secrets-sites:edge-2', '--serviceaccount=sites:edge-2'],
    [{ subject: { name: 'edge-3', groups: ['sites'] } }, 'secrets-edge-3', '--user=edge-3'],
    [{ subject: { name: "a/b'; $(rm)", groups: [] } }, "secrets-a-b'; $(rm)", "--user=a/b'; $(rm)"],
    [{ subject: undefined, credentials: credentials('edge-4') }, 'secrets-edge-4', '--user=edge-4'],
    [
      { subject: undefined, credentials: credentials(account) },
      'secrets-sites:edge-2',
      '--serviceaccount=sites:edge-2',
    ],
    [{ subject: undefined }, undefined],
  ]
  for (const [facts, name, flag] of rows) {
    const { commands = [] } = survivalOf({ ...well, needs: [denied], ...facts }).checks.find(
      (one) => one.name === 'rights',
    ) as RebootCheck
    const kubectl = 'kubectl() { printf "%s\\n" "$@"; }'
    const words = commands.map((one) => execFileSync('sh', ['-c', `${kubectl}\n${one}`], { encoding: 'utf8' }))
    const made = `ake-edge-reads-${name}`
    const role = ['create', 'role', made, '-n', 'shop', '--verb=get,list,watch', '--resource=secrets']
    const binding = ['create', 'rolebinding', made, '-n', 'shop', `--role=${made}`, flag]
    assert.deepEqual(words, name === undefined ? [] : [`${[...role, ...binding].join('\n')}\n`])
  }
})
