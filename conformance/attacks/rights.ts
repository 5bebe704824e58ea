/** Rights that were taken away, narrowed or only alike: what a caller is shown by an edge while the cloud can be asked. */
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { Seat } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { ask } from '../oracle.ts'
import { type Attacked, lastTime, rbac, space, type World } from './world.ts'

const secrets = `/api/v1/namespaces/${space}/secrets`
const configmaps = `/api/v1/namespaces/${space}/configmaps`
const reading = (...resources: string[]) => [{ apiGroups: [''], resources, verbs: ['get', 'list', 'watch'] }]

/** I5: so long a decision counts while the API server is there, and a moment for the question and a busy machine. */
const decisionMsMax = 10_000 + 2_000
/** So long a token counts without having been seen by the API server again. */
const tokenMsMax = 30_000 + 2_000
/** A change of a role that the edge sees by its own watch is acted upon at once: a fraction of what it would take otherwise. */
const atOnceMs = 5_000

export async function attackRights(world: World, edge: Attacked, findings: Findings): Promise<void> {
  await world.make(secrets, { metadata: { name: 'early' }, stringData: { word: 'hidden' } })
  await world.make(configmaps, { metadata: { name: 'c1', labels: { app: 'x' } }, data: { a: 'b' } })
  const parts: readonly (readonly [string, () => Promise<void>])[] = [
    ['a binding is removed', () => withdrawn(world, edge, findings)],
    ['a binding is removed under a flood of invented tokens', () => flooded(world, edge, findings)],
    ['one of two tokens is revoked', () => revoked(world, edge, findings)],
    ['a token narrowed by its extra', () => narrowed(world, edge, findings)],
    ['an edge that does not see the roles, and a caller who was silent', () => silent(world, findings)],
    ['a binding is removed while the edge is down', () => fromDisk(world, findings)],
  ]
  // They mostly wait, and each has callers of its own.
  await Promise.all(parts.map(([name, body]) => findings.part(name, body)))
}

async function withdrawn(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const seat = edge.seat({ token: await world.account('withdrawn', reading('secrets')) })
  for (const path of [secrets, `${secrets}/early`, `${secrets}?resourceVersion=0`]) {
    await until(async () => (await seat.ask(path)).status === 200, `${path} is mirrored and allowed`, { everyMs: 50 })
  }
  const watch = await openWatch(seat, `${secrets}?watch=1&resourceVersion=0`)
  await world.remove(`${rbac}/namespaces/${space}/rolebindings/withdrawn`)
  const removedMs = performance.now()
  await world.make(secrets, { metadata: { name: 'after-the-removal' }, stringData: { word: 'hidden' } })
  const lasts = await Promise.all(
    [secrets, `${secrets}/early`, `${secrets}?resourceVersion=0`].map((path) =>
      lastTime({ seat, path, forMs: decisionMsMax + 3_000 }, ({ status }) => status === 200),
    ),
  )
  for (const last of lasts) {
    findings.check((last ?? 0) < decisionMsMax, '[I5] a withdrawn right is not used any more', `${last} ms later`)
  }
  findings.check(watch.endedMs() !== undefined, 'a watch of a caller who lost the right is ended')
  const endedMs = (watch.endedMs() ?? Number.POSITIVE_INFINITY) - removedMs
  findings.check(endedMs < atOnceMs, 'and at once, where the edge sees the roles', `${Math.round(endedMs)} ms`)
  findings.check(watch.clean(), 'by a clean end of its stream')
  findings.equal((await seat.watch(`${secrets}?watch=1`, 500)).status, 403, 'and its next watch is refused')
}

/** Nothing tells this edge of the change, and nobody asked since: the decision it holds is simply old. */
async function silent(world: World, findings: Findings): Promise<void> {
  const edge = await world.edge('blind', { blind: true })
  const seat = edge.seat({ token: await world.account('silent', reading('secrets')) })
  const paths = [secrets, `${secrets}?resourceVersion=0`, `${secrets}/early`]
  for (const path of paths) {
    await until(async () => (await seat.ask(path)).status === 200, 'it may read', { everyMs: 50 })
  }
  await world.remove(`${rbac}/namespaces/${space}/rolebindings/silent`)
  await pause(decisionMsMax)
  for (const path of paths) findings.equal((await seat.ask(path)).status, 403, `[I5] an old allowance of ${path}`)
}

/** What was allowed before a restart is asked again before its first use. */
async function fromDisk(world: World, findings: Findings): Promise<void> {
  const edge = await world.edge('restarted', { blind: true })
  const token = await world.account('restarted', reading('secrets'))
  const before = edge.seat({ token })
  const path = `${secrets}?resourceVersion=0`
  await until(async () => (await before.ask(path)).status === 200, 'it may read', { everyMs: 50 })
  // What was learned is written a little later.
  await pause(5_000)
  await edge.restart({
    meanwhile: () => world.remove(`${rbac}/namespaces/${space}/rolebindings/restarted`),
  })
  await edge.untilCloudIs('reachable')
  findings.equal((await edge.seat({ token }).ask(path)).status, 403, '[I5] an allowance from the disk')
}

async function flooded(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const seat = edge.seat({ token: await world.account('flooded', reading('secrets')) })
  await until(async () => (await seat.ask(secrets)).status === 200, 'it may read', { everyMs: 50 })
  const quit = new AbortController()
  const floods = Array.from({ length: 40 }, async (_, at) => {
    for (let turn = 0; !quit.signal.aborted; turn++) {
      const invented = edge.seat({ token: `invented-${at}-${turn}` })
      await invented.ask(secrets).catch(() => undefined)
      invented.close()
    }
  })
  try {
    await pause(2_000)
    await world.remove(`${rbac}/namespaces/${space}/rolebindings/flooded`)
    const last = await lastTime({ seat, path: secrets, forMs: decisionMsMax + 3_000 }, ({ status }) => status === 200)
    findings.check((last ?? 0) < decisionMsMax, '[I5] known callers are asked about first', `${last} ms later`)
  } finally {
    quit.abort()
    await Promise.all(floods)
  }
}

async function revoked(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const kept = await world.account('two-tokens', reading('configmaps'))
  const anchor = { metadata: { name: 'anchor' }, data: {} }
  const { metadata } = await world.make<{ metadata: { uid: string } }>(secrets, anchor)
  const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name: 'anchor', uid: metadata.uid }
  const revocable = await world.oracle.tokenFor(space, 'two-tokens', { boundObjectRef })
  const [one, other] = [edge.seat({ token: kept }), edge.seat({ token: revocable })]
  for (const seat of [one, other]) {
    await until(async () => (await seat.ask(configmaps)).status === 200, 'both read', { everyMs: 50 })
  }
  await world.remove(`${secrets}/anchor`)
  const begunMs = performance.now()
  const [last, lastKept] = await Promise.all(
    [other, one].map((seat) =>
      lastTime({ seat, path: configmaps, forMs: tokenMsMax + 3_000 }, ({ status }) => status === 200),
    ),
  )
  // kube-apiserver itself remembers a token it has seen for 10 s.
  findings.check((last ?? 0) < tokenMsMax + 10_000, 'a revoked token ends, its sibling in use or not', `${last} ms`)
  findings.check((lastKept ?? 0) > performance.now() - begunMs - 5_000, 'and the sibling reads on', `${lastKept} ms`)
  findings.equal((await other.ask(configmaps)).status, 401, 'the revoked one is unauthorized')
}

/** As by an authenticator that knows scopes: the same user, one of whose tokens may do less. */
async function narrowed(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const full = await world.account('scoped', reading('configmaps'))
  const narrow = await world.oracle.tokenFor(space, 'scoped', { expirationSeconds: 3_601 })
  const isReview = (path: string) => path.endsWith('/selfsubjectreviews')
  const stop = world.scripted.script(({ token, path, method }) => {
    if (token !== narrow) return undefined
    if (isReview(path)) return { kind: 'rewrite', made: (body) => withExtra(body, 'scopes.example.com', ['none']) }
    if (path.endsWith('/selfsubjectaccessreviews')) return { kind: 'rewrite', made: denied }
    if (method === 'GET' && path.startsWith(configmaps)) return { kind: 'answer', status: 403, body: forbidden }
    return undefined
  })
  try {
    const [owner, limited] = [edge.seat({ token: full }), edge.seat({ token: narrow })]
    await until(async () => (await owner.ask(configmaps)).status === 200, 'the owner reads', { everyMs: 50 })
    for (let round = 0; round < 3; round++) {
      findings.equal((await owner.ask(configmaps)).status, 200, 'the owner is answered')
      const { status, body } = await limited.ask(`${configmaps}?resourceVersion=0`)
      findings.check(status === 403, '[I2] a token narrowed by its extra has not its owner’s rights', body)
    }
  } finally {
    stop()
  }
}

/** A certificate that is only alike, a permission and its parts, a token that the API server does not renew. */
export async function attackNames(world: World, edge: Attacked, findings: Findings): Promise<void> {
  await findings.part('a permission covers its parts', () => partsOf(world, edge, findings))
  await findings.part('a kept token meets a refusal', () => refusedToken(world, edge, findings))
}

async function partsOf(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const name = `${space}-everywhere`
  const token = await world.account('everywhere', [])
  await world.make(`${rbac}/clusterroles`, { metadata: { name }, rules: reading('configmaps') })
  await world.make(`${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name: 'everywhere', namespace: space }],
  })
  const seat = edge.seat({ token })
  const everywhere = '/api/v1/configmaps?resourceVersion=0'
  await until(async () => (await seat.ask(everywhere)).status === 200, 'it lists everywhere', { everyMs: 50 })
  await pause(1_000)
  const heal = world.scripted.script(() => ({ kind: 'answer', status: 503, headers: { 'retry-after': '1' } }))
  try {
    await edge.untilCloudIsAway()
    for (const path of [configmaps, `${configmaps}?labelSelector=app%3Dx`, '/api/v1/configmaps?labelSelector=app']) {
      findings.equal((await seat.ask(path)).status, 200, `offline, allowed everywhere: ${path}`)
    }
    findings.equal((await seat.ask(secrets)).status, 403, 'and nothing else')
  } finally {
    heal()
    await edge.untilCloudIs('reachable')
  }
}

async function refusedToken(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] }]
  const seat = edge.seat({ token: await world.account('minter', rules) })
  await world.make(`/api/v1/namespaces/${space}/serviceaccounts`, { metadata: { name: 'short-lived' } })
  const path = `/api/v1/namespaces/${space}/serviceaccounts/short-lived/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const request = () => seat.ask(path, { method: 'POST', body })
  findings.equal((await request()).status, 201, 'a token is issued')
  await world.remove(`/api/v1/namespaces/${space}/serviceaccounts/short-lived`)
  findings.equal((await request()).status, 404, 'its account is gone')
  const heal = world.scripted.script(() => ({ kind: 'answer', status: 503 }))
  try {
    await edge.untilCloudIsAway()
    const { status } = await request()
    findings.check(status !== 201, 'and the kept one is not handed out any more', status)
  } finally {
    heal()
    await edge.untilCloudIs('reachable')
  }
}

/**
 * A certificate of the same common name is not yet the node whose credential goes up (straight to the API server: certificates end at
 * the script): it reads what the API server itself gives it, and writes nothing.
 */
export async function attackCertificates(world: World, findings: Findings): Promise<void> {
  const name = 'system:node:attacked'
  const { oracle } = world
  const own = await oracle.nodeCredential('attacked')
  const alike = await oracle.userCredential(name, ['system:nodes', 'another'])
  const poor = await oracle.userCredential(name, [])
  await ask(oracle, '/api/v1/nodes', { method: 'POST', body: { metadata: { name: 'attacked' } } })
  const edge = await world.edge('certificates', {
    direct: true,
    args: ['--client-ca', `${oracle.dir}/ca.crt`, '--client-credential', `${name}=${own.certFile},${own.keyFile}`],
  })
  const path = '/api/v1/nodes/attacked'
  findings.equal((await edge.seat(own).ask(path)).status, 200, 'the node reads itself')
  const body = Buffer.from('{"metadata":{"labels":{"attacked":"yes"}}}')
  const patch = { method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' }, body }
  for (const person of [alike, poor]) {
    const [{ status }, real] = [await edge.seat(person).ask(path), await new Seat(oracle, person).ask(path)]
    findings.equal(status, real.status, 'whose certificate only bears its name reads what the API server gives it')
    const written = (await edge.seat(person).ask(path, patch)).status
    findings.equal(written, 403, 'and does not act as it')
  }
}

async function openWatch(seat: Seat, path: string) {
  const answer = await seat.open(path)
  let endedMs: number | undefined
  let clean = false
  answer.on('end', () => {
    endedMs = performance.now()
    clean = answer.complete
  })
  answer.on('error', () => {
    endedMs ??= performance.now()
  })
  answer.resume()
  return { endedMs: () => endedMs, clean: () => clean }
}

function withExtra(body: string, key: string, values: readonly string[]): string {
  const review = JSON.parse(body) as { status: { userInfo: { extra?: Record<string, unknown> } } }
  review.status.userInfo.extra = { ...review.status.userInfo.extra, [key]: values }
  return JSON.stringify(review)
}

function denied(body: string): string {
  const review = JSON.parse(body) as { status?: object }
  return JSON.stringify({ ...review, status: { allowed: false, reason: 'outside of its scopes' } })
}

const forbidden = JSON.stringify({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'outside of its scopes',
  reason: 'Forbidden',
  code: 403,
})
