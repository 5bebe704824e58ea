/**
 * Real informers of client-go through `ake edge` while everything happens to it that happens in the field, in an order that a
 * seed tells: no client lists again, nothing is lost, nothing lingers, no version goes back. The failures of others that this
 * would show: events dropped while a list is replaced, half-open watches that linger, deletions that are lost and ghosts that
 * stay, a half-open line taken for whole, a watch that stops for good, objects that double.
 */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { faultsOf, type Informers, type Standing, startInformers } from '../phases.ts'
import {
  chooseSeed,
  type Edge,
  type Random,
  type Site,
  seeded,
  startSite,
  untilReachable,
  watchesUpstream,
} from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import type { Trouble } from './trouble.ts'
import { hubTroubles, unnoticed, unnoticedBehindHubs } from './troubles.ts'

const churnPerSecond = 40
/** Of all writes of the churn; the truth is compared with what informers hold when this long has passed at most. */
const verifySeconds = 90
const healedMsMax = 60_000
const faultsShown = 6
/** Enough writes that no version from before a restore is reached again by what an API server writes at its start. */
const writesBeforeRestore = 500
/** Interests come back spread over seconds, and a list that names a lost version waits three. */
const toldMsMax = 8_000
/** The gate repeats one order of troubles, as its soak does, and `--all` looks for others. This one once found a damaged object's ghost. */
const gateSeed = 11_553_255
const resources = ['pods', 'configmaps', 'secrets', 'widgets'] as const

export const step: Step = { name: 'edge-informers', tier: 'default', minutes: 6, run: (context) => run(context, 0) }

/** The same through two hubs and their links: hubs are ended, too, and edges move between them. */
export const hubStep: Step = { name: 'hub-informers', tier: 'default', minutes: 8, run: (context) => run(context, 2) }

type World = {
  readonly context: StepContext
  readonly site: Site
  readonly random: Random
  /** Two edges: one whose clients ask for everything, one with a kubelet's clients alone. */
  readonly wide: Edge
  readonly all: Informers
  readonly node: Informers
}

async function run(context: StepContext, hubs: number): Promise<StepResult> {
  const seed = chooseSeed({ all: context.all, gate: gateSeed })
  context.progress(`AKE_SEED=${seed}`)
  const { dir, signal, progress } = context
  const site = await startSite({ dir, signal, progress, hubs })
  const notes: string[] = []
  let passed = 0
  try {
    const world = await begin(context, site, seeded(seed))
    const parts: [string, () => Promise<string>][] = [
      ['watches', () => oneWatch(world)],
      ['troubles', () => endure(world)],
      ['lingering', () => oneWatch(world)],
      ['restored', () => restored(world)],
      ['bumped', () => bumped(world)],
    ]
    for (const [name, part] of parts) {
      if (!context.only(name)) continue
      try {
        notes.push(`${name}: ${await part()}`)
        passed++
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error)
        const all = join(context.dir, 'faults.txt')
        await writeFile(all, `${text}\n`)
        const shown = text.split('\n').slice(0, faultsShown + 1)
        notes.push(`${name}: ${shown.join('\n')}`, `all faults are in ${all}; AKE_SEED=${seed} repeats it`)
        return { passed, failed: 1, notes }
      }
    }
    await Promise.all([world.all.finish(), world.node.finish()])
    return { passed, failed: 0, notes }
  } finally {
    await site.stop()
  }
}

async function begin(context: StepContext, site: Site, random: Random): Promise<World> {
  const { dir, signal, progress } = context
  const [wide, narrow] = [await site.edge('edge'), await site.edge('edge-node')]
  const asked = { direct: site.oracle.kubeconfig, signal, progress }
  // These write only at their start: the keys belong to the others' writers afterwards.
  const node = await startInformers({
    ...asked,
    kubeconfig: narrow.kubeconfig,
    dir: join(dir, 'edge-node'),
    node: 'node-2',
    keys: 60,
  })
  const all = await startInformers({ ...asked, kubeconfig: wide.kubeconfig, dir: join(dir, 'edge') })
  wide.watches = all.count
  narrow.watches = node.count
  progress(`${all.count} informers of everything, ${node.count} of one node`)
  return { context, site, random, wide, all, node }
}

/** Each resource costs each edge one watch, however many informers ask for it in however many ways; behind a hub all edges together. */
async function oneWatch({ site, wide, context }: World): Promise<string> {
  const { ownWatches: before } = site
  await untilReachable(site, true, healedMsMax)
  let counted: string[] = []
  const expected = { pods: 2, configmaps: 1, secrets: 1, widgets: 1 }
  const settled = async () => {
    const now = await watchesUpstream(site.oracle)
    counted = resources.map((name) => `${name} ${(now.get(name) ?? 0) - (before.get(name) ?? 0)}`)
    const isRight = (count: number, wanted: number) =>
      site.hubs.length === 0 ? count === wanted : count > 0 && count <= site.hubs.length
    return resources.every((name) => isRight((now.get(name) ?? 0) - (before.get(name) ?? 0), expected[name]))
  }
  const waiting = { withinMs: healedMsMax, everyMs: 100, signal: context.signal }
  await until(settled, 'one upstream watch for each resource', waiting).catch(async (error: Error) => {
    const { interests } = await wide.status()
    const shown = interests.map(
      (one) => `${one.resource} ${one.namespace ?? '*'} ${one.labels ?? ''} ${one.fields ?? ''} ${one.state}`,
    )
    throw new Error(
      `${error.message}: ${counted.join(', ')} instead of ${JSON.stringify(expected)}\n${shown.join('\n')}`,
    )
  })
  const { interests } = await wide.status()
  return `${counted.join(', ')} watches upstream for ${interests.length} interests and two edges`
}

/** The gate leaves out what an edge alone has to do with: `edge-informers` has it. */
function troublesOf({ site, context }: World): readonly Trouble[] {
  if (site.hubs.length === 0) return unnoticed
  return context.all ? unnoticedBehindHubs : hubTroubles
}

async function endure(world: World): Promise<string> {
  const { context, site, random, all } = world
  const rounds = context.all ? 4 : 1
  let count = 0
  for (let round = 0; round < rounds; round++) {
    for (const trouble of random.shuffled(troublesOf(world))) {
      await all.churn(churnPerSecond)
      const begunMs = performance.now()
      await trouble.run(site, random)
      // Sometimes the next one comes before this one has healed.
      await pause(random.below(3_000), undefined, { signal: context.signal })
      const tookMs = Math.round(performance.now() - begunMs)
      context.progress(`${trouble.name} (${tookMs} ms)`)
      count++
      refuse([...faultsOf(await all.status()), ...faultsOf(await world.node.status())], trouble.name)
    }
  }
  await untilReachable(site, true, healedMsMax)
  const standings = await verify(world, 'in the end')
  return `${count} troubles, ${figures(standings)}`
}

/** Every informer holds what the API server has, and none was made to list again, or only as often as it is allowed. */
async function verify({ all, node }: World, when: string, relistsMax = 0): Promise<readonly Standing[]> {
  // The first one ends the churn: only then the world stands still for both.
  const standings = [...(await all.verify(verifySeconds)), ...(await node.verify(verifySeconds))]
  refuse(faultsOf(standings, relistsMax), when)
  return standings
}

function refuse(faults: readonly string[], when: string): void {
  if (faults.length === 0) return
  throw new Error(`${when}: ${faults.length} faults:\n${faults.join('\n')}`)
}

function figures(standings: readonly Standing[]): string {
  const sum = (of: (one: Standing) => number) => standings.reduce((total, one) => total + of(one), 0)
  return (
    `${standings.length} informers, ${sum((one) => one.events)} events, ${sum((one) => one.watches)} watches, ` +
    `${sum((one) => one.repeated)} deletions told twice, ${sum((one) => one.relists)} relists`
  )
}

/** Writes on, sets the API server back to how it was before, behind a cut line, and lets the edges find out. */
async function setBack(world: World, bump: number): Promise<void> {
  const { site, all, node, context } = world
  const copy = await site.oracle.snapshot()
  await all.write(writesBeforeRestore)
  await verify(world, 'before the restore', Number.POSITIVE_INFINITY)
  context.progress(`setting the API server back by ${writesBeforeRestore} writes`)
  await site.link.set('refuse')
  await site.oracle.restore(copy, { bump })
  await all.restored()
  await node.restored()
  await site.link.set('up')
}

/** An informer that holds a version which no longer exists is told so once, and lists once. */
async function restored(world: World): Promise<string> {
  await setBack(world, 0)
  await verify(world, 'after the restore', 1)
  // An informer that holds what did not change may look right before it is told: each is given time to be told.
  await pause(toldMsMax, undefined, { signal: world.context.signal })
  const standings = await verify(world, 'a while after the restore', 1)
  const wrong = standings.filter(({ name, relists, reasons }) => {
    // Of what nobody wrote, versions may be old enough to exist.
    if (relists !== 1) return relists !== 0 || !name.startsWith('secrets')
    return (reasons?.[0]?.match(/Code:410|status 410/g) ?? []).length !== 1
  })
  refuse(
    wrong.map(({ name, relists, reasons }) => `${name} listed ${relists} times: ${reasons?.join('; ')}`),
    'one 410 and one list each after the restore',
  )
  return figures(standings)
}

/** Versions went on: an ordinary gap, however old the state is. */
async function bumped(world: World): Promise<string> {
  const before = [...(await world.all.status()), ...(await world.node.status())]
  await setBack(world, 1_000_000)
  const standings = await verify(world, 'after the restore', Number.POSITIVE_INFINITY)
  const more = standings.filter((one, at) => one.relists !== before[at]?.relists)
  refuse(
    more.map((one) => `${one.name} listed again: ${one.reasons?.at(-1)}`),
    'after the restore with bumped revisions',
  )
  return figures(standings)
}
