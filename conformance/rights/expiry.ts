/**
 * The edge's own certificate expires (openyurt 7): the API server refuses it from then on, and local reads and watches go
 * on all the same; `ake status` says why nothing new comes in.
 */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Seat } from '../asking.ts'
import { startEdge } from '../edge/edge.ts'
import type { Findings } from '../findings.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { makeBriefClient } from '../pki.ts'
import type { StepContext } from '../step.ts'
import type { RightsWorld } from './world.ts'

const lists = '/api/v1/namespaces/rights-a/configmaps?resourceVersion=0'
/** Long enough for a start and a first sync on a busy machine. */
const validSeconds = 15
/** Two probes, and a reflector's next try. */
const noticedMsMax = 25_000

export async function checkExpiredEdge(context: StepContext, world: RightsWorld, findings: Findings): Promise<void> {
  const { oracle } = world
  const own = await makeBriefClient(oracle.dir, context.dir, {
    user: 'edge-brief',
    groups: ['ake:edges'],
    seconds: validSeconds,
  })
  const expiresMs = Date.now() + validSeconds * 1_000
  const kubeconfig = join(context.dir, 'brief.kubeconfig')
  await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, ...own })
  const options = { dir: join(context.dir, 'brief'), server: oracle.url, kubeconfig, signal: context.signal }
  let edge = await startEdge(options)
  const person = world.persons.get('reader')!
  const reader = new Seat(edge, person)
  try {
    const before = await reader.ask(lists)
    findings.equal(before.status, 200, 'the reader lists while the certificate is good')
    const { resourceVersion } = (JSON.parse(before.body) as { metadata: { resourceVersion: string } }).metadata
    const watch = reader.watch(
      `${lists.replace('=0', `=${resourceVersion}`)}&watch=1`,
      expiresMs - Date.now() + noticedMsMax,
    )
    await pause(Math.max(0, expiresMs + 1_000 - Date.now()))
    const administrator = new Seat(edge, edge)
    const said = await noticed(administrator)
    findings.check(/refuses the edge's credential|401|expired/i.test(said), 'ake status says why', said)
    const after = await reader.ask(lists)
    findings.equal([after.status, after.body], [200, before.body], 'local reads go on')
    const { ended, status } = await watch
    findings.equal([status, ended], [200, false], 'local watches go on')
    findings.equal((await reader.ask('/api/v1/namespaces/rights-a/configmaps/c1')).status, 200, 'callers are passed on')
    administrator.close()
    reader.close()
    await edge.kill()
    edge = await startEdge({ ...options, port: edge.port })
    const later = new Seat(edge, person)
    const again = await later.ask(lists)
    findings.equal([again.status, again.body], [200, before.body], 'local reads go on after a restart')
    later.close()
  } finally {
    await edge.kill()
  }
}

async function noticed(administrator: Seat): Promise<string> {
  const give = performance.now() + noticedMsMax
  for (;;) {
    const { upstream, interests } = JSON.parse((await administrator.ask('/ake/status')).body) as {
      upstream: { why: string }
      interests: { why?: string }[]
    }
    const said = [upstream.why, ...interests.map(({ why = '' }) => why)].filter((why) => why !== '').join('; ')
    if (/40[13]|credential|expired/i.test(said) || performance.now() > give) return said
    await pause(500)
  }
}
