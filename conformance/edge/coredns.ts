/**
 * The cluster's DNS through `ake edge`: CoreDNS resolves what the cloud knows, goes on while it is cut, also after both
 * CoreDNS and the edge were killed and started again without it, and learns what happened meanwhile when it is back.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import { type Coredns, startCoredns } from '../coredns.ts'
import { Findings } from '../findings.ts'
import { hubBetween } from '../hub/between.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { startLink } from '../link.ts'
import { type Oracle, startOracle } from '../oracle.ts'
import { applyRbac, creatorOf, type Make } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { startEdge } from './edge.ts'

export const step: Step = { name: 'edge-coredns', tier: 'default', minutes: 2, run: (context) => run(context, false) }

/** The same through a hub that does not trust its edges: CoreDNS' own token is why the edge has what it resolves. */
export const hubStep: Step = { name: 'hub-coredns', tier: 'all', minutes: 2, run: (context) => run(context, true) }

const namespace = 'names'
const services = `/api/v1/namespaces/${namespace}/services`
/** From a change at the API server to its name, on a busy machine; offline longer than CoreDNS' own pace. */
const arrivesMsMax = 30_000

const name = (service: string) => `${service}.${namespace}.svc.cluster.local`

async function run(context: StepContext, isBehindHub: boolean): Promise<StepResult> {
  const { dir, signal, progress } = context
  await mkdir(dir, { recursive: true })
  // Both ways use the same addresses of services.
  const oracle = isBehindHub
    ? await startOracle({ dir: join(dir, 'oracle'), signal, progress })
    : await context.oracle()
  const make = creatorOf(oracle)
  await populate(oracle, make)
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const between = isBehindHub ? await hubBetween({ dir, oracle, link, signal }) : undefined
  const own = await oracle.userCredential('edge-names', ['ake:edges'])
  const way = between?.way ?? { server: link.url, kubeconfig: own.kubeconfig }
  const options = { dir: join(dir, 'edge'), ...way, signal }
  let edge: Ake | undefined
  let dns: Coredns | undefined
  const findings = new Findings()
  try {
    edge = await startEdge(options)
    const kubeconfig = join(context.dir, 'coredns.kubeconfig')
    await writeKubeconfig(kubeconfig, {
      ...{ url: edge.url, ca: edge.ca },
      token: await oracle.tokenFor('kube-system', 'coredns'),
    })
    const start = (port?: number) =>
      startCoredns({ dir: join(context.dir, 'coredns'), kubeconfig, signal, ...(port === undefined ? {} : { port }) })
    dns = await start()
    await findings.part('with the cloud', async () => {
      await checkNames(dns!, findings, 'with the cloud')
      await make(services, service('added'))
      await arrives(dns!, 'added')
      findings.equal(await resolved(dns!, 'added'), await addressOf(oracle, 'added'), 'a service that was added')
    })
    await findings.part('the cloud is cut', async () => {
      await link.set('blackhole')
      await untilCloudIs(edge!, 'unreachable')
      await checkNames(dns!, findings, 'cut')
      findings.equal(await resolved(dns!, 'added'), await addressOf(oracle, 'added'), 'cut: the added service')
    })
    await findings.part('everything is killed and starts again without the cloud', async () => {
      context.progress('CoreDNS and the edge start again without the cloud')
      await dns!.stop()
      await edge!.kill()
      edge = await startEdge({ ...options, port: edge!.port })
      dns = await start(dns!.port)
      await checkNames(dns, findings, 'started again')
      findings.equal(await resolved(dns, 'added'), await addressOf(oracle, 'added'), 'started again: the added service')
      await make(services, service('meanwhile'))
      await oracleDelete(oracle, `${services}/doomed`)
      findings.equal(await resolved(dns, 'meanwhile'), ['ENOTFOUND'], 'what nobody here can know is not there')
      findings.equal(
        (await resolved(dns, 'doomed'))[0]?.startsWith('10.96.'),
        true,
        'what was last known is still there',
      )
    })
    await findings.part('the cloud is back', async () => {
      await link.set('up')
      await arrives(dns!, 'meanwhile')
      findings.equal(await resolved(dns!, 'meanwhile'), await addressOf(oracle, 'meanwhile'), 'what was made meanwhile')
      await vanishes(dns!, 'doomed')
      findings.equal(await resolved(dns!, 'doomed'), ['ENOTFOUND'], 'what was deleted meanwhile')
      await checkNames(dns!, findings, 'back')
    })
    return findings.result
  } finally {
    await dns?.stop()
    await edge?.kill()
    await between?.hub.end('kill')
    await link.close()
    if (isBehindHub) oracle.stop()
  }
}

async function checkNames(dns: Coredns, findings: Findings, when: string): Promise<void> {
  findings.equal(await resolved(dns, 'web'), ['10.96.7.7'], `${when}: a cluster address`)
  findings.equal(await resolved(dns, 'flock'), ['10.7.0.1', '10.7.0.2', '10.7.0.3'], `${when}: a headless service`)
  findings.equal(await resolved(dns, 'host-1.flock'), ['10.7.0.1'], `${when}: one endpoint of it`)
  findings.equal(await resolved(dns, 'nowhere'), ['ENOTFOUND'], `${when}: a name that does not exist`)
}

/** Sorted addresses, or the code of the failure. */
async function resolved(dns: Coredns, service: string): Promise<string[]> {
  try {
    return (await dns.resolve(name(service))).sort()
  } catch (error) {
    return [String((error as NodeJS.ErrnoException).code)]
  }
}

function arrives(dns: Coredns, service: string): Promise<void> {
  return settles(`${service} arrives`, async () => (await resolved(dns, service))[0]?.startsWith('10.96.') === true)
}

function vanishes(dns: Coredns, service: string): Promise<void> {
  return settles(`${service} vanishes`, async () => (await resolved(dns, service))[0] === 'ENOTFOUND')
}

async function untilCloudIs(edge: Ake, wanted: string): Promise<void> {
  const administrator = new Seat(edge, edge)
  await settles(`the cloud is ${wanted}`, async () => {
    const { body } = await administrator.ask('/ake/status')
    return (JSON.parse(body) as { upstream: { state: string } }).upstream.state === wanted
  })
  administrator.close()
}

async function settles(what: string, holds: () => Promise<boolean>): Promise<void> {
  await until(holds, what, { withinMs: arrivesMsMax, everyMs: 100 })
}

async function addressOf(oracle: Oracle, service: string): Promise<string[]> {
  const seat = new Seat(oracle, oracle)
  const { body } = await seat.ask(`${services}/${service}`)
  seat.close()
  return [(JSON.parse(body) as { spec: { clusterIP: string } }).spec.clusterIP]
}

async function oracleDelete(oracle: Oracle, path: string): Promise<void> {
  const seat = new Seat(oracle, oracle)
  const { status, body } = await seat.ask(path, { method: 'DELETE' })
  seat.close()
  if (status !== 200) throw new Error(`DELETE ${path}: ${status} ${body}`)
}

function service(name: string, spec: object = {}): object {
  return { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } }
}

async function populate(oracle: Oracle, make: Make): Promise<void> {
  await applyRbac(oracle)
  await make('/api/v1/namespaces', { metadata: { name: namespace } })
  await make(services, service('web', { clusterIP: '10.96.7.7' }))
  await make(services, service('doomed'))
  await make(services, service('flock', { clusterIP: 'None' }))
  const endpoints = [1, 2, 3].map((at) => ({
    addresses: [`10.7.0.${at}`],
    hostname: `host-${at}`,
    conditions: { ready: true },
  }))
  await make(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
    metadata: { name: 'flock-1', labels: { 'kubernetes.io/service-name': 'flock' } },
    addressType: 'IPv4',
    endpoints,
    ports: [{ port: 80 }],
  })
  await make('/api/v1/namespaces/kube-system/serviceaccounts', { metadata: { name: 'coredns' } })
  const rules = [
    { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
  ]
  const roles = '/apis/rbac.authorization.k8s.io/v1'
  await make(`${roles}/clusterroles`, { metadata: { name: 'names-coredns' }, rules })
  await make(`${roles}/clusterrolebindings`, {
    metadata: { name: 'names-coredns' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'names-coredns' },
    subjects: [{ kind: 'ServiceAccount', name: 'coredns', namespace: 'kube-system' }],
  })
}
