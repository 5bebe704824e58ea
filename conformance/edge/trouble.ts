/** One trouble of an edge: it happens, passes, and leaves the line whole and everything running. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Mode } from '../link.ts'
import type { Random, Site } from '../site.ts'

/** What a disk does, other than refusing for a while: every run of the soak has met each. */
export const diskFaults = ['bit flips', 'full disk', 'lost index'] as const

export type DiskFault = (typeof diskFaults)[number]

export type Trouble = {
  readonly name: string
  /** What it does to a disk, where that is its point. */
  readonly fault?: DiskFault
  /** How often each client lists again for it, at most. */
  readonly relists?: number
  run(site: Site, random: Random): Promise<void>
}

/** What the line does during it; it is whole again afterwards. */
export async function during(site: Site, mode: Mode, body: () => Promise<void>): Promise<void> {
  await site.link.set(mode)
  try {
    await body()
  } finally {
    await site.link.set('up')
  }
}

export function rest(site: Site, ms: number): Promise<void> {
  return pause(ms, undefined, { signal: site.signal })
}
