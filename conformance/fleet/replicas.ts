/**
 * Two hubs that find each other by the EndpointSlices of their Service, as processes: one name at both is handled as at one. The newer link stays,
 * whichever hub it is at; with a newer certificate that one does, whichever came first; and each knows whom the other holds.
 */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Findings } from '../findings.ts'
import { state } from '../hub/objects.ts'
import { HubbedWorld } from '../hub/world.ts'
import { issueEdge } from '../hubs.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { Box } from './box.ts'
import { publishHubs, serviceWords } from './service.ts'

export const step: Step = { name: 'fleet-replicas', tier: 'default', minutes: 2, run }

const execute = promisify(execFile)
const program = join(import.meta.dirname, '..', '..', 'bin', 'ake')
type HubStatus = {
  readonly edges: readonly { readonly name: string }[]
  readonly others?: readonly { readonly edges: readonly { readonly name: string }[] }[]
}

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  const world = await HubbedWorld.open(context, undefined, { hubs: [serviceWords, serviceWords] })
  try {
    await publishHubs(world.oracle, world.hubs)
    await findings.part('they find each other', () => checkLines(world, findings))
    await findings.part('one name at both', () => checkName(world, findings))
    await findings.part('a newer certificate', () => checkCertificate(world, findings))
    return findings.result
  } finally {
    await world.stop()
  }
}

async function checkLines(world: HubbedWorld, findings: Findings): Promise<void> {
  const lines = async () =>
    (await Promise.all(world.hubs.map((hub) => hub.metrics()))).map(
      (text) => /^ake_hub_replicas (\d+)$/m.exec(text)?.[1],
    )
  await world.until('each has a line to the other', async () => (await lines()).join() === '1,1')
  findings.equal(await lines(), ['1', '1'], 'each has a line to the other, and none to itself')
}

/** Where a name has its link: `[here, told of by the other]` of each hub. */
async function whereabouts(world: HubbedWorld, name: string): Promise<string> {
  const all = await Promise.all(world.hubs.map((hub) => hub.status<HubStatus>()))
  const has = (edges: readonly { readonly name: string }[]) => (edges.some((one) => one.name === name) ? 1 : 0)
  return all.map(({ edges, others = [] }) => `${has(edges)}${has(others.flatMap((one) => one.edges))}`).join(' ')
}

async function linked(world: HubbedWorld, file: string, hub: 0 | 1): Promise<Box> {
  const box = await Box.open({ file, ports: [world.hubs[hub].port] })
  await world.until('a link', async () => box.link.current !== undefined)
  return box
}

async function checkName(world: HubbedWorld, findings: Findings): Promise<void> {
  const shared = { state, kubeconfig: world.oracle.kubeconfig }
  const file = await issueEdge(world.context.dir, 'twice', shared)
  for (const [first, second] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const older = await linked(world, file, first)
    const at = first === 0 ? '10 01' : '01 10'
    await world.until('both hubs know of it', async () => (await whereabouts(world, 'twice')) === at)
    const startedMs = performance.now()
    const newer = await linked(world, file, second)
    const why = /a newer link with the same certificate/
    await world.until('the older link ends', async () => older.link.current === undefined && why.test(older.link.why))
    findings.note(`the older link ended ${Math.round(performance.now() - startedMs)} ms after the newer was dialled`)
    findings.check(why.test(older.link.why), 'it is told why', older.link.why)
    await world.until(
      'one hub has it',
      async () => (await whereabouts(world, 'twice')) === (first === 0 ? '01 10' : '10 01'),
    )
    findings.check(newer.link.current !== undefined, 'the newer one stays')
    const { stdout } = await execute(program, ['hub', 'edges', '--health', world.hubs[first].health])
    findings.check(/^twice /m.test(stdout), '"ake hub edges" of the other hub has it', stdout)
    await Promise.all([older.end(), newer.end()])
    await world.until('it is gone from both', async () => (await whereabouts(world, 'twice')) === '00 00')
  }
}

/** An old credential that somebody kept must not take the name from the one that was issued since. */
async function checkCertificate(world: HubbedWorld, findings: Findings): Promise<void> {
  const shared = { state, kubeconfig: world.oracle.kubeconfig }
  const kept = join(world.context.dir, 'kept')
  await mkdir(kept, { recursive: true })
  const old = await issueEdge(kept, 'again', shared)
  const file = await issueEdge(world.context.dir, 'again', shared)
  const rightful = await linked(world, file, 0)
  const stranger = await Box.open({ file: old, ports: [world.hubs[1].port] })
  const ended = () => stranger.link.current === undefined && /newer certificate/.test(stranger.link.why)
  await world.until('the older certificate is refused at the other hub', async () => ended())
  findings.check(ended(), 'the older certificate lost', stranger.link.why)
  findings.check(rightful.link.current !== undefined && rightful.gapsMs.length === 1, 'the newer one has kept its link')
  await Promise.all([rightful.end(), stranger.end()])
}
