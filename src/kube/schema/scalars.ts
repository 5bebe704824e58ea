/** Scalars of built-in kinds with a syntax of their own, and Go's complaint when they break it. */

/** What Go's base64 decoder says; undefined for sound data. Line breaks are skipped, as it does. */
export function base64Problem(text: string): string | undefined {
  const bare = [...text].map((character, index) => ({ character, index })).filter((at) => !/[\r\n]/.test(at.character))
  const illegal = (index: number) => `illegal base64 data at input byte ${index}`
  for (const [place, { character, index }] of bare.entries()) {
    if (/[A-Za-z0-9+/]/.test(character)) continue
    // Padding may only close the last four characters.
    if (character !== '=' || place % 4 < 2) return illegal(index)
    if (place % 4 === 2 && bare[place + 1]?.character !== '=') return illegal(bare[place + 1]?.index ?? text.length)
    const after = bare[place - (place % 4) + 4]
    return after === undefined ? undefined : illegal(after.index)
  }
  const rest = bare.length % 4
  return rest === 0 ? undefined : illegal(bare[bare.length - rest]?.index ?? 0)
}

const TIME = '2006-01-02T15:04:05Z07:00'
const MICRO_TIME = '2006-01-02T15:04:05.000000Z07:00'

const DATE_PARTS: ReadonlyArray<readonly [layout: string, syntax: RegExp]> = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^\d{2}/],
  ['-', /^-/],
  ['02', /^\d{2}/],
  ['T', /^T/],
  ['15', /^\d{2}/],
  [':', /^:/],
  ['04', /^\d{2}/],
  [':', /^:/],
  ['05', /^\d{2}/],
]

const RANGES: Readonly<Record<string, readonly [name: string, low: number, high: number]>> = {
  '01': ['month', 1, 12],
  '15': ['hour', 0, 23],
  '04': ['minute', 0, 59],
  '05': ['second', 0, 59],
}

/** What Go's time.Parse says of an RFC 3339 time; `micro` wants exactly six digits of a second. */
export function timeProblem(text: string, micro: boolean): string | undefined {
  let rest = text
  const layout = micro ? MICRO_TIME : TIME
  const parsing = `parsing time ${JSON.stringify(text)}`
  const unlike = (part: string) => `${parsing} as "${layout}": cannot parse ${JSON.stringify(rest)} as "${part}"`
  for (const [part, syntax] of DATE_PARTS) {
    const found = syntax.exec(rest)
    if (found === null) return unlike(part)
    const range = RANGES[part]
    if (range !== undefined && (Number(found[0]) < range[1] || Number(found[0]) > range[2])) {
      return `${parsing}: ${range[0]} out of range`
    }
    rest = rest.slice(found[0].length)
  }
  const fraction = micro ? /^[.,]\d{6}(?!\d)/.exec(rest) : /^([.,]\d+)?/.exec(rest)
  if (fraction === null) return unlike('.000000')
  rest = rest.slice(fraction[0].length)
  const zone = /^(Z|[+-]\d{2}:\d{2})/.exec(rest)
  if (zone === null) return unlike('Z07:00')
  const extra = rest.slice(zone[0].length)
  if (extra !== '') return `${parsing}: extra text: ${JSON.stringify(extra)}`
  const [year, month, day] = text.slice(0, 10).split('-').map(Number) as [number, number, number]
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
  return day < 1 || day > days ? `${parsing}: day out of range` : undefined
}
