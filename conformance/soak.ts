/**
 * `npm run soak -- [--minutes N] [--seed S] [--troubles WORDS]`: random troubles, told by a seed, while informers, writers,
 * readers and probers of every kind work through an edge; after each of them a certificate or a key is renewed. What must hold
 * at the end of a proof must hold here all the time. A short one, which renews nothing, is the step `edge-soak` of
 * `npm run conformance`. `--troubles`, or AKE_TROUBLES, draws only those whose names contain one of the words, which commas divide.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { disk, fullDisk } from './edge/disks.ts'
import { type Clients, pasts, untilSame } from './edge/pasts.ts'
import { prepareRotations, Rotations } from './edge/rotations.ts'
import { type DiskFault, diskFaults, type Trouble } from './edge/trouble.ts'
import { quickTroubles, troubles } from './edge/troubles.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import { faultsOf, startInformers } from './phases.ts'
import { Truth } from './shown.ts'
import { chooseSeed, type Edge, type Random, seeded, startSite, untilReachable } from './site.ts'
import { SmallDisk } from './smalldisk.ts'
import { Prober, prepareProbing, Reader, Through } from './soakers.ts'
import type { Step, StepResult } from './step.ts'

const churnPerSecond = 30
/** Longer than a moment's trouble takes to be noticed and undone, short enough for a short run. */
const otherClusterAfter = '4s'
const healedMsMax = 60_000
/** client-go waits up to a minute (30 s and as much again by chance) before it asks again after several failures. */
const verifySeconds = 90
/** After so many troubles the world stands still for a moment, and everything is compared. */
const verifyEvery = 6
/** RssAnon of an edge of this size: beyond it something grows that should not. */
const memoryMbMax = 200
const memoryEveryMs = 1_000
const faultsShown = 8
/** With its history at its largest an edge of this size takes less. */
const diskMb = 512
const stepMs = 75_000
/** A short run repeats one sequence, with a restored and another cluster in it, and an index lost where the log is damaged: long ones look for what none has met yet. */
const gateSeed = 15_771

export const step: Step = {
  name: 'edge-soak',
  tier: 'default',
  minutes: 3,
  async run({ dir, all, signal, progress }) {
    const seed = chooseSeed({ all, gate: gateSeed })
    // The API server's own troubles take most of a short run: one like them in four is enough there.
    const usual = all ? troubles : [...quickTroubles, ...troubles]
    const ms = all ? 4 * stepMs : stepMs
    return await soak({ dir, seed, ms, usual, renews: all, words: process.env.AKE_TROUBLES, signal, progress })
  },
}

type Soak = {
  readonly dir: string
  readonly seed: number
  readonly ms: number
  readonly usual: readonly Trouble[]
  /** Whether certificates and keys are renewed, too. */
  readonly renews: boolean
  /** Only troubles with one of these in their names. */
  readonly words: string | undefined
  readonly signal: AbortSignal
  readonly progress: (line: string) => void
}

function choose(words: string, from: readonly Trouble[]): readonly Trouble[] {
  const wanted = words.split(',').map((word) => word.trim())
  const found = [...new Set(from)].filter(({ name }) => wanted.some((word) => name.includes(word)))
  if (found.length === 0) throw new Error(`no trouble is named so: ${words}`)
  return found
}

/** One trouble of each kind that disks make, in any order: a run begins with them. */
function oneOfEach(from: readonly Trouble[], random: Random): Trouble[] {
  const kinds = diskFaults.map((fault) => from.filter((one) => one.fault === fault))
  return random.shuffled(kinds.filter((kind) => kind.length > 0).map((kind) => random.of(kind)))
}

async function soak({ dir, seed, ms, usual, renews, words, signal, progress }: Soak): Promise<StepResult> {
  progress(`AKE_SEED=${seed}`)
  const random = seeded(seed)
  const site = await startSite({ dir, signal, progress })
  const small = SmallDisk.mount(dir, join(dir, 'edge'), diskMb)
  let isWell = false
  const quit = new AbortController()
  const story: string[] = []
  try {
    await prepareProbing(site.oracle)
    const pointed = join(dir, 'pointed.kubeconfig')
    await writeKubeconfig(pointed, { ...site.oracle, url: site.link.url })
    const renewed = renews ? await prepareRotations(site.oracle) : undefined
    const args = renewed?.args ?? []
    const edge = await site.edge('edge', ['--other-cluster-after', otherClusterAfter, ...args], pointed)
    const informers = await startInformers({
      kubeconfig: edge.kubeconfig,
      direct: site.oracle.kubeconfig,
      dir,
      signal,
      progress,
    })
    const truth = new Truth()
    const through = new Through({ edge, truth, random: seeded(seed + 2) })
    const rotations = renewed && new Rotations({ site, pointed, edge, persons: renewed.persons })
    const workers = [
      new Prober({ edge, truth, path: '/api/v1/pods' }),
      new Prober({ edge, truth, path: '/api/v1/namespaces/churn-1/configmaps' }),
      new Reader({ edge, truth, random: seeded(seed + 1) }),
      through,
      ...(rotations?.callers ?? []),
    ]
    const clients: Clients = { informers, truth, through, pointed, progress, signal: quit.signal }
    const full = typeof small === 'string' ? { ...disk, fault: 'full disk' as const } : fullDisk(small, edge)
    const all = [...usual, ...pasts(clients), full]
    const chosen = words === undefined ? all : choose(words, all)
    const begin = oneOfEach([...new Set(chosen)], random)
    const met = new Map<DiskFault, number>()
    const memory = new Memory(edge)
    const running = [...workers, memory].map((worker) => worker.run(quit.signal))
    // Each caller is known before the first trouble: one that comes first without the cloud is another proof's.
    await rotations?.excused(async () => {})
    /** A client lists again for what the troubles so far excuse, and never otherwise. */
    let relists = 0
    const check = async (when: string) => {
      const standing = faultsOf(await informers.status(), relists)
      const found = [...standing, ...[...workers, memory].flatMap((worker) => worker.faults)]
      if (found.length > 0)
        throw new Error(`${when}: ${found.length} faults:\n${found.slice(0, faultsShown).join('\n')}`)
    }
    const compare = async (when: string) => {
      await untilReachable(site, true, healedMsMax)
      const found = faultsOf(await informers.verify(verifySeconds), relists)
      if (found.length > 0)
        throw new Error(`${when}: ${found.length} faults:\n${found.slice(0, faultsShown).join('\n')}`)
      await untilSame(site)
    }
    let count = 0
    try {
      const endMs = performance.now() + ms
      while (performance.now() < endMs) {
        await informers.churn(churnPerSecond)
        const trouble = begin.shift() ?? random.of(chosen)
        story.push(trouble.name)
        const begunMs = performance.now()
        const isOther = (trouble.relists ?? 0) > 0
        if (isOther && rotations !== undefined) await rotations.excused(() => trouble.run(site, random))
        else await trouble.run(site, random)
        await pause(random.below(4_000), undefined, { signal })
        relists += trouble.relists ?? 0
        if (trouble.fault !== undefined) met.set(trouble.fault, (met.get(trouble.fault) ?? 0) + 1)
        count++
        const tookMs = Math.round(performance.now() - begunMs)
        progress(`${count}. ${trouble.name} (${tookMs} ms), ${memory.figures}`)
        await check(trouble.name)
        if (isOther || count % verifyEvery === 0) await compare(`after ${count} troubles`)
        const rotation = rotations?.next
        if (rotation === undefined) continue
        story.push(rotation.name)
        await informers.churn(churnPerSecond)
        await rotation.run()
        progress(`   ${rotation.name}`)
        await check(rotation.name)
      }
      await compare('in the end')
      await check('in the end')
    } finally {
      quit.abort()
      await Promise.all(running)
    }
    const standings = await informers.status()
    const sum = (of: 'events' | 'watches' | 'relists') => standings.reduce((total, one) => total + one[of], 0)
    const unmet = words === undefined ? diskFaults.filter((fault) => !met.has(fault)) : []
    if (unmet.length > 0) throw new Error(`disk faults that were not met: ${unmet.join(', ')}`)
    const notes = [
      `AKE_SEED=${seed}: ${count} troubles, ${standings.length} informers, ${sum('events')} events, ${sum('watches')} watches, ${sum('relists')} relists`,
      `disk faults: ${[...met].map(([fault, times]) => `${fault} ${times} times`).join(', ')}`,
      ...(typeof small === 'string' ? [`full disk: a limit of file sizes instead, since ${small}`] : []),
      ...workers.map((worker) => worker.figures),
      memory.figures,
    ]
    await informers.finish()
    isWell = true
    return { passed: 1 + workers.length + 1, failed: 0, notes }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { passed: 0, failed: 1, notes: [text, `after ${story.join(', ')}`, `AKE_SEED=${seed} repeats it`] }
  } finally {
    quit.abort()
    await site.stop()
    if (typeof small !== 'string') small.unmount({ isKept: !isWell })
  }
}

/** How much memory of its own the edge has, from one moment to the next. */
class Memory {
  readonly #edge: Edge
  readonly faults: string[] = []
  #nowMb = 0
  #mostMb = 0

  constructor(edge: Edge) {
    this.#edge = edge
  }

  get figures(): string {
    return `RssAnon ${Math.round(this.#nowMb)} MB, at most ${Math.round(this.#mostMb)} MB`
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const mb = this.#edge.memoryMb()
      if (mb !== undefined) {
        this.#nowMb = mb
        this.#mostMb = Math.max(mb, this.#mostMb)
        if (mb > memoryMbMax && this.faults.length === 0)
          this.faults.push(`RssAnon of the edge is ${Math.round(mb)} MB`)
      }
      await pause(memoryEveryMs, undefined, { signal }).catch(() => {})
    }
  }
}

if (import.meta.main) {
  const options = { minutes: { type: 'string' }, seed: { type: 'string' }, troubles: { type: 'string' } } as const
  const { values } = parseArgs({ options })
  const minutes = Number(values.minutes ?? 10)
  const seed = values.seed === undefined ? chooseSeed() : Number(values.seed)
  if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
    console.error('usage: npm run soak -- [--minutes N] [--seed S] [--troubles WORDS]')
    process.exit(2)
  }
  const dir = await mkdtemp(join(tmpdir(), 'ake-soak-'))
  const quit = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => quit.abort(new Error('interrupted')))
  const progress = (line: string) => console.error(line)
  const { failed, notes = [] } = await soak({
    dir,
    seed,
    ms: minutes * 60_000,
    usual: troubles,
    renews: true,
    words: values.troubles ?? process.env.AKE_TROUBLES,
    signal: quit.signal,
    progress,
  })
  for (const note of notes) console.log(note)
  if (failed === 0) await rm(dir, { recursive: true, force: true })
  else console.log(`what was stored and logged is in ${dir}`)
  console.log(failed === 0 ? 'passed' : 'failed')
  process.exit(failed === 0 ? 0 : 1)
}
