/** Texts as YAML prints them, in pieces where they are long: as a block, folded at 80 columns, or escaped between quotes. */

export const LINE_WIDTH = 80
/** Characters made at once. */
const PIECE_MAX = 16 * 1024

/** `margin` is a line's end and the indentation of the next; `around` stands before and behind. */
type Place = { readonly column: number; readonly margin: string; readonly around?: string }

/** Every line on one of its own. */
export function* literalText(text: string, margin: string): Generator<string, void, void> {
  const hint = /^[ \n]/.test(text) ? '2' : ''
  const chomp = !text.endsWith('\n') ? '-' : text === '\n' || text.endsWith('\n\n') ? '+' : ''
  // The line's end that ends the text is told by the mark.
  const size = text.length - (text.endsWith('\n') ? 1 : 0)
  let out = `|${hint}${chomp}`
  for (let at = 0; at <= size; ) {
    const found = text.indexOf('\n', at)
    const end = found < 0 || found > size ? size : found
    out += end === at ? '\n' : margin + text.slice(at, end)
    at = end + 1
    if (out.length > PIECE_MAX) {
      yield out
      out = ''
    }
  }
  yield chomp === '-' ? out : `${out}\n`
}

/** Breaks at single spaces once the line has grown beyond its width. Every character takes one place in the text. */
export function* foldedText(text: string, { column, margin, around = '' }: Place): Generator<string, void, void> {
  let out = around
  let at = column
  let from = 0
  let counted = 0
  const last = text.length - 1
  // As long as it fits, where it could be broken does not matter.
  const start = column + text.length <= LINE_WIDTH ? -1 : text.indexOf(' ', 1)
  for (let space = start; space !== -1 && space < last; space = text.indexOf(' ', space + 1)) {
    at += space - counted
    counted = space
    if (at <= LINE_WIDTH || text[space - 1] === ' ' || text[space + 1] === ' ') continue
    out += text.slice(from, space) + margin
    from = counted = space + 1
    at = margin.length - 1
    if (out.length <= PIECE_MAX) continue
    yield out
    out = ''
  }
  yield out + text.slice(from) + around
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\0': '\\0',
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\x1b': '\\e',
  '"': '\\"',
  '\\': '\\\\',
  '\x85': '\\N',
  '\u2028': '\\L',
  '\u2029': '\\P',
}

/** What stands in double quotes as it is; a space does too, unless the line is broken there. */
const ORDINARY = /[!#-[\]-~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]+/y

/** Inside double quotes a break may also come before more spaces; a backslash keeps those. */
export function* escapedText(text: string, { column, margin }: Place): Generator<string, void, void> {
  let out = '"'
  let at = column
  const last = text.length - 1
  for (let index = 0; index < text.length; ) {
    ORDINARY.lastIndex = index
    const [run] = ORDINARY.exec(text) ?? []
    if (run !== undefined) {
      out += run
      at += run.length
      index += run.length
    } else if (text[index] === ' ' && text[index - 1] !== ' ' && at > LINE_WIDTH && index > 0 && index < last) {
      const keep = text[index + 1] === ' ' ? '\\' : ''
      out += margin + keep
      at = margin.length - 1 + keep.length
      index++
    } else {
      const code = text.codePointAt(index) as number
      const written = code === 0x20 ? ' ' : escapeOf(code)
      out += written
      at += written.length
      index += code > 0xffff ? 2 : 1
    }
    if (out.length <= PIECE_MAX) continue
    yield out
    out = ''
  }
  yield `${out}"`
}

function escapeOf(code: number): string {
  const known = ESCAPES[String.fromCodePoint(code)]
  if (known !== undefined) return known
  const hex = (width: number) => code.toString(16).toUpperCase().padStart(width, '0')
  return code <= 0xff ? `\\x${hex(2)}` : code <= 0xffff ? `\\u${hex(4)}` : `\\U${hex(8)}`
}
