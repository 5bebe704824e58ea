/** What the demo shows, as text: a table for a terminal, a line for a pipe. */
import { aligned, size } from '../terminal.ts'
import type { Lag } from './ledger.ts'
import type { LinkBytes } from './linkcost.ts'

export type DemoFigures = {
  readonly places: readonly DemoPlace[]
  readonly isCut: boolean
  /** Since the line is as it is. */
  readonly forMs: number
  readonly cuts: number
  readonly bytes: LinkBytes
  readonly watches: { readonly open: number; readonly opened: number }
  readonly events: number
  readonly writes: number
  readonly reads: number
  readonly refused: number
}

export type DemoPlace = {
  readonly name: string
  readonly objects: number
  readonly version: number
  /** Undefined where changes are made. */
  readonly lag: Lag | undefined
}

export function figuresTable(figures: DemoFigures): string {
  const rows = figures.places.map(({ name, objects, version, lag }) => ({
    cells: [name, String(objects), String(version), lag === undefined ? 'changes are made here' : lagText(lag)],
  }))
  const { isCut, forMs, watches, events, writes, reads, refused } = figures
  const facts = [
    ['Line', `${isCut ? 'cut' : 'up'} for ${seconds(forMs)}, ${counted(figures.cuts, 'cut')} so far`],
    ['Bytes', bytesText(figures.bytes)],
    [
      'Watches',
      `${watches.open} of ${watches.opened} open since the start; ${counted(writes, 'change')}, ${events} events at both edges`,
    ],
    ['Reads', `${reads} at the edges, ${refused} refused`],
  ]
  return `${aligned(['PLACE', 'OBJECTS', 'VERSION', 'LAG'], rows)}\n${aligned(
    undefined,
    facts.map((cells) => ({ cells })),
  )}`
}

export function figuresLine(figures: DemoFigures): string {
  const { places, isCut, watches, reads, refused } = figures
  const shown = places.map(({ name, objects, version, lag }) => {
    const behind = lag === undefined ? '' : `, lag ${lagText(lag)}`
    return `${name} ${objects} objects at ${version}${behind}`
  })
  return [
    `line ${isCut ? 'cut' : 'up'}`,
    ...shown,
    `link ${bytesText(figures.bytes)}`,
    `${watches.open} of ${watches.opened} watches open`,
    `${reads} reads, ${refused} refused`,
  ].join(' · ')
}

function bytesText({ start, since }: LinkBytes): string {
  const begun = `${size(start)} for the first sync and the API's documents`
  if (since === undefined) return begun
  return `${size(since.line)}, TLS and all, where plain watches take ${size(since.plain)} of JSON alone; before that ${begun}`
}

function lagText({ changes, ms }: Lag): string {
  return changes === 0 ? 'none' : `${counted(changes, 'change')}, ${seconds(ms)}`
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)}s`
}
