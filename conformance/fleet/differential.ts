/** The same question of the same caller, to the edge behind its hub and to the API server itself. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Asked, Seat, Told } from '../asking.ts'
import { differences, read } from '../compare.ts'
import type { Answer } from '../exchange.ts'
import type { Findings } from '../findings.ts'
import { podOn, shop, shopSlices, slices } from '../hub/objects.ts'
import { Mapping } from '../mapping.ts'

const within = `/api/v1/namespaces/${shop}`
const maps = `${within}/configmaps`
const secrets = `${within}/secrets`
const authorization = '/apis/authorization.k8s.io/v1'
const tried = '?dryRun=All'
const mapBody = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'tried' }, data: { a: 'b' } }
const putBody = (name: string) => ({ ...mapBody, metadata: { name } })
const mergePatch = { 'content-type': 'application/merge-patch+json' }

function mayI(verb: string, resource: string, namespace = shop, group = ''): Asked {
  return { method: 'POST', body: { spec: { resourceAttributes: { verb, resource, namespace, group } } } }
}

/** A watch that its server ends; and one that begins with everything there is. */
const brief = 'watch=true&timeoutSeconds=1'
const initially = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

/** To a container that no kubelet runs: who may is told that, by the API server. */
const spdy = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' }
const webSocket = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
  ...{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-protocol': 'v5.channel.k8s.io' },
}
const upgrades: readonly (readonly [path: string, asked: Asked])[] = [
  [`${within}/pods/${podOn('edge-2')}/exec?command=ls&stdout=true`, { method: 'POST', headers: spdy }],
  [`${within}/pods/${podOn('edge-2')}/exec?command=ls&stdout=true`, { headers: webSocket }],
  [`${within}/pods/${podOn('edge-2')}/attach?stdout=true`, { method: 'POST', headers: spdy }],
  [`${within}/pods/${podOn('edge-2')}/portforward`, { method: 'POST', headers: spdy }],
]

/** Nothing of it changes the cluster. */
export const questions: readonly (readonly [path: string, asked?: Asked])[] = [
  ['/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: {} }],
  [`${authorization}/selfsubjectaccessreviews`, mayI('list', 'configmaps')],
  [`${authorization}/selfsubjectaccessreviews`, mayI('list', 'secrets')],
  [`${authorization}/selfsubjectaccessreviews`, mayI('watch', 'endpointslices', '', 'discovery.k8s.io')],
  [`${authorization}/selfsubjectrulesreviews`, { method: 'POST', body: { spec: { namespace: shop } } }],
  [
    `${authorization}/subjectaccessreviews`,
    {
      ...mayI('list', 'pods'),
      body: { spec: { user: 'bob', resourceAttributes: { verb: 'list', resource: 'pods' } } },
    },
  ],
  [maps],
  [`${maps}?limit=1`],
  [`${maps}?resourceVersion=0&labelSelector=none%3Dhere`],
  [`${maps}/of-edge-1`],
  [`${maps}/of-edge-2`],
  [`${maps}/none`],
  [`${maps}${tried}`, { method: 'POST', body: mapBody }],
  [`${maps}/of-edge-2${tried}`, { method: 'PATCH', headers: mergePatch, body: { data: { c: 'd' } } }],
  [`${maps}/of-edge-2${tried}`, { method: 'PUT', body: putBody('of-edge-2') }],
  [`${maps}/none${tried}`, { method: 'PUT', body: putBody('none') }],
  [`${maps}/of-edge-2${tried}`, { method: 'DELETE' }],
  [`${maps}${tried}`, { method: 'DELETE' }],
  [secrets],
  [`${secrets}/of-edge-1`],
  [`${secrets}/of-edge-2`],
  [`${within}/pods`],
  [`${within}/pods/${podOn('edge-2')}/log`],
  ...upgrades,
  [`${maps}?${brief}`],
  [`${maps}?${brief}&${initially}`],
  [`${within}/services?${brief}&fieldSelector=metadata.name%3Dnone`],
  [`${within}/services?resourceVersion=0`],
  ['/api/v1/nodes/edge-1'],
  ['/api/v1/nodes/edge-2'],
  [`/api/v1/nodes/edge-1/status${tried}`, { method: 'PATCH', headers: mergePatch, body: {} }],
  [slices],
  [`${shopSlices}/web`],
  ['/apis/rbac.authorization.k8s.io/v1/clusterroles'],
  ['/version'],
  ['/metrics/slis'],
]

/** `kubectl --as-user-extra`, of a key that no role of a hub has. */
export const extraHeader = 'Impersonate-Extra-Example.com%2fteam'

/** Whom `lead` asks to be, each over the same few questions. */
export const impersonations: readonly Readonly<Record<string, string>>[] = [
  { 'Impersonate-User': 'bob' },
  { 'Impersonate-User': 'bob', 'Impersonate-Group': 'qa' },
  { 'Impersonate-User': 'bob', 'Impersonate-Group': 'ops' },
  { 'Impersonate-User': `system:serviceaccount:${shop}:keeper` },
  { 'Impersonate-User': 'mary', 'Impersonate-Group': 'site' },
  { 'Impersonate-User': 'system:node:edge-2' },
  { 'Impersonate-User': 'admin', 'Impersonate-Group': 'system:masters' },
  { 'Impersonate-Group': 'qa' },
  { 'Impersonate-User': 'bob', 'Impersonate-Uid': 'uid-of-bob' },
  { 'Impersonate-User': 'bob', 'Impersonate-Uid': 'uid-of-another' },
  { 'Impersonate-User': 'bob', [extraHeader]: 'green' },
]

export const asOthers: readonly (readonly [path: string, asked?: Asked])[] = [
  ['/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: {} }],
  [maps],
  [`${within}/pods`],
  [`${secrets}/of-edge-1`],
  [`${maps}${tried}`, { method: 'POST', body: mapBody }],
  [`${maps}/of-edge-1${tried}`, { method: 'PUT', body: putBody('of-edge-1') }],
  [`${maps}?${brief}&${initially}`],
]

type Place = { readonly who: string; readonly here: Seat; readonly straight: Seat }

/**
 * Whether both said the same, which is told as one finding: status, headers and the whole body, without what differs from one moment to the
 * next; and of objects that are in the cluster the very uids and versions.
 */
export async function compareOne(
  findings: Findings,
  { who, here, straight }: Place,
  [path, asked = {}]: readonly [path: string, asked?: Asked],
): Promise<void> {
  // At once: a watch takes its time.
  const [told, expected] = await Promise.all([online(here, path, asked), straight.ask(path, asked)])
  const isImpersonating = Object.keys(asked.headers ?? {}).some((name) => name.startsWith('Impersonate'))
  const seen = (one: Told) => ({ ...wholeOf(path, one, isImpersonating), identities: identitiesIn(one.body) })
  const found = differences(seen(expected), seen(told))
  const what = `${who} ${asked.method ?? 'GET'} ${path} ${JSON.stringify(asked.headers ?? {})}`
  findings.check(
    found.length === 0,
    what,
    `${expected.status} and ${told.status}: ${JSON.stringify(found.slice(0, 3))}`,
  )
}

/** On a busy machine an answer may take longer than an edge waits, which then speaks of the cloud as away for a moment: that is another proof's. */
async function online(here: Seat, path: string, asked: Asked): Promise<Told> {
  for (let tries = triesMax; ; tries--) {
    const told = await here.ask(path, asked)
    const isAway = `${told.body} ${String(told.headers.warning)}`.includes('the API server cannot be')
    if (tries === 0 || !isAway) return told
    await pause(againMs)
  }
}

const triesMax = 5
const againMs = 1_000

type Whole = { readonly body?: unknown; readonly [part: string]: unknown }

function wholeOf(path: string, told: Told, isImpersonating: boolean): Whole {
  const answer = { ...told, headers: told.headers as Answer['headers'] }
  const whole: Whole = read(answer, new Mapping(Date.now()), /[?&]watch=/.test(path))
  // Figures of a process.
  if (path.startsWith('/metrics') && told.status === 200) return { ...whole, body: '' }
  const { body } = whole
  if (typeof body !== 'object' || body === null) return whole
  const { kind = '', status } = body as { readonly kind?: string; readonly status?: unknown }
  if (kind.endsWith('Review')) return { ...whole, body: { ...body, status: reviewed(status) } }
  // Of an impersonation refused the words depend on what was asked before.
  if (kind === 'Status' && isImpersonating) return { ...whole, body: { ...body, message: '', details: {} } }
  return whole
}

type Kept = { readonly metadata?: { readonly name?: string; readonly uid?: string; readonly resourceVersion?: string } }

/** Of one object, of a list, or of the events of a watch, in any order. What was made up for a request that was only tried has none. */
function identitiesIn(body: string): readonly string[] {
  const documents = body.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as Kept & { readonly items?: readonly Kept[]; readonly object?: Kept }]
    } catch {
      return []
    }
  })
  const all = documents.flatMap((one) => one.items ?? [one.object ?? one])
  return all
    .flatMap(({ metadata: { name, uid, resourceVersion } = {} }) =>
      uid === undefined || name === 'tried' ? [] : [`${name} ${uid} ${resourceVersion}`],
    )
    .toSorted()
}

/** A hub names nodes and accounts alone, so that the API server does not hear which certificate they have. */
function reviewed(status: unknown): unknown {
  const { resourceRules, nonResourceRules } = status as { resourceRules?: object[]; nonResourceRules?: object[] }
  // The API server goes through bindings in any order.
  if (resourceRules !== undefined)
    return [resourceRules, nonResourceRules].map((all) => (all ?? []).map((one) => JSON.stringify(one)).sort())
  const text = JSON.stringify(status)
  const { userInfo } = status as {
    userInfo?: { username: string; uid?: string; groups: string[]; extra?: Record<string, unknown> }
  }
  if (userInfo === undefined) return text
  const { username, uid = '', groups, extra = {} } = userInfo
  const isAlone = /^system:(node|serviceaccount):/.test(username)
  const kept = Object.entries(extra).filter(([key]) => !isAlone || !key.endsWith('credential-id'))
  return [username, uid, [...groups].sort(), kept.sort()]
}
