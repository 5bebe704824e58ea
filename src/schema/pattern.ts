/**
 * Patterns are written in Go's RE2 syntax; this spells them in JavaScript's. Only spelling differs for what schemas use:
 * escapes of punctuation, POSIX classes, \A and \z, inline flags, named groups.
 */

import { setFlagsFromString } from 'node:v8'
import { POSIX, re2Fault } from './re2.ts'

/** RE2's classes are ASCII only; JavaScript's \s is wider. */
const ASCII_SPACE = '\\t\\n\\f\\r '

type Compiled = {
  readonly wide: RegExp
  /** The same without the `u` flag, for texts in which every character is one code unit. */
  readonly narrow: RegExp | undefined
}

const compiled = new Map<string, Compiled>()

/** Compiled patterns kept; a cluster has some thousands, beyond that compiling again is cheap enough. */
const COMPILED_MAX = 5_000

/**
 * RE2 takes linear time for any pattern; V8 backtracks, and a pattern like `(a+)+$` would stall the process. With this
 * it changes to a linear engine when backtracking gets out of hand, though only for expressions without the `u` flag.
 */
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks')

/** The expression to use on `text`. Throws a SyntaxError for what RE2 does not know, or JavaScript cannot spell. */
export function goPattern(source: string, text = ''): RegExp {
  let known = compiled.get(source)
  if (known === undefined) {
    known = compile(source)
    if (compiled.size >= COMPILED_MAX) compiled.clear()
    compiled.set(source, known)
  }
  return known.narrow === undefined || /[\ud800-\udfff]/.test(text) ? known.wide : known.narrow
}

function compile(source: string): Compiled {
  const fault = re2Fault(source)
  if (fault !== undefined) throw new SyntaxError(fault)
  const lead = /^\(\?([imsU]+)\)/.exec(source)
  const flags = lead?.[1] ?? ''
  if (flags.includes('U')) throw new SyntaxError('swapped greediness is not supported')
  const body = translate(lead === null ? source : source.slice(lead[0].length), flags.includes('m'))
  const unique = [...new Set(flags)].join('')
  const wide = new RegExp(body, `${unique}u`)
  return { wide, narrow: /\\[pPu]\{/.test(body) ? undefined : new RegExp(body, unique) }
}

function translate(source: string, lines: boolean): string {
  let out = ''
  let inClass = false
  for (let at = 0; at < source.length; at++) {
    const character = source[at] as string
    if (character === '\\') {
      const [text, length] = escaped(source.slice(at + 1), inClass, lines)
      out += text
      at += length
    } else if (inClass) {
      const posix = /^\[:(\^?)([a-z]+):\]/.exec(source.slice(at))
      if (posix !== null) {
        if (posix[1] !== '') throw new SyntaxError(`negated POSIX classes are not supported: ${posix[0]}`)
        out += POSIX[posix[2] ?? ''] ?? ''
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
function escaped(rest: string, inClass: boolean, lines: boolean): [string, number] {
  const next = rest[0] ?? ''
  if (next === 'A' && !inClass) return [lines ? '(?<![\\s\\S])' : '^', 1]
  if (next === 'z' && !inClass) return [lines ? '(?![\\s\\S])' : '$', 1]
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
    const negated = (next === 'P') !== (long?.[1] === '^')
    const name = long?.[2] ?? ''
    return [`\\${negated ? 'P' : 'p'}{${name.length <= 2 ? name : `Script=${name}`}}`, long?.[0].length ?? 1]
  }
  const hex = /^x\{([0-9A-Fa-f]+)\}/.exec(rest)
  if (hex !== null) return [`\\u{${hex[1]}}`, hex[0].length]
  const octal = /^[0-7]{1,3}/.exec(rest)
  if (octal !== null) return [`\\x${Number.parseInt(octal[0], 8).toString(16).padStart(2, '0')}`, octal[0].length]
  if (/[A-Za-z]/.test(next)) return [`\\${next}`, 1]
  if (/[$()*+./?[\\\]^{|}]/.test(next) || (inClass && next === '-')) return [`\\${next}`, 1]
  return [next, next.length]
}
