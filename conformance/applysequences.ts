/**
 * Generated sequences of writes by several managers, on `ake serve` and on a real kube-apiserver: objects, managed fields
 * and refusals are compared after every step. What fails is made as small as it can be and printed with its seed, which
 * AKE_SEED repeats; AKE_SEEDS says how many sequences there are. In the last batch `ake serve` is started again after each
 * step: whatever it remembers of owners must be in what it stored.
 */
import { join } from 'node:path'
import { defineAll, makeNamespace } from './apply/define.ts'
import { generate } from './apply/generate.ts'
import { type LockstepParts, type Played, playAll } from './apply/lockstep.ts'
import { describeStep, type Scenario } from './apply/scenario.ts'
import { done, shrink, signatureOf } from './apply/shrink.ts'
import { Side } from './exchange.ts'
import { startOracle } from './oracle.ts'
import type { Step, StepContext, StepResult } from './step.ts'

const sequencesDefault = 2_000
const sequencesAll = 6_000
/** Together in step: the second that keeps two steps apart is waited for by all of them. */
const batchMax = 400
/** Different ones; the others are counted. */
const shrunkMax = 6
const shownMax = 5
const shownWidth = 500

export const step: Step = { name: 'apply-sequences', tier: 'default', minutes: 3, run }

async function run(context: StepContext): Promise<StepResult> {
  const first = Number(process.env.AKE_SEED ?? 1)
  const given = process.env.AKE_SEEDS ?? (process.env.AKE_SEED === undefined ? undefined : '1')
  const count = Number(given ?? (context.all ? sequencesAll : sequencesDefault))
  // Not the shared one: thousands of objects are left behind.
  const { dir, signal, progress } = context
  const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
  const folder = join(dir, 'ake')
  let ake = await context.ake({ dir: folder })
  const restart = async () => {
    await ake.stop()
    ake = await context.ake({ dir: folder, port: ake.port })
  }
  const bench = new Bench({ real: new Side(oracle), ours: new Side(ake), signal })
  const failed: Played[] = []
  let steps = 0
  try {
    await bench.prepare()
    for (let at = 0; at < count; at += batchMax) {
      const seeds = Array.from({ length: Math.min(batchMax, count - at) }, (_, more) => first + at + more)
      const last = at + batchMax >= count
      const played = await bench.play(
        seeds.map((seed) => generate(seed, context.only)),
        last ? { between: restart } : {},
      )
      failed.push(...played.filter(differs))
      steps += played.reduce((sum, one) => sum + one.steps.length, 0)
      progress(`${at + seeds.length} sequences, ${steps} steps, ${failed.length} that differ`)
    }
    const notes = [...(await shrunk(failed, bench)), `${count} sequences of ${steps} steps from seed ${first}`]
    return { passed: count - failed.length, failed: failed.length, notes }
  } finally {
    bench.close()
    oracle.stop()
  }
}

/** Both servers, with a namespace for each batch of sequences. */
class Bench {
  readonly #parts: Pick<LockstepParts, 'real' | 'ours' | 'signal'>
  #batches = 0

  constructor(parts: Pick<LockstepParts, 'real' | 'ours' | 'signal'>) {
    this.#parts = parts
  }

  prepare(): Promise<void> {
    return defineAll([this.#parts.real, this.#parts.ours])
  }

  async play(scenarios: readonly Scenario[], more: Partial<LockstepParts> = {}): Promise<Played[]> {
    const { real, ours } = this.#parts
    const namespace = `batch-${++this.#batches}`
    await makeNamespace([real, ours], namespace)
    return playAll({ ...this.#parts, namespace, seconds: true, toTheEnd: false, ...more }, scenarios)
  }

  close(): void {
    this.#parts.real.close()
    this.#parts.ours.close()
  }
}

function differs({ steps }: Played): boolean {
  return (steps.at(-1)?.open.length ?? 0) > 0
}

/** The shortest of each sort, made shorter still. */
async function shrunk(failed: readonly Played[], bench: Bench): Promise<string[]> {
  const sorts = [...Map.groupBy(failed, signatureOf)].toSorted(([, a], [, b]) => b.length - a.length)
  const notes: string[] = []
  for (const [signature, alike] of sorts.slice(0, shrunkMax)) {
    const [shortest] = alike.toSorted((a, b) => a.steps.length - b.steps.length) as [Played]
    const seconds = signature.includes('time')
    const least = await shrink(shortest, (scenarios) => bench.play(scenarios, { seconds }))
    notes.push(`${alike.length} sequences differ in ${signature}`, describe(least))
  }
  if (sorts.length > shrunkMax) notes.push(`… and ${sorts.length - shrunkMax} more sorts of differences`)
  return notes
}

function describe(played: Played): string {
  const { name, steps } = done(played)
  const seed = /^seed (\d+)/.exec(name)?.[1]
  return [
    `  ${name}, made smaller (AKE_SEED=${seed} repeats the whole sequence)`,
    ...steps.map((one) => `    ${describeStep(one)}`),
    ...(played.steps.at(-1)?.open ?? [])
      .slice(0, shownMax)
      .map(({ field, real, ours }) => `    ${field}\n      real ${short(real)}\n      ours ${short(ours)}`),
  ].join('\n')
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > shownWidth ? `${text.slice(0, shownWidth)}…` : text
}
