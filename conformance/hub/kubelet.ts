/** A kubelet behind a hub: it is its node to the API server, with everything a node may do, and with nothing else. */
import type { Asked, Seat, Told } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { auditedWrites } from '../nodeidentity/audit.ts'
import { hubUser, type NodeName, podOn, shop } from './objects.ts'
import type { HubbedWorld } from './world.ts'

const [own, other] = ['edge-1', 'edge-2'] as const
const within = `/api/v1/namespaces/${shop}`
const podsOf = (node: NodeName) => `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}&limit=500&resourceVersion=0`
const merging = { 'content-type': 'application/merge-patch+json' }

/** What it reads of its own, also without the cloud. */
export const ownReads: readonly string[] = [
  `/api/v1/nodes/${own}`,
  podsOf(own),
  `${within}/pods/${podOn(own)}`,
  `${within}/secrets/of-${own}`,
  `${within}/configmaps/of-${own}`,
  '/api/v1/services?limit=500&resourceVersion=0',
]

const othersReads: readonly string[] = [
  `/api/v1/nodes/${other}`,
  podsOf(other),
  `${within}/pods/${podOn(other)}`,
  `${within}/secrets/of-${other}`,
  `${within}/configmaps/of-${other}`,
  `${within}/secrets`,
  '/api/v1/secrets?limit=500&resourceVersion=0',
  '/apis/discovery.k8s.io/v1/endpointslices?limit=500&resourceVersion=0',
]

export async function checkKubelet(world: HubbedWorld, findings: Findings): Promise<void> {
  const kubelet = world.at(own, `kubelet ${own}`)
  const straight = world.straight(`kubelet ${own}`)
  await checkWhoami(kubelet, findings, own)
  for (const path of [...ownReads, ...othersReads]) {
    const isOwn = ownReads.includes(path)
    const [told, expected] = [await kubelet.ask(path), await straight.ask(path)]
    findings.equal(expected.status, isOwn ? 200 : 403, `the API server: ${path}`)
    findings.equal(told.status, expected.status, `the kubelet reads ${path} (${told.body.slice(0, 200)})`)
    if (isOwn) findings.equal(shown(told), shown(expected), `the kubelet is shown the same: ${path}`)
    else findings.equal(messageOf(told), messageOf(expected), `the kubelet is told the same: ${path}`)
  }
  await checkWrites(kubelet, findings)
  await checkAudit(world, findings)
  const asAdmin = await kubelet.ask(`/api/v1/nodes/${own}`, { headers: { 'impersonate-user': 'admin' } })
  findings.equal(asAdmin.status, 403, 'the kubelet impersonates nobody')
  findings.equal(messageOf(asAdmin), `a hub passes on no impersonation by node "${own}"`, 'and hears why')
  // The certificate of another node counts for nothing at this edge: its hub stands for one node alone.
  const stranger = world.at(own, `kubelet ${other}`)
  const patch = { method: 'PATCH', headers: merging, body: { metadata: { labels: { stolen: 'yes' } } } }
  const stolen = await stranger.ask(`/api/v1/nodes/${other}`, patch)
  findings.equal(stolen.status, 403, `a write with the certificate of another node (${stolen.body.slice(0, 200)})`)
}

export async function checkWhoami(kubelet: Seat, findings: Findings, node: NodeName): Promise<void> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const told = await kubelet.ask('/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body })
  const { status } = JSON.parse(told.body) as { status?: { userInfo?: { username: string; groups: string[] } } }
  const found = [status?.userInfo?.username, status?.userInfo?.groups.toSorted()]
  findings.equal(found, [`system:node:${node}`, ['system:authenticated', 'system:nodes']], 'who the kubelet is')
}

async function checkWrites(kubelet: Seat, findings: Findings): Promise<void> {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const ready = { conditions: [{ type: 'Ready', status: 'True' }] }
  const patch = (body: object): Asked => ({ method: 'PATCH', headers: merging, body })
  const lease = { metadata: { name: own }, spec: { holderIdentity: own } }
  const cases: readonly (readonly [string, Asked, number])[] = [
    [`/api/v1/nodes/${own}/status`, patch({ status: ready }), 200],
    [`${within}/pods/${podOn(own)}/status`, patch({ status: { ...ready, phase: 'Running' } }), 200],
    [leases, { method: 'POST', body: lease }, 201],
    [`${leases}/${own}`, patch({ spec: { leaseDurationSeconds: 40 } }), 200],
    [`/api/v1/nodes/${other}/status`, patch({ status: ready }), 403],
    [`${within}/pods/${podOn(other)}/status`, patch({ status: { phase: 'Failed' } }), 403],
    [`${within}/configmaps`, { method: 'POST', body: { metadata: { name: 'forbidden' } } }, 403],
  ]
  for (const [path, asked, expected] of cases) {
    const { status, body } = await kubelet.ask(path, asked)
    findings.equal(status, expected, `the kubelet writes ${path} (${body.slice(0, 200)})`)
  }
  const told = await kubelet.ask(`${within}/pods/${podOn(own)}?resourceVersion=0`)
  const { status } = JSON.parse(told.body) as { status?: { phase?: string } }
  findings.equal(status?.phase, 'Running', 'the kubelet reads what it wrote')
}

/** By itself: its state, and Events of Nodes whose edges come. */
const ownWrites: readonly string[] = ['update secrets', 'create events', 'update events', 'patch events']

/** In whose name the hub wrote: as a node, and nothing else by itself. */
async function checkAudit(world: HubbedWorld, findings: Findings): Promise<void> {
  const byHub = (await auditedWrites(world.oracle.dir)).filter(({ user }) => user === hubUser)
  const inOwnName = byHub.filter(({ as, what, code }) => as === undefined && !ownWrites.includes(what) && code < 400)
  findings.equal(inOwnName, [], 'what the hub wrote in its own name')
  const names = new Set(byHub.flatMap(({ as = '' }) => (as === '' ? [] : [as])))
  findings.equal([...names], [`system:node:${own}`], 'in whose name the hub wrote')
  const done = byHub.filter(({ as, code }) => as === `system:node:${own}` && code < 300).map(({ what }) => what)
  const expected = ['create leases', 'patch leases', 'patch nodes/status', 'patch pods/status']
  findings.equal(done.toSorted(), expected, 'what the node wrote, by the audit of the API server')
}

/** Without what a look of another moment shows otherwise. */
function shown({ body }: Told): string {
  const { metadata, items, ...rest } = JSON.parse(body) as { metadata: { name?: string }; items?: object[] }
  return JSON.stringify(items ?? { name: metadata.name, ...rest })
}

export function messageOf({ body }: Told): string {
  try {
    return String((JSON.parse(body) as { message?: string }).message)
  } catch {
    return body.slice(0, 200)
  }
}
