/** The same question of the same caller, to the edge behind its hub and to the API server itself. */
import type { Asked, Seat, Told } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { podOn, shop, shopSlices, slices } from '../hub/objects.ts'

const within = `/api/v1/namespaces/${shop}`
const maps = `${within}/configmaps`
const secrets = `${within}/secrets`
const authorization = '/apis/authorization.k8s.io/v1'
const tried = '?dryRun=All'
const mapBody = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'tried' }, data: { a: 'b' } }
const mergePatch = { 'content-type': 'application/merge-patch+json' }

function mayI(verb: string, resource: string, namespace = shop, group = ''): Asked {
  return { method: 'POST', body: { spec: { resourceAttributes: { verb, resource, namespace, group } } } }
}

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
  [`${maps}/of-edge-2${tried}`, { method: 'DELETE' }],
  [`${maps}${tried}`, { method: 'DELETE' }],
  [secrets],
  [`${secrets}/of-edge-1`],
  [`${secrets}/of-edge-2`],
  [`${within}/pods`],
  [`${within}/pods/${podOn('edge-2')}/log`],
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
]

export const asOthers: readonly (readonly [path: string, asked?: Asked])[] = [
  ['/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: {} }],
  [maps],
  [`${within}/pods`],
  [`${secrets}/of-edge-1`],
  [`${maps}${tried}`, { method: 'POST', body: mapBody }],
]

type Place = { readonly who: string; readonly here: Seat; readonly straight: Seat }

/** Whether both said the same, which is told as one finding. Of an impersonation refused the words depend on what was asked before. */
export async function compareOne(
  findings: Findings,
  { who, here, straight }: Place,
  [path, asked = {}]: readonly [path: string, asked?: Asked],
): Promise<void> {
  const [told, expected] = [await here.ask(path, asked), await straight.ask(path, asked)]
  const isImpersonating = Object.keys(asked.headers ?? {}).some((name) => name.startsWith('Impersonate'))
  const shapes = [told, expected].map((one) => shapeOf(one, isImpersonating)) as [string, string]
  findings.equal(shapes[0], shapes[1], `${who} ${asked.method ?? 'GET'} ${path} ${JSON.stringify(asked.headers ?? {})}`)
}

type Document = {
  readonly kind?: string
  readonly reason?: string
  readonly message?: string
  readonly items?: readonly { readonly metadata: { readonly uid: string; readonly resourceVersion: string } }[]
  readonly metadata?: { readonly uid?: string; readonly resourceVersion?: string; readonly name?: string }
  readonly status?: unknown
}

/** What does not differ from one moment to the next. */
function shapeOf({ status, body }: Told, isImpersonating: boolean): string {
  let found: Document
  try {
    found = JSON.parse(body) as Document
  } catch {
    return `${status} ${status === 200 ? 'text' : body.slice(0, 200)}`
  }
  const { kind, reason, message, items, metadata } = found
  if (kind === 'Status') return JSON.stringify([status, reason, isImpersonating ? '' : message])
  if (items !== undefined) {
    const all = items.map((one) => `${one.metadata.uid} ${one.metadata.resourceVersion}`).sort()
    return JSON.stringify([status, kind, all])
  }
  if (kind?.endsWith('Review') === true) return JSON.stringify([status, kind, reviewed(found.status)])
  return JSON.stringify([status, kind, metadata?.name, isNew(body) ? '' : metadata?.uid])
}

/** Made up for the answer to a request that was only tried. */
function isNew(body: string): boolean {
  return body.includes('"name":"tried"')
}

/** A hub names nodes alone, so that the API server does not hear which certificate a kubelet has. */
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
  const isNode = username.startsWith('system:node:')
  const kept = Object.entries(extra).filter(([key]) => !isNode || !key.endsWith('credential-id'))
  return [username, uid, [...groups].sort(), kept.sort()]
}
