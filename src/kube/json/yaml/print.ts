/**
 * YAML in the hand of Go's library, so that application/yaml answers equal kube-apiserver's: keys in natural order,
 * lists not indented under their key, text over several lines as a block, long lines folded at 80 columns. It is made
 * piece by piece and without recursion: what lies deep stands behind a long indentation on each of its lines, so that a
 * small object can become a text of gigabytes.
 */
import { goValue } from '../goformat.ts'
import { isNumber, type Json, type JsonObject, Spelled } from '../json.ts'
import { inNaturalOrder } from '../naturally.ts'
import { needsQuotes } from './scalar.ts'
import { escapedText, foldedText, LINE_WIDTH, literalText } from './text.ts'

/** Longer keys are written in the `? key` form. */
const SIMPLE_KEY_MAX = 128

/** The column of a key: so far left that it is never folded, and never a block. */
const KEY = Number.NEGATIVE_INFINITY

/** A list that is a member of the outermost object, its elements taken one by one when they are printed. */
export type Elements = { readonly member: string; readonly elements: Iterator<Json> }

export function printYaml(value: Json): string {
  return [...yamlPieces(value)].join('')
}

/** What is open: the members of an object or the elements of a list, at a column. */
type Block = {
  readonly column: number
  /** Stands before every entry but the first, whose place is there already. */
  readonly margin: string
  readonly keys: readonly string[] | undefined
  readonly object: JsonObject | undefined
  readonly elements: Iterator<Json> | undefined
  next: number
}

export function* yamlPieces(value: Json, streamed?: Elements): Generator<string, void, void> {
  if (!isBlock(value)) {
    yield* line('', scalar(value, 0, 0))
    return
  }
  const open: Block[] = [yield* blockOf(value, 0)]
  for (let block = open.at(-1); block !== undefined; block = open.at(-1)) {
    const { column } = block
    const margin = block.next === 0 ? '' : block.margin
    const key = block.keys?.[block.next]
    const element = block.elements?.next()
    block.next++
    if (element === undefined ? key === undefined : element.done === true) {
      open.pop()
    } else if (key === undefined) {
      const inner = element?.value as Json
      if (isBlock(inner)) {
        yield `${margin}- `
        open.push(yield* blockOf(inner, column + 2))
      } else {
        yield* line(`${margin}- `, scalar(inner, column + 2, column))
      }
    } else if (open.length === 1 && key === streamed?.member) {
      const first = streamed.elements.next()
      yield `${margin}${scalarText(key, column)}:${first.done === true ? ' []' : ''}\n`
      if (first.done !== true) open.push(elementsFrom(first.value, streamed.elements))
    } else {
      const inner = (block.object as JsonObject).get(key) as Json
      const name = scalarText(key, column)
      if (Buffer.byteLength(key) > SIMPLE_KEY_MAX) {
        const before = `${margin}? ${name}\n${' '.repeat(column)}: `
        if (isBlock(inner)) {
          yield before
          open.push(yield* blockOf(inner, column + 2))
        } else {
          yield* line(before, scalar(inner, column + 2, column))
        }
      } else if (isBlock(inner)) {
        const deeper = inner instanceof Map ? column + 2 : column
        yield `${margin}${name}:\n${' '.repeat(deeper)}`
        open.push(yield* blockOf(inner, deeper))
      } else {
        const found = scalar(inner, column + name.length + 2, column)
        if (typeof found === 'string') yield `${margin}${name}: ${found}\n`
        else yield* line(`${margin}${name}: `, found)
      }
    }
  }
}

function isBlock(value: Json): value is JsonObject | Json[] {
  return value instanceof Map ? value.size > 0 : Array.isArray(value) && value.length > 0
}

/** Many keys are put in order in steps, between which it yields an empty piece. */
function* blockOf(value: JsonObject | Json[], column: number): Generator<string, Block, void> {
  const margin = ' '.repeat(column)
  if (value instanceof Map) {
    const keys = yield* inNaturalOrder([...value.keys()])
    return { column, margin, keys, object: value, elements: undefined, next: 0 }
  }
  return { column, margin, keys: undefined, object: undefined, elements: value.values(), next: 0 }
}

/** The elements of the outermost object's list: at its own column, which is the first. */
function elementsFrom(first: Json, rest: Iterator<Json>): Block {
  const elements = (function* () {
    yield first
    for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value
  })()
  return { column: 0, margin: '', keys: undefined, object: undefined, elements, next: 0 }
}

/** With a line's end, if the last piece has none. */
function* line(before: string, text: string | Iterable<string>): Generator<string, void, void> {
  if (typeof text === 'string') {
    yield `${before}${text}\n`
    return
  }
  let last = before
  for (const piece of text) {
    yield last
    last = piece
  }
  yield last.endsWith('\n') ? last : `${last}\n`
}

function scalarText(key: string, column: number): string {
  const text = scalar(key, KEY, column)
  return typeof text === 'string' ? text : [...text].join('')
}

/** `column` is where the text starts, `indent` that of its parent. What may be long comes in pieces. */
function scalar(value: Json, column: number, indent: number): string | Iterable<string> {
  if (value instanceof Map) return '{}'
  if (Array.isArray(value)) return '[]'
  if (value === null) return 'null'
  if (isNumber(value))
    return value instanceof Spelled && /^-?[1-9]\d*$/.test(value.source) ? value.source : goValue(value)
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  const special = SPECIAL.test(value)
  if (value.includes('\n')) {
    if (column >= 0 && !special && !/ (?:\n|$)/.test(value)) return literalText(value, marginOf(indent))
  } else if (!special && !needsQuotes(value)) {
    const isShort = column + value.length < LINE_WIDTH
    if (!INDICATED.test(value)) return isShort ? value : foldedText(value, { column, margin: marginOf(indent) })
    const quoted = value.replaceAll("'", "''")
    return foldedText(quoted, { column: column + 1, margin: marginOf(indent), around: "'" })
  }
  return escapedText(value, { column: column + 1, margin: marginOf(indent) })
}

function marginOf(indent: number): string {
  return `\n${' '.repeat(indent + 2)}`
}

/** What Go's emitter escapes: printable there leaves out tabs and everything beyond the basic plane. */
const SPECIAL = /[^\n\x20-\x7e\u00a0-\ud7ff\ue000-\ufefe\uff00-\ufffd]|[\u2028\u2029]/
/** What would not be read as plain text. */
const INDICATED = /^(?:[#,[\]{}&*!|>'"%@` ]|---|\.\.\.|[?:-](?: |$))|:(?: |$)| #| $/
