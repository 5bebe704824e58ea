/**
 * A hub under what strangers and careless operators do to it: hundreds of joiners with invented tokens, a policy that changes a thousand times, and no
 * right to write statuses. Those who should be served are, and its log and its memory stay small.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { ask } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { Box } from './box.ts'
import { JoiningWorld } from './world.ts'

export const step: Step = { name: 'fleet-storm', tier: 'default', minutes: 2, run }

const execute = promisify(execFile)
const manifest = join(import.meta.dirname, '..', '..', 'deploy', 'edgepolicy.yaml')
const policies = '/apis/ake.dev/v1alpha1/edgepolicies'
const merge = { 'content-type': 'application/merge-patch+json' }
const badJoiners = 500
const changes = 1_000
/** Of one part, in the log of the hub. */
const linesMax = 60

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  const world = await JoiningWorld.open(context)
  try {
    const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
    await execute(join(bin, 'kubectl'), ['--kubeconfig', world.oracle.kubeconfig, 'apply', '-f', manifest])
    await findings.part('invented tokens', () => checkTokens(world, findings))
    await findings.part('a policy that changes', () => checkChanges(world, findings))
    await findings.part('no right to write statuses', () => checkStatus(world, findings))
    return findings.result
  } finally {
    await world.stop()
  }
}

/** Lines of the hub's log since so many. */
async function logged(world: JoiningWorld, since = 0): Promise<readonly string[]> {
  return (await readFile(world.folder('hub.log'), 'utf8')).trimEnd().split('\n').slice(since)
}

/** From another address of this machine, so that it is the hub's limit for that one which they meet. */
function badJoin({ hub }: JoiningWorld, at: number): Promise<number> {
  const token = `${String(at).padStart(6, 'x')}.aaaaaaaaaaaaaaaa`
  return new Promise((resolve) => {
    const options = {
      ...{ host: '127.0.0.1', port: hub.port, path: '/join/v1/authorities', localAddress: '127.0.0.2' },
      ...{ headers: { authorization: `Bearer ${token}` }, rejectUnauthorized: false, agent: false, timeout: 30_000 },
    }
    const asking = request(options, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asking.on('timeout', () => asking.destroy())
    asking.on('error', () => resolve(0))
    asking.end()
  })
}

async function checkTokens(world: JoiningWorld, findings: Findings): Promise<void> {
  const words = await world.token()
  const before = (await logged(world)).length
  const flood = Promise.all(Array.from({ length: badJoiners }, (_, at) => badJoin(world, at)))
  const data = world.folder('edge-in-storm')
  const joined = await world.ake([...words, '--name', 'edge-in-storm', '--data', data, '--wait', '60s'])
  findings.check(joined.code === 0, 'a machine with a token joins meanwhile', joined)
  const statuses = await flood
  findings.check(
    statuses.every((status) => status === 401 || status === 429 || status === 0),
    'none of the others is told anything',
    [...new Set(statuses)],
  )
  const lines = (await logged(world, before)).filter((line) => / (warn|error) /.test(line))
  findings.check(lines.length <= linesMax, `${badJoiners} joiners make few lines`, lines.length)
  const refused = statuses.filter((status) => status === 401).length
  findings.note(`${badJoiners} invented tokens: ${refused} were looked up, ${lines.length} lines of warnings`)
}

async function checkChanges(world: JoiningWorld, findings: Findings): Promise<void> {
  const box = await Box.open({ file: join(world.folder('edge-in-storm'), 'credential.pem'), ports: [world.hub.port] })
  await world.until('a link', async () => box.link.current !== undefined)
  const link = box.link.current
  const interests = [{ apiGroups: [''], resources: ['configmaps'], namespaces: ['kube-system'] }]
  const metadata = { name: 'restless' }
  const made = await ask(world.oracle, policies, {
    ...{ method: 'POST', body: { apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata, spec: { interests } } },
  })
  findings.equal(made.status, 201, 'a policy is made')
  await world.until('it counts', async () => (await box.wants('v1/configmaps@kube-system')) === 'given')
  const before = (await logged(world)).length
  const startedMs = performance.now()
  for (let at = 0; at < changes; at += 10)
    await Promise.all(
      Array.from({ length: 10 }, (_, more) => {
        const rates = { edgeRequestsPerSecond: 50 + at + more }
        const spec = (at + more) % 2 === 0 ? { rates, interests: null } : { rates, interests }
        return ask(world.oracle, `${policies}/restless`, { method: 'PATCH', headers: merge, body: { spec } })
      }),
    )
  findings.note(`${changes} changes of a policy in ${Math.round(performance.now() - startedMs)} ms`)
  const last = (spec: object) =>
    ask(world.oracle, `${policies}/restless`, { method: 'PATCH', headers: merge, body: { spec } })
  await last({ interests: null })
  await world.until('without the rule it is refused', async () =>
    /^forbidden/.test(await box.wants('v1/configmaps@kube-system')),
  )
  await last({ interests })
  await world.until('with it it is given', async () => (await box.wants('v1/configmaps@kube-system')) === 'given')
  findings.check(box.link.current === link, 'its link has lived through all of it')
  const lines = (await logged(world, before)).filter((line) => / (warn|error) /.test(line))
  findings.check(lines.length <= linesMax, 'its log stays small', lines.length)
  await box.end()
}

async function checkStatus(world: JoiningWorld, findings: Findings): Promise<void> {
  const role = '/apis/rbac.authorization.k8s.io/v1/clusterroles/ake-hub'
  type Role = { rules: { resources?: string[] }[] }
  const found = (await world.read<Role>(role)) as Role
  const rules = found.rules.map((rule) => ({
    ...rule,
    ...(rule.resources && { resources: rule.resources.filter((one) => one !== 'edgepolicies/status') }),
  }))
  await ask(world.oracle, role, {
    method: 'PATCH',
    headers: merge,
    body: { rules: rules.filter((rule) => rule.resources?.length !== 0) },
  })
  for (let at = 0; at < 30; at++) {
    const body = { apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata: { name: `untold-${at}` }, spec: {} }
    await ask(world.oracle, policies, { method: 'POST', body })
  }
  const before = (await logged(world)).length
  const refused = async () =>
    /^ake_hub_policy_status_writes_total\{result="refused"\} (\d+)$/m.exec(await world.hub.metrics())?.[1]
  await world.until('it was refused', async () => (await refused()) !== undefined)
  await new Promise((done) => setTimeout(done, 12_000))
  findings.equal(await refused(), '1', 'it does not try for each policy at each look')
  const lines = (await logged(world, before)).filter((line) => line.includes('policy.status'))
  findings.equal(lines.length, 1, 'and says so once')
  const open = (await world.hub.metrics()).includes('ake_hub_open 1')
  findings.check(open, 'it serves on')
}
