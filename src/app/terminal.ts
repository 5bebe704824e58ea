/** Text for a terminal: tables and sentences that fit its width, and cannot speak to it. */

/** Half a screen, and the width in which tickets and chats quote it. */
export const columnsMax = 100
const gap = '   '
/** Cells give way down to this many characters; then the line is cut. */
const cellMin = 8
/** What stands under a row. */
const detailIndent = 4

export type TerminalRow = {
  readonly cells: readonly string[]
  /** Sentences that stand under it. */
  readonly details?: readonly string[]
}

/** Columns as wide as their widest cell; the first two give way where all are too wide, the last one goes on in the next line. */
export function aligned(head: readonly string[] | undefined, rows: readonly TerminalRow[]): string {
  const table = [...(head === undefined ? [] : [{ cells: head }]), ...rows].map(({ cells, ...more }: TerminalRow) => ({
    cells: cells.map(printable),
    ...more,
  }))
  const columns = Math.max(0, ...table.map(({ cells }) => cells.length))
  const widths = Array.from({ length: columns }, (_, at) =>
    Math.max(...table.map(({ cells }) => cells[at]?.length ?? 0)),
  )
  const lastMin = Math.min(widths.at(-1) ?? 0, columnsMax / 2)
  const before = widths.slice(0, -1)
  const over = () => before.reduce((sum, width) => sum + width + gap.length, 0) + lastMin - columnsMax
  while (over() > 0) {
    const widest = (before[0] ?? 0) >= (before[1] ?? 0) || columns < 3 ? 0 : 1
    if ((before[widest] ?? 0) <= cellMin) break
    before[widest] = (before[widest] as number) - 1
  }
  const indent = before.reduce((sum, width) => sum + width + gap.length, 0)
  const lines = table.map(({ cells, details = [] }) => {
    const left = before.map((width, at) => cut(cells[at] ?? '', width).padEnd(width) + gap).join('')
    const line = wrapped(`${left}${cells[columns - 1] ?? ''}`, indent)
    return (
      line + details.map((one) => wrapped(`${' '.repeat(detailIndent)}${printable(one)}`, detailIndent + 2)).join('')
    )
  })
  return lines.join('')
}

/** A sentence in lines that fit, those after the first one indented; a word that is too long is broken. */
export function wrapped(text: string, indent: number): string {
  let rest = text.trimEnd()
  let out = ''
  const roomOf = () => (out === '' ? columnsMax : columnsMax - indent)
  while (rest.length > roomOf()) {
    const room = roomOf()
    const at = rest.lastIndexOf(' ', room)
    // A break within the columns to the left would pull the table apart.
    const end = at > (out === '' ? indent : 0) ? at : room
    out += `${out === '' ? '' : ' '.repeat(indent)}${rest.slice(0, end).trimEnd()}\n`
    rest = rest.slice(end).trimStart()
  }
  return `${out}${out === '' ? '' : ' '.repeat(indent)}${rest}\n`
}

/** A command in lines that fit, which a shell takes for one. */
export function continued(command: string): string {
  let rest = command
  let out = ''
  while (rest.length > columnsMax) {
    // What goes on after the space of a break, or within a word, must begin at the margin.
    const end = rest.lastIndexOf(' ', columnsMax - 2) + 1 || columnsMax - 1
    out += `${rest.slice(0, end)}\\\n`
    rest = rest.slice(end)
  }
  return `${out}${rest}\n`
}

const charactersMax = 1_000 // two paths in a sentence, and what to do

/** Names, selectors and reasons come from elsewhere: they must not speak to the terminal, nor fill it. */
export function printable(text: string): string {
  const plain = text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, '?')
  return plain.length > charactersMax ? `${plain.slice(0, charactersMax)}…` : plain
}

function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text
}

/** In the units the options take. */
export function size(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti']
  let at = 0
  let value = bytes
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)}${units[at]}`
}
