/**
 * The YAML that kubeconfigs are written in: maps, lists and values of one line, or JSON. What is not surely read here as the
 * parser reads it is not read: then that is loaded, which holds a megabyte of memory for as long as the process lives.
 */
import { type Json, JsonError, parseJson } from '../kube/json/json.ts'

type PlainLine = { readonly indent: number; readonly text: string }

/** Something that only the parser knows. */
class Unsure extends Error {}

const lineForm = /^( *)(\S.*)$/
const entryForm = /^([A-Za-z][\w./-]*):(?: (.*))?$/
/** Nothing that begins or ends anything in YAML, and no blank in which a comment or a key could follow. */
const bareForm = /^[\w/+.](?:[\w/+=.,@~-]|:(?=[\w/]))*$/
const quotedForm = /^(?:"([ !#-[\]-~]*)"|'([ -&(-~]*)')$/
const markForm = /^(?:---|\.\.\.)/
const jsonForm = /^\{[\n -~]*$/

/** Every scalar is a text. Undefined where the parser has to be asked. */
export function readPlainYaml(source: string): unknown {
  try {
    if (jsonForm.test(source)) return plain(parseJson(source, { duplicates: unsure }))
    const lines: PlainLine[] = []
    for (const line of source.split('\n')) {
      const [, blanks = '', text = ''] = lineForm.exec(line) ?? []
      if (text === '' && line !== '') unsure()
      if (text !== '' && !text.startsWith('#')) lines.push({ indent: blanks.length, text })
    }
    return new PlainReader(lines).document()
  } catch (error) {
    if (error instanceof Unsure || error instanceof JsonError) return undefined
    throw error
  }
}

function unsure(): never {
  throw new Unsure()
}

function plain(value: Json): unknown {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return value.map(plain)
  if (!(value instanceof Map)) return unsure()
  return Object.fromEntries([...value].map(([key, member]) => [key, plain(member)]))
}

class PlainReader {
  readonly #lines: PlainLine[]
  #at = 0

  constructor(lines: PlainLine[]) {
    this.#lines = lines
  }

  get #next(): PlainLine | undefined {
    return this.#lines[this.#at]
  }

  document(): unknown {
    if (this.#next?.indent !== 0 || markForm.test(this.#next.text)) unsure()
    const found = this.#block(0)
    if (this.#next !== undefined) unsure()
    return found
  }

  #block(indent: number): unknown {
    return isElement(this.#next) ? this.#list(indent) : this.#map(indent)
  }

  #list(indent: number): unknown[] {
    const list: unknown[] = []
    for (let line = this.#next; line?.indent === indent && isElement(line); line = this.#next) {
      const text = line.text.slice(2)
      if (entryForm.test(text)) {
        // A map that begins behind the dash: its other keys stand below the first.
        this.#lines[this.#at] = { indent: indent + 2, text }
        list.push(this.#map(indent + 2))
      } else {
        this.#at++
        list.push(scalar(text))
      }
    }
    return list
  }

  #map(indent: number): Record<string, unknown> {
    const map: Record<string, unknown> = {}
    for (let line = this.#next; line?.indent === indent && !isElement(line); line = this.#next) {
      const [, key = '', value] = entryForm.exec(line.text) ?? []
      if (key === '' || Object.hasOwn(map, key)) unsure()
      this.#at++
      map[key] = value === undefined ? this.#below(indent) : scalar(value)
    }
    return map
  }

  /** What stands below a key. A list may begin where its key does. */
  #below(indent: number): unknown {
    const { indent: found = 0 } = this.#next ?? {}
    if (found > indent) return this.#block(found)
    if (found === indent && isElement(this.#next)) return this.#list(indent)
    return unsure()
  }
}

function isElement(line: PlainLine | undefined): boolean {
  return line?.text.startsWith('- ') === true
}

function scalar(text: string): unknown {
  if (text === '{}') return {}
  if (text === '[]') return []
  if (bareForm.test(text)) return text
  const [, double, single] = quotedForm.exec(text) ?? []
  const quoted = double ?? single
  return quoted ?? unsure()
}
