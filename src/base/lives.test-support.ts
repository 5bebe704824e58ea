/**
 * How often tests that live random lives do so. Every run has seeds of its own, so that few lives in each of many runs find
 * what many in one would: `npm test` lives a part of them, the gate (`npm run check`) all; AKE_LIVES is a factor of ours, AKE_SEEDS
 * a number of lives in place of it, and the conformance step `link-long` lives thousands. AKE_SEED repeats a run.
 */
import { relative } from 'node:path'

const factor = Number(process.env.AKE_LIVES ?? 1)

export function lives(all: number): number {
  return Math.max(1, Number(process.env.AKE_SEEDS ?? Math.round(all * factor)))
}

/** Of the first life of this run, or of what fast-check makes up. */
export const firstSeed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 1e9))

type Lives = {
  /** `import.meta.filename` of the test. */
  readonly file: string
  /** How many there are at AKE_LIVES=1. */
  readonly all: number
  live(seed: number): void | Promise<void>
}

/**
 * One life after the other. Whatever goes wrong in one says how to repeat it: what it throws, and also what ends the process or the
 * test while it is lived (an exception of a timer, an unhandled rejection, a life without an end).
 */
export async function liveEach({ file, all, live }: Lives): Promise<void> {
  let seed = firstSeed
  const repeat = () => `AKE_SEED=${seed} AKE_SEEDS=1 npm test -- ${relative(process.cwd(), file)} repeats it`
  const atExit = () => console.log(`a life was not lived to its end: ${repeat()}`)
  process.on('exit', atExit)
  for (const end = seed + lives(all); seed < end; seed++) {
    try {
      await live(seed)
    } catch (error) {
      process.off('exit', atExit)
      throw new Error(`${repeat()}: ${error}`, { cause: error })
    }
  }
  process.off('exit', atExit)
}
