/**
 * What do the rules of callers cost (L29)? 50 callers of one edge with the roles of a small site, both ends as they run (`upstream/linked`, `hub/access`)
 * over a tunnel in memory: bytes of the link when they are first told, the questions and the tokens that go with them included, and when those of one caller change; what the
 * edge and the hub hold for them. The cluster has ten times as many callers, which must not matter to the edge.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { KnownRules } from '../../src/access/knownrules.ts'
import { Rbac } from '../../src/access/rbac/rbac.ts'
import { writeSubjectRules } from '../../src/access/rbac/subjectrules.ts'
import { fakeClock } from '../../src/base/fakeclock.test-support.ts'
import { type MirroredRoles, RulesTelling } from '../../src/hub/access/rulestelling.ts'
import { rulesLimits } from '../../src/hub/callers/ruleslimits.ts'
import type { Caller } from '../../src/kube/caller.ts'
import { TunnelPair } from '../../src/tunnel/pair.test-support.ts'
import { LinkedRules } from '../../src/upstream/linked/linkedrules.ts'
import type { LiveLink } from '../../src/upstream/linked/livelink.ts'
import type { Figure, Question } from '../bench.ts'

const callers = 50
const namespaces = 40
/** Of TLS and WebSocket, for each message (docs/link.md). */
const messageBytes = 26
/** Of a pod's service account, about. */
const tokenBytes = 1_000
const reading = ['get', 'list', 'watch']

let bindings = 0

function put(
  rbac: Rbac,
  resource: 'clusterroles' | 'clusterrolebindings' | 'roles' | 'rolebindings',
  key: string,
  object: object,
): void {
  if (resource.endsWith('bindings')) bindings++
  rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
}

const rulesOfAccount = [
  { verbs: reading, apiGroups: [''], resources: ['configmaps', 'secrets'] },
  { verbs: [...reading, 'create', 'update'], apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
]

const callerAt = (at: number): Caller => ({
  ...{ name: `system:serviceaccount:ns-${at % namespaces}:app-${at}`, uid: '' },
  groups: ['system:serviceaccounts', `system:serviceaccounts:ns-${at % namespaces}`, 'system:authenticated'],
})

/** What every caller has in Kubernetes, an account's role in its namespace, and one of a controller for each fifth. */
function fill(rbac: Rbac): void {
  const everyone = { kind: 'Group', name: 'system:authenticated' }
  const open = [
    '/api',
    '/api/*',
    '/apis',
    '/apis/*',
    '/healthz',
    '/livez',
    '/openapi',
    '/openapi/*',
    '/readyz',
    '/version',
    '/version/',
  ]
  put(rbac, 'clusterroles', 'system:discovery', { rules: [{ verbs: ['get'], nonResourceURLs: open }] })
  put(rbac, 'clusterroles', 'system:basic-user', {
    rules: [
      {
        verbs: ['create'],
        apiGroups: ['authorization.k8s.io'],
        resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      },
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
    ],
  })
  for (const name of ['system:discovery', 'system:basic-user'])
    put(rbac, 'clusterrolebindings', name, { roleRef: { kind: 'ClusterRole', name }, subjects: [everyone] })
  const controller = ['pods', 'services', 'configmaps', 'endpoints', 'nodes'].map((one) => ({
    verbs: reading,
    apiGroups: [''],
    resources: [one],
  }))
  put(rbac, 'clusterroles', 'controller', { rules: controller })
  for (let at = 0; at < 10 * callers; at++) {
    const [, , namespace = '', name = ''] = callerAt(at).name.split(':')
    const subjects = [{ kind: 'ServiceAccount', namespace, name }]
    put(rbac, 'roles', `${namespace}/${name}`, { rules: rulesOfAccount })
    put(rbac, 'rolebindings', `${namespace}/${name}`, { roleRef: { kind: 'Role', name }, subjects })
    if (at % 5 === 0)
      put(rbac, 'clusterrolebindings', name, { roleRef: { kind: 'ClusterRole', name: 'controller' }, subjects })
  }
}

/** Of this process, with what lies outside of V8's heap, after everything that can be collected was. */
async function memoryUsed(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let times = 0; times < 5; times++) {
    // What was ended goes in a turn of its own.
    await new Promise((done) => setImmediate(done))
    collect()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const tokenOf = (at: number) => `${at}-`.padEnd(tokenBytes, 'x')

/** A hub that hears of changes, and knows each caller by its token. */
function openHub(rbac: Rbac) {
  const clock = fakeClock()
  const listeners = new Set<() => void>()
  const roles: MirroredRoles = {
    rbac,
    isCurrent: () => true,
    observe: (changed) => {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
  }
  const known = new Map(Array.from({ length: callers }, (_, at) => [tokenOf(at), callerAt(at)]))
  const telling = new RulesTelling({
    ...{ roles, clock, reviewed: { has: () => false } },
    certificates: { judge: () => ({ sentence: 'there are none here', isForeign: true }) },
    recheckCaller: async (identity) => (identity.kind === 'token' ? known.get(identity.token) : undefined) ?? 'refused',
  })
  const changed = () => {
    for (const hear of listeners) hear()
  }
  void telling.run(new AbortController().signal)
  clock.advance(rulesLimits.lookEveryMs)
  return { telling, clock, changed }
}

/** An edge with a tunnel to that hub, which sees all callers. */
async function openEdge({ telling, clock }: ReturnType<typeof openHub>, name: string, told: Told) {
  const pair = new TunnelPair({ hubAccepts: telling.acceptFor({ name }, ({ stream }) => stream.destroy()) })
  const live = { streams: pair.edge, welcome: { trustsEdges: false }, heardAt: 0 } as unknown as LiveLink
  const link = { current: live, observe: () => () => undefined }
  let heard = 0
  const linked = new LinkedRules({
    ...{ link, clock },
    rules: {
      told: (caller, text, heardAt) => {
        if (text === undefined) throw new Error(`nothing is told of ${caller.name}`)
        heard++
        told(caller, text, heardAt)
      },
      stands: async () => undefined,
    },
  })
  const until = async (count: number) => {
    for (let turns = 0; heard < count; turns++) {
      if (turns > turnsMax) throw new Error(`the rules of ${heard} callers were told, and not of ${count}`)
      await new Promise((done) => setImmediate(done))
    }
  }
  for (let at = 0; at < callers; at++) linked.seen({ kind: 'token', token: tokenOf(at) }, callerAt(at))
  await until(callers)
  return { pair, linked, until }
}

type Told = ConstructorParameters<typeof LinkedRules>[0]['rules']['told']
/** Far more than it takes, and no wait without an end. */
const turnsMax = 100_000

/** As they travel, by both sides, with what each message takes besides. */
function sentBytes({ sent }: TunnelPair): { readonly edge: number; readonly hub: number } {
  const of = ({ frames, bytes }: { frames: number; bytes: number }) => bytes + frames * messageBytes
  return { edge: of(sent.edge), hub: of(sent.hub) }
}

/** The second time: what is compiled, and kept for once, is not counted. */
async function measure(): Promise<Figure[]> {
  await measureOnce()
  return await measureOnce()
}

async function measureOnce(): Promise<Figure[]> {
  bindings = 0
  const rbac = new Rbac()
  fill(rbac)
  const hub = openHub(rbac)
  const all = Array.from({ length: callers }, (_, at) => callerAt(at))
  const startedMs = performance.now()
  for (const caller of all) writeSubjectRules(rbac, caller)
  const madeMs = performance.now() - startedMs

  // One edge after the other with the same callers. The first two keep nothing of what they hear: the hub makes the rules for the first, and has them for the second,
  // so that this one shows what streams take; the third keeps them, as edges do.
  const keepingNothing = () => undefined
  const before = await memoryUsed()
  const first = await openEdge(hub, 'edge-1', keepingNothing)
  const made = await memoryUsed()
  const second = await openEdge(hub, 'edge-2', keepingNothing)
  const shared = await memoryUsed()
  const streams = shared - made
  const behind = {
    put: () => undefined,
    remove: () => undefined,
    replace: () => undefined,
    flush: async () => undefined,
  }
  const reachability = { state: 'reachable', observe: () => () => undefined } as const
  const known = new KnownRules({ clock: hub.clock, behind: behind as never, reachability, stored: [] })
  const edge = await openEdge(hub, 'edge-3', (caller, text, heardAt) => known.told(caller, text, heardAt))
  const kept = await memoryUsed()
  for (const caller of all) if (known.of(caller) === undefined) throw new Error('rules that cannot be read')
  const judged = await memoryUsed()

  const told = sentBytes(edge.pair)
  const [, , namespace = '', name = ''] = callerAt(7).name.split(':')
  put(rbac, 'roles', `${namespace}/${name}`, { rules: rulesOfAccount.slice(1) })
  hub.changed()
  hub.clock.advance(rulesLimits.gatherMs)
  await edge.until(callers + 1)
  const after = sentBytes(edge.pair)
  for (const { pair } of [first, second, edge]) pair.cut()

  const figure = (what: string, unit: string, ake: number): Figure => ({ name: what, unit, measured: { ake } })
  const of = `rules of ${callers} callers`
  return [
    figure(`${of}, told over a link`, 'KB', told.hub / 1_000),
    figure(`${of}, asked for with their tokens`, 'KB', told.edge / 1_000),
    figure('rules of one caller, told when they change', 'bytes', after.hub - told.hub + after.edge - told.edge),
    figure(`${of}, at the edge as they were told`, 'KB', (kept - shared - streams) / 1_000),
    figure(`${of}, at the edge once judged by`, 'KB', (judged - shared - streams) / 1_000),
    figure(`${of}, at the hub, once for all edges`, 'KB', (made - before - streams) / 1_000),
    figure(`${of}, their streams over a link, both ends`, 'KB', streams / 1_000),
    figure(`rules of one caller, made at the hub of ${bindings} bindings`, 'µs', (madeMs * 1_000) / callers),
  ]
}

export const hubrules: Question = { name: 'hubrules', ask: measure }
