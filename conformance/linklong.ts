/**
 * The long run of the link: the random lives and the hostile frames of the unit tests of the hub and the link, thousands of times
 * what `npm run check` has of them. Needs nothing but Node. Slices of seeds run in processes of their own, one for each core; one
 * that fails is named with the command that repeats it. AKE_SEED repeats a whole run.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Findings } from './findings.ts'
import { chooseSeed } from './site.ts'
import type { Step, StepContext, StepResult } from './step.ts'

const root = join(import.meta.dirname, '..')

type Part = {
  readonly name: string
  readonly file: string
  /** What is counted, and the variable that says how many. */
  readonly unit: 'lives' | 'frames' | 'sequences'
  readonly total: number
  /** Of one process: some seconds, so that all cores are busy to the end. */
  readonly slice: number
}

const variables = { lives: 'AKE_SEEDS', frames: 'AKE_FRAMES', sequences: 'AKE_SEEDS' } as const

const parts: readonly Part[] = [
  // A life of it has the whole mirrors of two hubs and takes thirty times as long as the others.
  { name: 'peers', file: 'src/hub/peers/simulation.test.ts', unit: 'lives', total: 1_000, slice: 50 },
  { name: 'session', file: 'src/link/session/simulation.test.ts', unit: 'lives', total: 10_000, slice: 500 },
  { name: 'linked', file: 'src/upstream/linked/lives.test.ts', unit: 'lives', total: 10_000, slice: 500 },
  { name: 'replicas', file: 'src/hub/replicas/simulation.test.ts', unit: 'lives', total: 10_000, slice: 2_500 },
  { name: 'sessionframes', file: 'src/link/session/hostile.test.ts', unit: 'frames', total: 1_000_000, slice: 200_000 },
  { name: 'streamframes', file: 'src/tunnel/hostile.test.ts', unit: 'frames', total: 1_000_000, slice: 250_000 },
  { name: 'bytes', file: 'src/link/frames/frames.test.ts', unit: 'frames', total: 1_000_000, slice: 250_000 },
  { name: 'sockets', file: 'src/hub/peers/hostile.test.ts', unit: 'sequences', total: 10_000, slice: 2_500 },
]

/** A slice takes seconds; one that takes so long does not end. */
const sliceMsMax = 300_000
/** Of what a failed slice printed. */
const shownMax = 3_000
const failuresMax = 5

export const step: Step = { name: 'link-long', tier: 'all', minutes: 10, run }

type Slice = { readonly part: Part; readonly seed: number; readonly count: number }

async function run({ only, progress, signal }: StepContext): Promise<StepResult> {
  const first = chooseSeed()
  const findings = new Findings()
  findings.note(`AKE_SEED=${first} repeats this run`)
  progress(`AKE_SEED=${first}`)
  const waiting = parts
    .filter(({ name }) => only(name))
    .flatMap((part) => slicesOf(part, first))
    .values()
  const done = new Map<Part, { count: number; ms: number }>()
  let failures = 0
  const work = async () => {
    for (const slice of waiting) {
      if (signal.aborted || failures >= failuresMax) return
      const began = performance.now()
      const wrong = await runSlice(slice, signal)
      if (wrong !== undefined) failures++
      if (wrong !== undefined) progress(`${command(slice)}\n${wrong}`)
      findings.check(wrong === undefined, command(slice), wrong)
      if (wrong !== undefined) findings.note(wrong)
      const { part, count } = slice
      const before = done.get(part) ?? { count: 0, ms: 0 }
      done.set(part, { count: before.count + count, ms: before.ms + performance.now() - began })
      progress(`${part.name}: ${before.count + count} of ${part.total} ${part.unit}`)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  if (signal.aborted) findings.check(false, 'its time was over before everything was lived and sent')
  for (const [{ name, unit, file }, { count, ms }] of done)
    findings.note(
      `${name}: ${count.toLocaleString('en')} ${unit} of ${file} in ${Math.round(ms / 1_000)} s of a process`,
    )
  return findings.result
}

/** Lives have seeds that follow each other; what fast-check makes up is another with each. */
function slicesOf(part: Part, first: number): Slice[] {
  const { total, slice } = part
  return Array.from({ length: Math.ceil(total / slice) }, (_, at) => {
    return { part, seed: first + at * slice, count: Math.min(slice, total - at * slice) }
  })
}

function settings({ part, seed, count }: Slice): Record<string, string> {
  return { AKE_SEED: String(seed), [variables[part.unit]]: String(count) }
}

function command(slice: Slice): string {
  const words = Object.entries(settings(slice)).map(([name, value]) => `${name}=${value}`)
  return `${words.join(' ')} npm test -- ${slice.part.file}`
}

/** What is wrong, if anything is: the end of what it printed, which begins with the life that failed. */
async function runSlice(slice: Slice, signal: AbortSignal): Promise<string | undefined> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(sliceMsMax)])
  const args = ['--test', '--test-reporter=spec', '--test-isolation=none', `--test-timeout=${sliceMsMax}`]
  const child = spawn(process.execPath, [...args, slice.part.file], {
    ...{ cwd: root, stdio: ['ignore', 'pipe', 'pipe'] as const },
    env: { ...process.env, ...settings(slice) },
  })
  const end = () => child.kill('SIGKILL')
  ending.addEventListener('abort', end)
  if (ending.aborted) end()
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  const [code] = (await once(child, 'close')) as [number | null]
  ending.removeEventListener('abort', end)
  if (code === 0) return undefined
  if (ending.aborted) return `it was ended after ${sliceMsMax / 1_000} s at the latest`
  const repeats = /^.*AKE_SEED=\d+ .*repeats it.*$/m.exec(printed)?.[0].trim()
  const failing = printed.slice(Math.max(0, printed.indexOf('failing tests:'))).slice(0, shownMax)
  return `${repeats ?? 'no life is named'}\n${failing}`
}
