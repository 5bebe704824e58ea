/**
 * Whose rights, at `ake edge`: with the cloud there, without it, and after a restart without it, nobody gets from the edge
 * what the API server would not give to the same caller, and everybody else gets the same bytes. Failures of others that
 * are looked for by name: identity taken from the user agent (openyurt 12 and 13), offline reads without authorization
 * (superedge b4), a 403 or 404 that falls through to the local copy (kubeedge 1.2), an expired certificate of the edge
 * itself that ends local reads (openyurt 7).
 */

import { until } from '../../src/base/until.test-support.ts'
import { Findings } from '../findings.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { strongReads } from './cases.ts'
import { changeRights, checkParts, checkTakenAway } from './changes.ts'
import { checkExpiredEdge } from './expiry.ts'
import { nodes, widgets } from './objects.ts'
import { RightsReads } from './reads.ts'
import { RightsReviews } from './reviews.ts'
import { checkOwnPages, checkSecrecy } from './secrecy.ts'
import { checkDropped, checkEnding, checkKept, checkRotated, type Issued, issueTokens } from './tokens.ts'
import { openRightsWorld, type RightsWorld } from './world.ts'

export const step: Step = { name: 'edge-rights', tier: 'default', minutes: 2, run }

const stateMsMax = 30_000

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  const world = await openRightsWorld(context)
  // Beside everything else: it mostly waits.
  const beside = new Findings()
  const expiry = beside.part('openyurt 7: the certificate of the edge itself expires', () =>
    checkExpiredEdge(context, world, beside),
  )
  try {
    await main(world, findings)
    await expiry
    findings.add(beside.result)
  } finally {
    await world.close()
  }
  return findings.result
}

async function main(world: RightsWorld, findings: Findings): Promise<void> {
  const { link, persons } = world
  const reads = new RightsReads(world, findings)
  let issued: Issued | undefined
  await findings.part('online', async () => {
    for (const path of strongReads) {
      findings.equal((await world.through('admin').ask(path)).status, 200, `the administrator has ${path} mirrored`)
    }
    await reads.learn()
    await reads.compare('online, first', 'there')
    await reads.compare('online, again', 'there')
    await checkOwnPages(world, findings, 'online')
    await checkPassedThrough(world, findings)
    await checkAlone(world, findings)
  })
  await findings.part('rights that change', () => changeRights(world, findings))
  const reviews = new RightsReviews(world, findings)
  await findings.part('reviews', () => reviews.learn())
  await findings.part('tokens are issued and rotated, and the cloud is cut at once', async () => {
    issued = await issueTokens(world, findings)
    await link.set('blackhole')
    await checkRotated(world, findings, issued, 'cut')
    await link.set('up')
    await untilCloudIs(world, 'reachable')
  })
  await findings.part('a token ends', () => checkEnding(world, findings, () => link.set('blackhole')))
  await findings.part('offline', async () => {
    await untilCloudIs(world, 'unreachable')
    await reads.compare('offline', 'away')
    await reviews.compare('offline')
    await checkOwnPages(world, findings, 'offline')
    await checkTakenAway(world, findings, 'offline')
    await checkParts(world, findings)
    if (issued !== undefined) await checkKept(world, findings, issued, 'offline')
  })
  await findings.part('offline, started again', async () => {
    await world.restartEdge()
    if (issued !== undefined) await checkRotated(world, findings, issued, 'started again')
    await reads.compare('started again', 'away', false)
    await reviews.compare('started again')
    await checkTakenAway(world, findings, 'started again')
    await untilCloudIs(world, 'unreachable')
    if (issued !== undefined) await checkKept(world, findings, issued, 'started again')
  })
  await findings.part('the cloud is back', async () => {
    await link.set('up')
    await untilCloudIs(world, 'reachable')
    await reads.compare('back', 'there')
    await checkTakenAway(world, findings, 'back')
  })
  await findings.part('a pod is deleted', () => checkDropped(world, findings, () => cutOff(world)))
  await findings.part('what is left lying about', async () => {
    await checkSecrecy(world, findings, issued === undefined ? [] : [issued.token, issued.vault])
  })
  findings.note(`${persons.size} callers`)
}

/** What the edge has no role for is no secret to its administrator. */
async function checkPassedThrough(world: RightsWorld, findings: Findings): Promise<void> {
  const { body } = await world.through('admin').ask('/ake/status')
  const { passedThrough } = JSON.parse(body) as { passedThrough: { resource: string; group: string; why: string }[] }
  const said = passedThrough.filter(({ resource, group }) => `${resource}.${group}` === 'widgets.rights.example.com')
  findings.check(
    said.some(({ why }) => why !== ''),
    `ake status says that ${widgets} is passed through`,
    passedThrough,
  )
}

/** What the API server would let this node do with its certificate does not go up in any other name. */
async function checkAlone(world: RightsWorld, findings: Findings): Promise<void> {
  const path = `/api/v1/nodes/${nodes[1]}/status`
  const body = Buffer.from('{"status":{"phase":"Running"}}')
  const asked = { method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' }, body }
  const told = await world.through('unmapped').ask(path, asked)
  const help = `--client-credential system:node:${nodes[1]}=CERT,KEY`
  findings.check(told.status === 403 && told.body.includes(help), 'a write that no credential goes with', told)
  const { status } = await world.direct('unmapped').ask(`${path}?dryRun=All`, asked)
  findings.equal(status, 200, 'which the API server itself would take')
}

async function cutOff(world: RightsWorld): Promise<void> {
  await world.link.set('blackhole')
  await untilCloudIs(world, 'unreachable')
}

async function untilCloudIs(world: RightsWorld, wanted: string): Promise<void> {
  const isSo = async () => {
    const { body } = await world.through('admin').ask('/ake/status')
    return (JSON.parse(body) as { upstream: { state: string } }).upstream.state === wanted
  }
  await until(isSo, `the cloud is ${wanted}`, { withinMs: stateMsMax, everyMs: 100 })
}
