/**
 * Attacks as processes: callers whose rights were taken away, callers who take what is everybody's, an API server that
 * answers wrongly again and again. A script stands in front of a real API server; what is attacked is `ake edge` behind it,
 * and `ake serve` where a single request could hold up the process.
 */
import { attackFirstSyncs, attackLoops, attackNamesThatAreNot } from './attacks/loops.ts'
import { attackCertificates, attackNames, attackRights } from './attacks/rights.ts'
import { attackShares } from './attacks/shares.ts'
import { attackStalls } from './attacks/stalls.ts'
import { openWorld } from './attacks/world.ts'
import { Findings } from './findings.ts'
import { checkPages } from './secrecy.ts'
import type { Step, StepContext, StepResult } from './step.ts'

export const step: Step = { name: 'attacks', tier: 'default', minutes: 5, run }

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings()
  const part = async (name: string, body: () => Promise<void>) => {
    if (!context.only(name)) return
    context.progress(name)
    await findings.part(name, body)
  }
  const world = await openWorld(context)
  try {
    const edge = await world.edge('edge')
    await part('rights', () => attackRights(world, edge, findings))
    await part('names', () => attackNames(world, edge, findings))
    await part('certificates', () => attackCertificates(world, findings))
    await part('invented', () => attackNamesThatAreNot(world, edge, findings))
    await part('loops', () => attackLoops(world, edge, findings))
    await part('firstsyncs', () => attackFirstSyncs(world, edge, findings))
    await part('shares', () => attackShares(world, edge, findings))
    await part('pages', () => checkPages(findings, async (path) => (await edge.administrator().ask(path)).body))
    await part('stalls', async () => attackStalls(await context.ake(), findings))
  } finally {
    await world.close()
  }
  return findings.result
}
