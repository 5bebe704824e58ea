/**
 * Patterns are written in Go's RE2 syntax; this spells them in JavaScript's. Only spelling differs for what schemas use:
 * escapes of punctuation, POSIX classes, \A and \z, inline flags, named groups.
 */

const POSIX: Record<string, string> = {
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

/** RE2's classes are ASCII only; JavaScript's \s is wider. */
const ASCII_SPACE = '\\t\\n\\f\\r '

const compiled = new Map<string, RegExp>()

/** Compiled patterns kept; a cluster has some thousands, beyond that compiling again is cheap enough. */
const COMPILED_MAX = 5_000

/** Throws a SyntaxError for what neither engine knows. */
export function goPattern(source: string): RegExp {
  const known = compiled.get(source)
  if (known !== undefined) return known
  let flags = 'u'
  let body = source
  const lead = /^\(\?([imsU]+)\)/.exec(source)
  if (lead !== null) {
    if (lead[1]?.includes('U')) throw new SyntaxError('swapped greediness is not supported')
    flags += lead[1] ?? ''
    body = source.slice(lead[0].length)
  }
  const pattern = new RegExp(translate(body), [...new Set(flags)].join(''))
  if (compiled.size >= COMPILED_MAX) compiled.clear()
  compiled.set(source, pattern)
  return pattern
}

function translate(source: string): string {
  let out = ''
  let inClass = false
  for (let at = 0; at < source.length; at++) {
    const character = source[at] as string
    if (character === '\\') {
      const [text, length] = escaped(source.slice(at + 1), inClass)
      out += text
      at += length
    } else if (inClass) {
      const posix = /^\[:(\^?)([a-z]+):\]/.exec(source.slice(at))
      if (posix !== null) {
        const range = POSIX[posix[2] ?? '']
        if (range === undefined || posix[1] !== '') throw new SyntaxError(`invalid character class range: ${posix[0]}`)
        out += range
        at += posix[0].length - 1
      } else {
        if (character === ']') inClass = false
        out += character === '[' ? '\\[' : character
      }
    } else if (character === '[') {
      inClass = true
      const first = /^\[(\^?)(\]?)/.exec(source.slice(at)) as RegExpExecArray
      out += `[${first[1]}${first[2] === ']' ? '\\]' : ''}`
      at += first[0].length - 1
    } else if (source.startsWith('(?P<', at)) {
      out += '(?<'
      at += 3
    } else if ((character === '{' || character === '}') && !isRepeat(source, at, character)) {
      out += `\\${character}`
    } else if (character === ']') {
      out += '\\]'
    } else {
      out += character
    }
  }
  return out
}

function isRepeat(source: string, at: number, character: string): boolean {
  if (character === '{') return /^\{\d+(,\d*)?\}/.test(source.slice(at))
  return /\{\d+(,\d*)?$/.test(source.slice(0, at))
}

/** What follows a backslash: the JavaScript spelling and how many characters it took. */
function escaped(rest: string, inClass: boolean): [string, number] {
  const next = rest[0]
  if (next === undefined) throw new SyntaxError('trailing backslash at end of expression')
  if (next === 'A' && !inClass) return ['(?<![\\s\\S])', 1]
  if (next === 'z' && !inClass) return ['(?![\\s\\S])', 1]
  if (next === 'a') return ['\\x07', 1]
  if (next === 's') return [inClass ? ASCII_SPACE : `[${ASCII_SPACE}]`, 1]
  if (next === 'S' && !inClass) return [`[^${ASCII_SPACE}]`, 1]
  if (next === 'Q') {
    const end = rest.indexOf('\\E')
    const literal = end === -1 ? rest.slice(1) : rest.slice(1, end)
    return [literal.replace(/[$()*+./?[\\\]^{|}]/g, '\\$&'), end === -1 ? rest.length : end + 2]
  }
  if (next === 'p' || next === 'P') {
    const short = /^[pP]([A-Z])/.exec(rest)
    if (short !== null) return [`\\${next}{${short[1]}}`, 2]
    const long = /^[pP]\{(\^?)(\w+)\}/.exec(rest)
    if (long === null) throw new SyntaxError('invalid character class range')
    const negated = (next === 'P') !== (long[1] === '^')
    const name = long[2] ?? ''
    return [`\\${negated ? 'P' : 'p'}{${name.length <= 2 ? name : `Script=${name}`}}`, long[0].length]
  }
  const hex = /^x\{([0-9A-Fa-f]+)\}/.exec(rest)
  if (hex !== null) return [`\\u{${hex[1]}}`, hex[0].length]
  if (/[0-9A-Za-z]/.test(next)) {
    if (/[1-9]/.test(next)) throw new SyntaxError(`invalid escape sequence: \\${next}`)
    return [`\\${next}`, 1]
  }
  if (/[$()*+./?[\\\]^{|}]/.test(next) || (inClass && next === '-')) return [`\\${next}`, 1]
  return [next, next.length]
}
