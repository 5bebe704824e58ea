/**
 * What do the rules of callers cost (L29)? 50 callers of one edge with the roles of a small site, over a tunnel in memory: bytes of the link when they are first
 * told and when one of them changes, and the memory that the edge holds for them. The cluster has ten times as many bindings, which
 * must not matter to the edge.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { deflateRawSync } from 'node:zlib'
import { KnownRules } from '../../src/access/knownrules.ts'
import { Rbac } from '../../src/access/rbac/rbac.ts'
import { readSubjectRules, writeSubjectRules } from '../../src/access/rbac/subjectrules.ts'
import { fakeClock } from '../../src/base/fakeclock.test-support.ts'
import type { Caller } from '../../src/kube/caller.ts'
import { encodeToldRules } from '../../src/tunnel/rules/rules.ts'
import type { Figure, Question } from '../bench.ts'

const callers = 50
const namespaces = 40
/** Of TLS and WebSocket, for each message (docs/link.md). */
const messageBytes = 26
const reading = ['get', 'list', 'watch']

function put(
  rbac: Rbac,
  resource: 'clusterroles' | 'clusterrolebindings' | 'roles' | 'rolebindings',
  key: string,
  object: object,
): void {
  rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
}

const callerAt = (at: number): Caller => ({
  ...{ name: `system:serviceaccount:ns-${at % namespaces}:app-${at}`, uid: '' },
  groups: ['system:serviceaccounts', `system:serviceaccounts:ns-${at % namespaces}`, 'system:authenticated'],
})

/** What every caller has in Kubernetes, an account's role in its namespace, and one of a controller for each fifth. */
function cluster(): Rbac {
  const rbac = new Rbac()
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
    const rules = [
      { verbs: reading, apiGroups: [''], resources: ['configmaps', 'secrets'] },
      { verbs: [...reading, 'create', 'update'], apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
    ]
    put(rbac, 'roles', `${namespace}/${name}`, { rules })
    put(rbac, 'rolebindings', `${namespace}/${name}`, { roleRef: { kind: 'Role', name }, subjects })
    if (at % 5 === 0)
      put(rbac, 'clusterrolebindings', name, { roleRef: { kind: 'ClusterRole', name: 'controller' }, subjects })
  }
  return rbac
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}

function measure(): Figure[] {
  const rbac = cluster()
  const all = Array.from({ length: callers }, (_, at) => callerAt(at))
  const startedMs = performance.now()
  const texts = all.map((caller) => writeSubjectRules(rbac, caller) ?? '')
  const madeMs = performance.now() - startedMs
  const messages = texts.map((text, at) => {
    const { name, groups } = all[at] as Caller
    return (
      encodeToldRules({ saying: 'rules', current: 1, sentence: '', name, groups, rules: deflateRawSync(text) }).length +
      messageBytes
    )
  })
  const behind = {
    put: () => undefined,
    remove: () => undefined,
    replace: () => undefined,
    flush: async () => undefined,
  }
  const before = heapUsed()
  const reachability = { state: 'reachable', observe: () => () => undefined } as const
  const known = new KnownRules({ clock: fakeClock(), behind: behind as never, reachability, stored: [] })
  for (const [at, text] of texts.entries()) known.told(all[at] as Caller, Buffer.from(text).toString(), () => 0)
  const kept = heapUsed()
  for (const caller of all) known.of(caller)
  const judged = heapUsed()
  if (texts.some((text) => readSubjectRules(text) === undefined)) throw new Error('rules that cannot be read')
  const bytes = messages.reduce((sum, one) => sum + one, 0)
  const figure = (name: string, unit: string, ake: number): Figure => ({ name, unit, measured: { ake } })
  const of = `rules of ${callers} callers`
  return [
    figure(`${of}, told over a link`, 'KB', bytes / 1_000),
    figure('rules of one caller, told when they change', 'bytes', Math.round(bytes / callers)),
    figure(`${of}, at the edge as they were told`, 'KB', (kept - before) / 1_000),
    figure(`${of}, at the edge once judged by`, 'KB', (judged - before) / 1_000),
    figure('rules of one caller, made at the hub of 1,100 bindings', 'µs', Math.round((madeMs * 1_000) / callers)),
  ]
}

export const hubrules: Question = { name: 'hubrules', ask: () => Promise.resolve(measure()) }
