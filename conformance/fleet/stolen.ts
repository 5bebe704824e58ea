/**
 * A stolen edge's credential against a real API server and hubs with the rights of `deploy/hub.yaml`: what it tries is refused and
 * logged, before it is revoked and after. Then the hubs' authority is rotated under fifty edges, each with a watch of its pods.
 */
import { execFile } from 'node:child_process'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'
import { signerOf } from '../../src/pki/verdict.ts'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { shop, state } from '../hub/objects.ts'
import { HubbedWorld } from '../hub/world.ts'
import { issueEdge } from '../hubs.ts'
import { ask } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { Box } from './box.ts'
import { ticketOf, tryLink } from './linktry.ts'

export const step: Step = { name: 'fleet-stolen', tier: 'default', minutes: 2, run }

const execute = promisify(execFile)
const program = join(import.meta.dirname, '..', '..', 'bin', 'ake')
const manifest = join(import.meta.dirname, '..', '..', 'deploy', 'edgepolicy.yaml')
const boxes = 50
/** Which a reconnect takes at most here: a first wait of a second, and a handshake in line behind the others. */
const gapMsMax = 15_000
const lies = 1_000
/** Of pods, by whatever else runs in this world meanwhile. */
const listsMax = 3
const waiting = { withinMs: 60_000, everyMs: 200 }

async function run(context: StepContext): Promise<StepResult> {
  const logging = ['--log-level', 'debug']
  const world = await HubbedWorld.open(context, undefined, { hubs: [logging, logging] })
  const findings = new Findings(context.progress)
  try {
    const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
    await execute(join(bin, 'kubectl'), ['--kubeconfig', world.oracle.kubeconfig, 'apply', '-f', manifest])
    const shared = { state, kubeconfig: world.oracle.kubeconfig }
    const file = await issueEdge(context.dir, 'edge-1', shared)
    await findings.part('what it may not', () => tries(world, findings, file))
    await findings.part('lies about versions', () => versions(world, findings, file))
    await findings.part('revoked', () => revoked(world, findings, file))
    await findings.part('another authority under fifty edges', () => rotated(world, findings))
    return findings.result
  } finally {
    await world.stop()
  }
}

async function tries(world: HubbedWorld, findings: Findings, file: string): Promise<void> {
  const ports = world.hubs.map(({ port }) => port)
  const box = await Box.open({ file, ports })
  await until(() => box.link.current !== undefined, 'a link', waiting)
  findings.equal(await box.wants(`v1/secrets@${shop}?&metadata.name=of-edge-1`), 'given', 'its own Secret')
  const interests = [
    ...['v1/pods?&spec.nodeName=edge-2', `v1/secrets@${shop}?&metadata.name=of-edge-2`, 'v1/secrets', 'v1/pods'],
    ...[`v1/secrets@${shop}`, 'v1/nodes', 'v1/configmaps@kube-system'],
  ]
  /** What each line of the log about one of these has in it. */
  const logged: string[] = interests.map((interest) => `interest=${JSON.stringify(interest)}`)
  for (const interest of interests) {
    const said = await box.wants(interest)
    findings.check(said.startsWith('forbidden:'), `the interest ${interest} is refused`, said)
  }
  const secrets = `/api/v1/namespaces/${shop}/secrets`
  for (const path of [`${secrets}/of-edge-2`, secrets, '/api/v1/secrets', '/api/v1/namespaces/kube-system/secrets']) {
    const { status, body } = await box.ask(path)
    findings.equal(status, 403, `GET ${path} as its node (${body.slice(0, 200)})`)
    logged.push(`request="GET ${path}" why="the API server does not allow that to this node"`)
  }
  const pod = `/api/v1/namespaces/${shop}/pods/pod-on-edge-2`
  const deleted = await box.ask(`${pod}?gracePeriodSeconds=0`, { method: 'DELETE' })
  findings.equal(deleted.status, 403, 'deletes a pod of another node')
  logged.push(`request="DELETE ${pod}?…"`)
  const names = [
    { 'impersonate-user': 'system:node:edge-2' },
    { 'impersonate-user': 'jane', 'impersonate-group': 'system:masters' },
    { 'Impersonate-User': 'system:admin', 'Impersonate-Group': 'system:masters' },
    { 'x-remote-user': 'jane', 'x-remote-group': 'system:masters' },
  ]
  for (const [at, headers] of names.entries()) {
    const path = `/api/v1/namespaces/kube-system/secrets/try-${at}`
    const { status, body } = await box.ask(path, { headers })
    logged.push(`request="GET ${path}"`)
    findings.check(
      status === 403 || status === 401,
      `with ${JSON.stringify(headers)}`,
      `${status} ${body.slice(0, 200)}`,
    )
  }
  await box.end()
  const liar = await Box.open({ file, ports, hello: 'edge-2' })
  await until(() => liar.link.why.includes('certificate is that of node'), 'another name in hello is refused', waiting)
  findings.check(liar.link.current === undefined, 'a hello with the name of another node')
  await liar.end()
  const logs = await hubLogs(world)
  const lines = logs.split('\n').filter((line) => line.includes(' warn edge.refused edge=edge-1 '))
  for (const what of logged)
    findings.check(
      lines.some((line) => line.replaceAll('"', '').includes(what.replaceAll('"', ''))),
      `in the log of a hub: ${what}`,
    )
  findings.check(/edge\.left .*edge=edge-1 .*reason=identity/.test(logs), 'that it said another name is in the log')
}

/** Whatever it claims to hold, it hears what it may and no more, costs the API server nothing, and harms no other edge. */
async function versions(world: HubbedWorld, findings: Findings, file: string): Promise<void> {
  const ports = world.hubs.map(({ port }) => port)
  const shared = { state, kubeconfig: world.oracle.kubeconfig }
  const other = await Box.open({ file: await issueEdge(world.context.dir, 'edge-2', shared), ports })
  const box = await Box.open({ file, ports })
  await until(() => box.link.current !== undefined && other.link.current !== undefined, 'two links', waiting)
  const [own, its] = ['v1/pods?&spec.nodeName=edge-1', 'v1/pods?&spec.nodeName=edge-2']
  findings.equal(await other.wants(its), 'given', 'the pods of the other edge, before')
  const before = await listsAt(world)
  const far = Number.MAX_SAFE_INTEGER
  const epoch = box.link.current?.epoch ?? 0
  for (const wish of ['resume', 'compare', 'anew'] as const)
    findings.equal(
      await box.wants(own, { epoch, version: far, wish }),
      'wait',
      `a version that is yet to come, ${wish}`,
    )
  for (const version of [1, 2, far]) {
    const said = await box.wants(its, { epoch, version, wish: 'resume' })
    findings.check(said.startsWith('forbidden:'), `pods of another node, said to be held at ${version}`, said)
  }
  for (let lie = 1; lie <= lies; lie++) {
    const version = lie % 2 === 0 ? lie : far - lie
    const said = await box.wants(own, { epoch: lie % 3 === 0 ? lie : epoch, version, wish: 'resume' })
    if (!['wait', 'replay', 'compare', 'given'].includes(said)) findings.check(false, `lie ${lie}`, said)
  }
  findings.equal(await box.wants(own), 'given', 'who stops lying has its pods')
  findings.check((await listsAt(world)) - before <= listsMax, `${lies} lies have the API server list nothing`)
  findings.equal(await other.wants(its), 'given', 'the pods of the other edge, afterwards')
  findings.equal(other.gapsMs.length, 1, 'links of the other edge')
  await box.end()
  await other.end()
}

async function listsAt({ oracle }: HubbedWorld): Promise<number> {
  const { body } = await ask(oracle, '/metrics')
  let sum = 0
  for (const [, labels = '', count] of body.matchAll(/^apiserver_request_total\{([^}]*)\} (\S+)$/gm))
    if (labels.includes('verb="LIST"') && labels.includes('resource="pods"')) sum += Number(count)
  return sum
}

async function revoked(world: HubbedWorld, findings: Findings, file: string): Promise<void> {
  const ports = world.hubs.map(({ port }) => port)
  const [port] = ports as [number, ...number[]]
  const session = await ticketOf({ file, port }, world.context.signal)
  const stolen = join(world.context.dir, 'stolen.pem')
  await copyFile(file, stolen)
  const box = await Box.open({ file: stolen, ports })
  await until(() => box.link.current !== undefined, 'a link', waiting)
  const at = performance.now()
  await ake(world, 'hub', 'revoke', 'edge-1')
  await until(() => box.link.current === undefined, 'its link ends', waiting)
  findings.note(`its link ended ${Math.round(performance.now() - at)} ms after the command was begun`)
  // A link that is closed is none, a moment before it is known why.
  await until(() => /revoked/.test(box.link.why), `it is told why, and not ${box.link.why}`, waiting)
  findings.check(true, 'it is told why')
  for (const [what, resumes] of [
    ['with a ticket', true],
    ['without one', false],
  ] as const) {
    const before = await triesLogged(world, resumes)
    const { resumed, said } = await tryLink({ file, port, session: resumes ? session : undefined })
    findings.equal(resumed, resumes, `whether TLS resumed a session ${what}`)
    findings.check(/^HTTP\/1\.1 403 .*revoked/s.test(said), `a new link ${what} is refused`, said)
    await until(async () => (await triesLogged(world, resumes)) > before, `the try ${what} is in the log`, waiting)
  }
  const refused = await box.ask(`/api/v1/namespaces/${shop}/secrets/of-edge-1`).then(
    ({ status }) => String(status),
    (error: Error) => error.message,
  )
  findings.check(!/^2/.test(refused), 'its own Secret is not had any more', refused)
  await box.end()
  findings.check(/warn edge\.revoked .*edge=edge-1/.test(await hubLogs(world)), 'the log warns of it')
  const events = async () => (await ask(world.oracle, '/api/v1/namespaces/default/events')).body
  await until(async () => (await events()).includes('"EdgeRevoked"'), 'an Event of the Node', waiting)
  const again = await issueEdge(world.context.dir, 'edge-1', { state, kubeconfig: world.oracle.kubeconfig })
  const anew = await Box.open({ file: again, ports })
  await until(() => anew.link.current !== undefined, 'a credential that is issued afterwards counts', waiting)
  await anew.end()
}

async function rotated(world: HubbedWorld, findings: Findings): Promise<void> {
  const { dir } = world.context
  const ports = world.hubs.map(({ port }) => port)
  const shared = { state, kubeconfig: world.oracle.kubeconfig }
  const files: string[] = []
  for (let at = 0; at < boxes; at += 10)
    files.push(...(await Promise.all(Array.from({ length: 10 }, (_, i) => issueEdge(dir, `box-${at + i}`, shared)))))
  const all = await Promise.all(
    files.map((file, at) => Box.open({ file, ports: at % 2 === 0 ? ports : [...ports].reverse() })),
  )
  await until(() => all.every(({ link }) => link.current !== undefined), 'fifty links', waiting)
  const make = creatorOf(world.oracle)
  const podsAt = '/api/v1/namespaces/default/pods'
  for (const box of all) await make(podsAt, podOfBox(box))
  const copies = await Promise.all(all.map((box) => box.mirror()))
  /** What happens now is heard by every watch. */
  const heard = async (when: string) => {
    const headers = { 'content-type': 'application/merge-patch+json' }
    const body = { metadata: { labels: { when } } }
    for (const box of all)
      await ask(world.oracle, `${podsAt}/${box.credential.node}`, { method: 'PATCH', headers, body })
    await until(() => copies.every((copy) => copy.heard.includes(`"${when}"`)), `all watches hear of ${when}`, waiting)
    findings.check(true, `all watches hear of a change after ${when}`)
  }
  await heard('nothing')
  const trusted = (count: number) => () =>
    all.every(({ credential }) => credential.current.authorities.length === count)
  await ake(world, 'hub', 'authority', 'rotate', '--state', state)
  await until(trusted(2), 'all have heard of the next authority', waiting)
  findings.equal(
    all.map(({ gapsMs }) => gapsMs.length - 1),
    all.map(() => 0),
    'no link was lost by hearing of it',
  )
  await heard('rotate')
  await ake(world, 'hub', 'authority', 'switch', '--state', state, '--force')
  const isRenewed = ({ credential: { current } }: Box) =>
    signerOf(current.certificate, current.authorities)?.fingerprint256 === current.authorities[0]?.fingerprint256
  await until(
    () => all.every((box) => isRenewed(box) && box.gapsMs.length === 2),
    'all have other certificates, and links with them',
    waiting,
  )
  await heard('switch')
  await ake(world, 'hub', 'authority', 'retire', '--state', state, '--force')
  await until(trusted(1), 'all trust the new one alone', waiting)
  await heard('retire')
  const over = copies.flatMap((copy) => copy.over ?? [])
  findings.equal(over, [], 'every watch stayed open')
  const wholes = new Set(copies.map((copy) => copy.wholes))
  findings.equal([...wholes], [1], 'and every edge read its pods as a whole once')
  const gaps = all.flatMap(({ gapsMs }) => gapsMs.slice(1))
  const longest = Math.round(Math.max(...gaps))
  findings.equal(gaps.length, boxes, 'each link was made anew once')
  findings.check(longest < gapMsMax, 'no link was away for longer than a reconnect', longest)
  findings.note(`${boxes} edges, ${gaps.length} reconnects, the longest without a link ${longest} ms`)
  type Status = { readonly edges: readonly { readonly name: string; readonly certificate: { readonly by: string } }[] }
  const held = (await Promise.all(world.hubs.map((hub) => hub.status<Status>()))).flatMap(({ edges }) => edges)
  findings.equal(held.filter(({ name }) => name.startsWith('box-')).length, boxes, 'every edge is at one hub')
  findings.check(
    held.every(({ certificate }) => certificate.by === 'current'),
    'all have a certificate of the new authority',
  )
  await Promise.all(copies.map((copy) => copy.end()))
  await Promise.all(all.map((box) => box.end()))
}

/** No kubelet runs it. */
function podOfBox({ credential: { node } }: Box): object {
  const containers = [{ name: 'main', image: 'none' }]
  return { metadata: { name: node }, spec: { nodeName: node, automountServiceAccountToken: false, containers } }
}

async function ake(world: HubbedWorld, ...words: string[]): Promise<void> {
  await execute(program, [...words, '--kubeconfig', world.oracle.kubeconfig])
}

/** Of the revoked edge, each of them: what is the same as a minute before is said at debug. */
async function triesLogged(world: HubbedWorld, isResumed: boolean): Promise<number> {
  const line = new RegExp(`(warn|debug) edge\\.revoked .*edge=edge-1 .*resumed=${isResumed}`, 'g')
  return (await hubLogs(world)).match(line)?.length ?? 0
}

async function hubLogs(world: HubbedWorld): Promise<string> {
  const logs = ['hub-1', 'hub-2'].map((name) => readFile(join(world.context.dir, `${name}.log`), 'utf8'))
  return (await Promise.all(logs)).join('\n')
}
