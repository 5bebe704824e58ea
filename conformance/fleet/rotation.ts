/**
 * Certificates and authorities that change under edges at work: edges that joined renew theirs several times, and the hub goes to another authority of its own, at
 * moments that a seed tells, while client-go's informers read, callers ask and write and watches are open through these edges. Nobody lists again, and no
 * request fails. There are two hubs behind a balancer, so that each next link of an edge is at the other one. With `--all` the hub changes its authority three times.
 */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pemsIn } from '../../src/pki/certificate.ts'
import { startCommand } from '../ake.ts'
import { Findings } from '../findings.ts'
import { state } from '../hub/objects.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { ask } from '../oracle.ts'
import { faultsOf, type Informers, startInformers } from '../phases.ts'
import { creatorOf } from '../rights/objects.ts'
import { chooseSeed, Edge, type Random, seeded } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { RotationCaller } from './rotationcaller.ts'
import { JoiningWorld } from './world.ts'

export const step: Step = { name: 'fleet-rotation', tier: 'default', minutes: 3, run }

const edgeNames = ['edge-1', 'edge-2', 'edge-3'] as const
const churnPerSecond = 30
const verifySeconds = 90
/** With the five minutes by which the signer backdates another is due at once: each edge renews as often as it looks. */
const signing = '1m'
const renewalsMin = 2
/** What a hub would end with the first certificate it has ended by then. */
const afterMs = 10_000
/** Hubs take over a step within a minute, usually ten seconds. */
const heardMsMax = 90_000
const gateSeed = 20_261_118
const account = 'rotation'

type Joined = {
  readonly edge: Edge
  readonly file: string
  readonly certificates: Set<string>
  readonly caller: RotationCaller
}

async function run(context: StepContext): Promise<StepResult> {
  const seed = chooseSeed({ all: context.all, gate: gateSeed })
  context.progress(`AKE_SEED=${seed}`)
  const world = await JoiningWorld.open(context, { signing, signersOnly: true, isBalanced: true })
  const findings = new Findings()
  findings.note(`AKE_SEED=${seed}`)
  const ending = new AbortController()
  const joined: Joined[] = []
  try {
    await world.until('the hubs know each other', async () => (await world.lines()).join() === '1,1')
    const token = await makeAccount(world)
    for (const name of edgeNames) joined.push(await joinOne(world, name, token))
    const informers = await startAll(context, world, joined, token)
    const working = joined.flatMap((one) => [one.caller.run(ending.signal), look(one, ending.signal)])
    for (const one of joined) await watching(world, one)
    for (let round = context.all ? 3 : 1; round > 0; round--)
      await rotate(world, joined, informers, seeded(seed + round))
    await untilOver(context, joined)
    await judge(findings, joined, informers)
    ending.abort()
    await Promise.all(working)
    await informers.finish()
    await findings.part('a start', () => startAgain(world, findings, joined.at(-1) as Joined))
    return findings.result
  } finally {
    ending.abort()
    await Promise.all(joined.map(({ edge }) => edge.ake.kill()))
    await world.stop()
  }
}

/** Somebody who may everything by a token of his own: the hub does not trust these edges. */
async function makeAccount({ oracle }: JoiningWorld): Promise<string> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: account } })
  await make('/api/v1/namespaces/default/configmaps', { metadata: { name: account }, data: {} })
  await make('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: account },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace: 'default' }],
  })
  return await oracle.tokenFor('default', account)
}

async function joinOne(world: JoiningWorld, name: string, token: string): Promise<Joined> {
  const [dir, port] = [world.folder(name), await world.freePort()]
  const listen = ['--listen', `127.0.0.1:${port}`]
  const { code, err } = await world.ake([...(await world.token()), '--name', name, '--data', dir, ...listen])
  if (code !== 0) throw new Error(`${name} did not join: ${err}`)
  const start = () =>
    startCommand(['edge', '--config', join(dir, 'edge.yaml')], { dir, port, signal: world.context.signal })
  const edge = new Edge(await start(), { dir, start })
  const caller = new RotationCaller({ name, server: edge.ake, token, account })
  return { edge, file: join(dir, 'credential.pem'), certificates: new Set(), caller }
}

async function startAll(
  { dir, signal, progress }: StepContext,
  world: JoiningWorld,
  joined: readonly Joined[],
  token: string,
): Promise<Informers> {
  const [first] = joined
  const { url, ca } = (first as Joined).edge.ake
  const kubeconfig = join(dir, 'informers.kubeconfig')
  await writeKubeconfig(kubeconfig, { url, ca, token })
  await world.until('the edge finds the cloud', async () => {
    const { upstream } = await (first as Joined).edge.status()
    return upstream.state === 'reachable'
  })
  const informers = await startInformers({ kubeconfig, direct: world.oracle.kubeconfig, dir, signal, progress })
  await informers.churn(churnPerSecond)
  progress(`${informers.count} informers`)
  return informers
}

/** A watch that was opened before its edge mirrors that is passed on, and ends with the link that carries it. */
async function watching(world: JoiningWorld, { edge, caller }: Joined): Promise<void> {
  await world.until(`${caller.name} mirrors what is watched through it`, async () =>
    (await edge.status()).interests.some(({ resource, state }) => resource === 'configmaps' && state === 'synced'),
  )
  await caller.watching()
}

/** Each certificate that the edge has had. */
async function look({ file, certificates }: Joined, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    certificates.add(pemsIn(await readFile(file, 'utf8'))[0] ?? '')
    await pause(500, undefined, { signal }).catch(() => {})
  }
}

async function rotate(
  world: JoiningWorld,
  joined: readonly Joined[],
  informers: Informers,
  random: Random,
): Promise<void> {
  const { progress, signal } = world.context
  const authority = async (word: string) => {
    await pause(2_000 + random.below(8_000), undefined, { signal })
    progress(`ake hub authority ${word}`)
    const where = ['--state', state, '--kubeconfig', world.oracle.kubeconfig]
    const { code, err } = await world.ake(['hub', 'authority', word, ...where, '--force'])
    if (code !== 0) throw new Error(`ake hub authority ${word}: ${err}`)
  }
  // Its own is the first of them.
  const authorities = async ({ file }: Joined) => pemsIn(await readFile(file, 'utf8')).slice(1)
  const heard = (what: string, holds: (all: readonly string[]) => boolean) =>
    world.until(what, async () => (await Promise.all(joined.map(authorities))).every(holds), heardMsMax)
  const [before] = await authorities(joined[0] as Joined)
  await authority('rotate')
  await heard('all edges know the next authority', (all) => all.length === 2)
  await informers.churn(churnPerSecond)
  await authority('switch')
  await heard('all edges know that it signs', (all) => all[0] !== before)
  await informers.churn(churnPerSecond)
  await authority('retire')
  await heard('all edges trust it alone', (all) => all.length === 1 && all[0] !== before)
  await informers.churn(churnPerSecond)
}

/** A link that is still the first one ends with the first certificate. */
async function untilOver({ progress, signal }: StepContext, joined: readonly Joined[]): Promise<void> {
  const ends = joined.flatMap(({ certificates: [first] }) => new X509Certificate(first ?? '').validToDate.getTime())
  const leftMs = Math.max(0, Math.max(...ends) + afterMs - Date.now())
  progress(`the first certificates are over in ${Math.round(leftMs / 1_000)} s`)
  await pause(leftMs, undefined, { signal })
}

async function judge(findings: Findings, joined: readonly Joined[], informers: Informers): Promise<void> {
  const standings = await informers.verify(verifySeconds)
  findings.equal(faultsOf(standings), [], 'no informer has lost anything, or listed again')
  const sum = (of: 'events' | 'watches' | 'relists') => standings.reduce((total, one) => total + one[of], 0)
  findings.note(
    `${standings.length} informers: ${sum('events')} events, ${sum('watches')} watches, ${sum('relists')} relists`,
  )
  for (const { caller, certificates } of joined) {
    findings.check(certificates.size > renewalsMin, `${caller.name} has renewed its certificate`, certificates.size)
    findings.equal(caller.failures, [], `no request through ${caller.name} failed`)
    findings.check(await caller.isOpen(), `the watch through ${caller.name} is open and hears`, caller.over)
    findings.note(`${caller.name}: ${certificates.size - 1} renewals under ${caller.asked} requests and a watch`)
  }
}

/** What an edge has kept of all this is enough for its next start. */
async function startAgain(world: JoiningWorld, findings: Findings, { edge }: Joined): Promise<void> {
  await edge.restart('kill')
  await world.until('an edge that starts again finds the cloud', async () => {
    return (await edge.status()).upstream.state === 'reachable'
  })
  findings.check(true, 'an edge that starts again finds its hub by what it has kept')
  const { status } = await ask(world.oracle, '/readyz')
  findings.equal(status, 200, 'the API server was there all the time')
}
