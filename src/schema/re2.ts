/**
 * Go's complaint about a pattern that RE2 does not know. JavaScript knows more (lookaheads, backreferences), and would
 * accept definitions that no real API server takes.
 */

/** The POSIX classes, as the inside of a JavaScript class. */
export const POSIX: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7f',
  blank: '\\t ',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

const REPEAT_MAX = 1000 // RE2's: a counted repetition is written out

class Fault extends Error {}

function fault(what: string, shown: string): Fault {
  return new Fault(`${what}: \`${shown}\``)
}

/** Undefined when there is nothing to complain about. */
export function re2Fault(source: string): string | undefined {
  try {
    scan(source)
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

function scan(source: string): void {
  let depth = 0
  /** What a repetition could repeat; for a repetition, where it began. */
  let last: 'nothing' | 'atom' | number = 'nothing'
  for (let at = 0; at < source.length; ) {
    const rest = source.slice(at)
    const repeat = /^(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??/.exec(rest)
    if (repeat !== null) {
      checkRepeat(repeat, last === 'nothing')
      if (typeof last === 'number') {
        throw fault('invalid nested repetition operator', source.slice(last, at + repeat[0].length))
      }
      last = at
      at += repeat[0].length
    } else if (rest.startsWith('(')) {
      const { length, opens } = group(rest)
      if (opens) {
        depth++
        last = 'nothing'
      }
      at += length
    } else if (rest.startsWith(')')) {
      if (--depth < 0) throw fault('unexpected )', source)
      last = 'atom'
      at++
    } else if (rest.startsWith('|')) {
      last = 'nothing'
      at++
    } else {
      const length = atom(rest)
      // An empty quotation is nothing that could be repeated.
      if (!/^\\Q(\\E|$)/.test(rest)) last = 'atom'
      at += length
    }
  }
  if (depth > 0) throw fault('missing closing )', source)
}

function checkRepeat([text, from, to]: RegExpExecArray, alone: boolean): void {
  const least = Number(from ?? 0)
  const most = to === undefined || to === '' ? least : Number(to)
  if (least > REPEAT_MAX || most > REPEAT_MAX || most < least) {
    throw fault('invalid repeat count', text.replace(/\?$/, ''))
  }
  if (alone) throw fault('missing argument to repetition operator', text)
}

/** What begins with a parenthesis: a group, or flags that stand alone. */
function group(rest: string): { readonly length: number; readonly opens: boolean } {
  if (!rest.startsWith('(?')) return { length: 1, opens: true }
  if (/^\(\?(P<.|<.)/s.test(rest)) {
    const end = rest.indexOf('>')
    const head = end < 0 ? rest : rest.slice(0, end + 1)
    if (!/^\(\?P?<\w+>$/.test(head)) throw fault('invalid named capture', head)
    return { length: head.length, opens: true }
  }
  const flags = /^\(\?(?:[imsU]+(?:-[imsU]+)?|-[imsU]+)?([:)])/.exec(rest)
  if (flags === null) {
    throw fault('invalid or unsupported Perl syntax', /^\(\?[imsU]*(?:-[imsU]*)?.?/s.exec(rest)?.[0] ?? rest)
  }
  return { length: flags[0].length, opens: flags[1] === ':' }
}

/** The length of one character, class, escape or quotation. */
function atom(rest: string): number {
  if (rest.startsWith('[')) return characterClass(rest)
  if (!rest.startsWith('\\')) return [...rest][0]?.length ?? 1
  if (rest.startsWith('\\Q')) {
    const end = rest.indexOf('\\E')
    return end < 0 ? rest.length : end + 2
  }
  return classEscape(rest) ?? (/^\\[AzbB]/.test(rest) ? 2 : characterEscape(rest).length)
}

/** `\d` and `\pN`: escapes that are sets; undefined for every other. */
function classEscape(rest: string): number | undefined {
  if (/^\\[dDsSwW]/.test(rest)) return 2
  if (!/^\\[pP]/.test(rest)) return undefined
  const found = /^\\[pP](?:\{(\^?)(\w+)\}|(\w))/.exec(rest)
  const name = found?.[2] ?? found?.[3] ?? ''
  try {
    new RegExp(`\\p{${name.length <= 2 ? name : `Script=${name}`}}`, 'u')
  } catch {
    throw fault('invalid character class range', found?.[0] ?? rest)
  }
  return found?.[0].length
}

type Character = { readonly length: number; readonly code: number }

const NAMED: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 }
const CODE_MAX = 0x10ffff

/** An escape that is one character. */
function characterEscape(rest: string): Character {
  const next = [...rest.slice(1, 3)][0]
  if (next === undefined) throw new Fault('trailing backslash at end of expression: ``')
  const octal = /^\\(0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest)
  if (octal !== null) return { length: octal[0].length, code: Number.parseInt(octal[1] ?? '0', 8) }
  const hex = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/.exec(rest)
  const code = Number.parseInt(hex?.[1] ?? hex?.[2] ?? 'x', 16)
  if (hex !== null && code <= CODE_MAX) return { length: hex[0].length, code }
  if (next === 'x') throw fault('invalid escape sequence', /^\\x(?:\{[0-9A-Fa-f]*|.?)/s.exec(rest)?.[0] ?? rest)
  const named = NAMED[next]
  if (named !== undefined) return { length: 2, code: named }
  if (/^[!-/:-@[-`{-~ \0-\x1f\x7f]$/.test(next)) return { length: 2, code: next.charCodeAt(0) }
  throw fault('invalid escape sequence', `\\${next}`)
}

function characterClass(source: string): number {
  let at = source.startsWith('[^') ? 2 : 1
  const one = (): Character => {
    const rest = source.slice(at)
    if (rest === '') throw fault('missing closing ]', source)
    if (rest.startsWith('\\')) return characterEscape(rest)
    const [character = ''] = rest
    const code = rest.codePointAt(0) ?? 0
    return { length: code > 0xffff ? 2 : character.length, code }
  }
  for (let first = true; first || source[at] !== ']'; first = false) {
    const rest = source.slice(at)
    const named = /^\[:\^?([^\]]*):\]/.exec(rest)
    if (named !== null) {
      if (!Object.hasOwn(POSIX, named[1] ?? '')) throw fault('invalid character class range', named[0])
      at += named[0].length
      continue
    }
    const set = rest.startsWith('\\') ? classEscape(rest) : undefined
    if (set !== undefined) {
      at += set
      continue
    }
    const start = at
    const low = one()
    at += low.length
    if (source[at] !== '-' || source[at + 1] === ']' || at + 1 >= source.length) continue
    at++
    const high = one()
    at += high.length
    if (high.code < low.code) throw fault('invalid character class range', source.slice(start, at))
  }
  return at + 1
}
