/**
 * Says when files may have changed, by looking: `fs.watch` misses renames, and the swapped links by which mounted secrets
 * are renewed. It only signals that a file may have changed; the reader compares contents.
 */
import { stat } from 'node:fs/promises'
import { type Clock, sleep } from '../base/clock.ts'

type Parts = {
  /** May differ from look to look: a kubeconfig can come to name other files. */
  readonly paths: () => readonly string[]
  readonly everyMs: number
  readonly clock: Clock
  readonly changed: () => Promise<void>
}

/** Looks until the signal; `changed` is called with nothing else under way. */
export async function followFiles({ paths, everyMs, clock, changed }: Parts, signal: AbortSignal): Promise<void> {
  // Once more at the start: a file may have changed between the first reading and now.
  let known = ''
  while (!signal.aborted) {
    const marks = await marksOf(paths())
    if (signal.aborted) return
    if (marks !== known) {
      known = marks
      await changed()
    }
    await sleep(clock, everyMs, signal)
  }
}

async function marksOf(paths: readonly string[]): Promise<string> {
  const marks = await Promise.all(
    paths.map(async (path) => {
      try {
        const { mtimeNs, size, ino } = await stat(path, { bigint: true })
        return `${path} ${mtimeNs} ${size} ${ino}`
      } catch {
        return `${path} none`
      }
    }),
  )
  return marks.join('\n')
}
