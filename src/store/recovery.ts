/** What a start makes of the log's end, once the index has read what counts: what is lost is named, what was torn is cut off. */
import type { Applier } from './apply.ts'
import type { Aside, Loss } from './aside.ts'
import type { Base } from './base.ts'
import type { Ending } from './mark.ts'
import type { Position } from './segment.ts'
import { type Cut, findCuts, needsBase, newIdentity, tidyFiles } from './tidyfiles.ts'

type RecoveryParts = {
  readonly folder: string
  readonly aside: Aside
  readonly ending: Ending
  readonly base: Base | undefined
  /** Whether the index was made from the log just now. */
  readonly isRemade: boolean
  /** The one in use: where a note cannot be committed it is another afterwards. */
  applier(): Applier
  /** Changes what is noted besides the log's content, synced. */
  note(change: (applier: Applier) => void): void
}

type Recovered = {
  readonly end: Position
  readonly isWhole: boolean
  readonly last: number
  readonly identity: number
  readonly losses: readonly Loss[]
  readonly cuts: readonly Cut[]
  readonly lacksBase: boolean
}

export function recoverEnd(parts: RecoveryParts): Recovered {
  const { folder, aside, base, isRemade } = parts
  const losses = loseEnd(parts)
  const applier = parts.applier()
  const { counts } = applier.segments
  const end = applier.applied
  const cuts = findCuts(folder, end)
  const identity = applier.identity || newIdentity(folder)
  // Before anything is cut: nothing else will say that there was something, and the versions above it are about to be given out.
  if (cuts.length > 0 || applier.identity === 0) {
    parts.note((noted) => {
      noted.raise(cuts.reduce((sum, { bytes }) => sum + bytes, 0))
      noted.identity = identity
    })
  }
  const tidied = tidyFiles({ folder, end, counts, aside, base, isRemade })
  return { ...tidied, end, identity, losses, cuts, lacksBase: needsBase({ folder, end, counts, base }) }
}

/** The log ends before what is known to have been in it. */
function loseEnd({ folder, aside, ending, applier, note }: RecoveryParts): Loss[] {
  const { applied, identity } = applier()
  const hole = ending.lost(applied, identity || newIdentity(folder))
  if (hole === undefined) return []
  const loss = aside.note(hole)
  note((noted) => noted.lose(hole))
  return [loss]
}
