/** Figures as a Markdown table that also reads well on a terminal. */

import type { Contestant, Figure } from './bench.ts'

const others: readonly Contestant[] = [
  ...(['ake serve', 'ake plain', 'nginx', 'kube-apiserver', 'node:sqlite', 'bare relay'] as const),
  ...(['without roles', 'without the edge', 'plain watch', 'gzip', 'WatchList', 'JSON', 'HTTP/2'] as const),
]

/** A column that no figure fills is left out. */
export function table(figures: readonly Figure[]): string {
  const cells: readonly (readonly [title: string, cell: (figure: Figure) => string])[] = [
    ['', ({ name }) => name],
    ['unit', ({ unit }) => unit],
    ...(['ake', ...others] as const).map((name) => [name, (figure: Figure) => number(figure.measured[name])] as const),
    ['ratio', ratio],
    ['goal', goal],
  ]
  const columns = cells.filter(([, cell]) => figures.some((figure) => cell(figure) !== ''))
  const head = columns.map(([title]) => title)
  const rows = figures.map((figure) => columns.map(([, cell]) => cell(figure)))
  const widths = head.map((title, index) => Math.max(3, title.length, ...rows.map((row) => row[index]!.length)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index]!)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

export function number(value: number | undefined): string {
  if (value === undefined) return ''
  return value >= 1_000 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)))
}

/** Ours as a multiple of the alternative the goal names, or of the only one there is. */
export function ratio({ measured, versus }: Figure): string {
  const other = versus ?? others.find((name) => measured[name] !== undefined)
  const alternative = other && measured[other]
  if (measured.ake === undefined || alternative === undefined) return ''
  return `${number(measured.ake / alternative)} × ${other}`
}

export function goal(figure: Figure): string {
  const { atMost, atLeast, versus } = figure
  const limit = atMost ?? atLeast
  if (limit === undefined) return ''
  const text = `${atMost === undefined ? '≥' : '≤'} ${number(limit)}${versus === undefined ? '' : ' ×'}`
  const met = isMet(figure)
  return met === undefined ? text : `${text} ${met ? '✓' : '✗'}`
}

export function isMet({ measured, atMost, atLeast, versus }: Figure): boolean | undefined {
  if (atMost === undefined && atLeast === undefined) return undefined
  const other = versus === undefined ? 1 : measured[versus]
  if (measured.ake === undefined || other === undefined) return undefined
  const value = measured.ake / other
  return atMost === undefined ? value >= (atLeast ?? 0) : value <= atMost
}
