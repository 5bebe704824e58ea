/**
 * YAML in the hand of Go's library, so that application/yaml answers equal kube-apiserver's: keys in natural order,
 * lists not indented under their key, text over several lines as a block, long lines folded at 80 columns.
 */
import { goValue } from './goformat.ts'
import { isNumber, type Json, type JsonObject, Spelled } from './json.ts'
import { needsQuotes } from './yamlscalar.ts'

const LINE_WIDTH = 80
/** Longer keys are written in the `? key` form. */
const SIMPLE_KEY_MAX = 128

/** The column of a key: so far left that it is never folded, and never a block. */
const KEY = Number.NEGATIVE_INFINITY

export function printYaml(value: Json): string {
  if (isBlock(value)) return block(value, 0)
  return `${scalar(value, 0, 0)}\n`.replace(/\n\n$/, '\n')
}

function isBlock(value: Json): value is JsonObject | Json[] {
  return value instanceof Map ? value.size > 0 : Array.isArray(value) && value.length > 0
}

/** Lines of a non-empty mapping or list at a column; the first line comes without its indentation. */
function block(value: JsonObject | Json[], column: number): string {
  const indent = ' '.repeat(column)
  const entries = value instanceof Map ? members(value, column) : value.map((item) => `- ${after(item, column + 2)}`)
  return entries.join(indent)
}

function members(object: JsonObject, column: number): string[] {
  return [...object.keys()].sort(naturally).map((key) => {
    const value = object.get(key)!
    const name = `${scalar(key, KEY, column)}:`
    if (Buffer.byteLength(key) > SIMPLE_KEY_MAX) {
      return `? ${name.slice(0, -1)}\n${' '.repeat(column)}: ${after(value, column + 2)}`
    }
    if (!isBlock(value)) return line(`${name} ${scalar(value, column + name.length + 1, column)}`)
    const deeper = value instanceof Map ? column + 2 : column
    return `${name}\n${' '.repeat(deeper)}${block(value, deeper)}`
  })
}

/** A value that starts on the line of its `- `, at `column`. */
function after(value: Json, column: number): string {
  return isBlock(value) ? block(value, column) : line(scalar(value, column, column - 2))
}

function line(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`
}

/** `column` is where the text starts, `indent` that of its parent. */
function scalar(value: Json, column: number, indent: number): string {
  if (value instanceof Map) return '{}'
  if (Array.isArray(value)) return '[]'
  if (value === null) return 'null'
  if (isNumber(value))
    return value instanceof Spelled && /^-?[1-9]\d*$/.test(value.source) ? value.source : goValue(value)
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  const traits = traitsOf(value)
  const margin = `\n${' '.repeat(indent + 2)}`
  if (value.includes('\n')) {
    if (column >= 0 && !traits.special && !/ (?:\n|$)/.test(value)) return literal(value, margin)
  } else if (!needsQuotes(value)) {
    if (traits.plain) return folded(value, column, margin)
    if (!traits.special) return `'${folded(value.replaceAll("'", "''"), column + 1, margin)}'`
  }
  return `"${foldedEscapes(value, column + 1, margin)}"`
}

/** What Go's emitter finds in a text; printable there leaves out tabs and everything beyond the basic plane. */
function traitsOf(text: string): { special: boolean; plain: boolean } {
  const special = /[^\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]|[\u2028\u2029]/.test(text)
  const indicators = /^(?:[#,[\]{}&*!|>'"%@`]|---|\.\.\.|[?:-](?: |$))|:(?: |$)| #/.test(text)
  return { special, plain: !special && !indicators && !/^ | $/.test(text) }
}

function literal(text: string, margin: string): string {
  const hint = /^[ \n]/.test(text) ? '2' : ''
  const chomp = !text.endsWith('\n') ? '-' : /(?:^|\n)\n$/.test(text) ? '+' : ''
  const body = text.replace(/\n$/, '').split('\n')
  return `|${hint}${chomp}${body.map((row) => (row === '' ? '\n' : margin + row)).join('')}${chomp === '-' ? '' : '\n'}`
}

/** Breaks at single spaces once the line has grown beyond its width. */
function folded(text: string, column: number, margin: string): string {
  let out = ''
  let at = column
  const characters = [...text]
  characters.forEach((character, index) => {
    const alone = characters[index - 1] !== ' ' && characters[index + 1] !== ' '
    if (character === ' ' && alone && at > LINE_WIDTH && index > 0 && index < characters.length - 1) {
      out += margin
      at = margin.length - 1
    } else {
      out += character
      at++
    }
  })
  return out
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

function escapeOf(character: string): string {
  const known = ESCAPES[character]
  if (known !== undefined) return known
  if (!traitsOf(character).special) return character
  const code = character.codePointAt(0)!
  const hex = (width: number) => code.toString(16).toUpperCase().padStart(width, '0')
  return code <= 0xff ? `\\x${hex(2)}` : code <= 0xffff ? `\\u${hex(4)}` : `\\U${hex(8)}`
}

/** Inside double quotes a break may also come before more spaces; a backslash keeps those. */
function foldedEscapes(text: string, column: number, margin: string): string {
  let out = ''
  let at = column
  const characters = [...text]
  characters.forEach((character, index) => {
    const first = characters[index - 1] !== ' '
    if (character === ' ' && first && at > LINE_WIDTH && index > 0 && index < characters.length - 1) {
      const keep = characters[index + 1] === ' ' ? '\\' : ''
      out += margin + keep
      at = margin.length - 1 + keep.length
    } else {
      const written = escapeOf(character)
      out += written
      at += written.length
    }
  })
  return out
}

/** Go's order of keys: digits by value, and letters after everything else. */
function naturally(a: string, b: string): number {
  const left = [...a]
  const right = [...b]
  for (let index = 0; index < left.length && index < right.length; index++) {
    const l = left[index]!
    const r = right[index]!
    if (l === r) continue
    const leftIsLetter = /\p{L}/u.test(l)
    const rightIsLetter = /\p{L}/u.test(r)
    if (leftIsLetter && rightIsLetter) return l.codePointAt(0)! - r.codePointAt(0)!
    if (leftIsLetter || rightIsLetter) return leftIsLetter ? 1 : -1
    return byNumber(left, right, index) || l.codePointAt(0)! - r.codePointAt(0)!
  }
  return left.length - right.length
}

function byNumber(left: readonly string[], right: readonly string[], index: number): number {
  const digitsFrom = (text: readonly string[]) => /^\d*/.exec(text.slice(index).join(''))![0]
  const l = digitsFrom(left)
  const r = digitsFrom(right)
  // A zero inside a number is a digit like any other: the digits before it, equal in both, must weigh in.
  const before = left[index] === '0' || right[index] === '0' ? /\d*$/.exec(left.slice(0, index).join(''))![0] : ''
  const head = /[1-9]/.test(before) ? '1' : ''
  return Number(head + l || 0) - Number(head + r || 0) || l.length - r.length
}
