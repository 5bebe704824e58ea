/**
 * Label selectors: parsed once, compiled into one closure, and normalised so that two spellings of the same wish look the
 * same to indexes and to the covering test. Texts of complaints are kube-apiserver's.
 */
import { parseInt64, quoted } from '../json/gotext.ts'
import { labelKeyFaults, labelValueFaults } from './labels.ts'
import { badRequest } from './status.ts'

/** `=`, `==` are `in` with one value, `!=` is `notin` with one: the wish is the same. */
export type LabelOperator = 'in' | 'notin' | 'exists' | 'absent' | 'gt' | 'lt'

/** `values` are sorted and distinct. */
export type LabelRequirement = {
  readonly key: string
  readonly operator: LabelOperator
  readonly values: readonly string[]
}

type Labels = { get(label: string): string | undefined; has(label: string): boolean } | undefined

export class LabelSelector {
  /** Sorted by key, then by their text; without repeats. */
  readonly requirements: readonly LabelRequirement[]
  /** Keys that must have one given value. */
  readonly equalities: readonly (readonly [key: string, value: string])[]
  readonly matches: (labels: Labels) => boolean
  readonly #text: string

  constructor(requirements: readonly LabelRequirement[]) {
    const byText = new Map(requirements.map((requirement) => [spelled(requirement), requirement]))
    const entries = [...byText].sort(([textA, a], [textB, b]) => compare(a.key, b.key) || compare(textA, textB))
    this.requirements = entries.map(([, requirement]) => requirement)
    this.#text = entries.map(([text]) => text).join(',')
    this.equalities = this.requirements
      .filter(({ operator, values }) => operator === 'in' && values.length === 1)
      .map(({ key, values }) => [key, values[0] as string] as const)
    this.matches = compiled(this.requirements)
  }

  get empty(): boolean {
    return this.requirements.length === 0
  }

  toString(): string {
    return this.#text
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function spelled({ key, operator, values }: LabelRequirement): string {
  const single = values.length === 1
  switch (operator) {
    case 'in':
      return single ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`
    case 'notin':
      return single ? `${key}!=${values[0]}` : `${key} notin (${values.join(',')})`
    case 'exists':
      return key
    case 'absent':
      return `!${key}`
    case 'gt':
      return `${key}>${values[0]}`
    case 'lt':
      return `${key}<${values[0]}`
  }
}

function compiled(requirements: readonly LabelRequirement[]): (labels: Labels) => boolean {
  const tests = requirements.map(test)
  const [first] = tests
  if (first === undefined) return () => true
  if (tests.length === 1) return first
  return (labels) => {
    for (const one of tests) if (!one(labels)) return false
    return true
  }
}

function test({ key, operator, values }: LabelRequirement): (labels: Labels) => boolean {
  const [only] = values
  switch (operator) {
    case 'in':
      if (values.length === 1) return (labels) => labels?.get(key) === only
      return (labels) => {
        const value = labels?.get(key)
        return value !== undefined && values.includes(value)
      }
    case 'notin':
      if (values.length === 1) return (labels) => labels?.get(key) !== only
      return (labels) => {
        const value = labels?.get(key)
        return value === undefined || !values.includes(value)
      }
    case 'exists':
      return (labels) => labels?.has(key) ?? false
    case 'absent':
      return (labels) => !(labels?.has(key) ?? false)
    case 'gt':
    case 'lt': {
      const bound = integer(only)
      return (labels) => {
        const value = integer(labels?.get(key))
        if (value === undefined || bound === undefined) return false
        return operator === 'gt' ? value > bound : value < bound
      }
    }
  }
}

function integer(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  const parsed = parseInt64(text)
  return 'value' in parsed ? parsed.value : undefined
}

const everything = new LabelSelector([])

export function parseLabelSelector(text: string): LabelSelector {
  if (text === '') return everything
  const requirements = new Parser(text).selector()
  return requirements.length === 0 ? everything : new LabelSelector(requirements)
}

type Token = {
  readonly kind: 'word' | 'end' | '(' | ')' | ',' | '!' | '=' | '==' | '!=' | '>' | '<'
  readonly text: string
}

const BLANK = /[ \t\r\n]/

/** `in` and `notin` are words: whether one is an operator depends on where it stands. */
function tokens(text: string): Token[] {
  const found: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    if (BLANK.test(char)) at++
    else if (char === '\0') break
    else if ((char === '=' || char === '!') && text[at + 1] === '=') {
      const kind = char === '=' ? '==' : '!='
      found.push({ kind, text: kind })
      at += 2
    } else if ('=!(),><'.includes(char)) {
      found.push({ kind: char as Token['kind'], text: char })
      at++
    } else {
      const end = wordEnd(text, at + 1)
      found.push({ kind: 'word', text: text.slice(at, end) })
      at = text[end] === '\0' ? end + 1 : end // A NUL ends a word and is swallowed; elsewhere it ends the selector.
    }
  }
  found.push({ kind: 'end', text: '' })
  return found
}

function wordEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (' \t\r\n=!(),><\0'.includes(text[at] as string)) return at
  return text.length
}

const operators: Readonly<Record<string, LabelOperator>> = {
  in: 'in',
  notin: 'notin',
  '=': 'in',
  '==': 'in',
  '!=': 'notin',
  '>': 'gt',
  '<': 'lt',
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#tokens = tokens(text)
  }

  selector(): LabelRequirement[] {
    const found: LabelRequirement[] = []
    for (;;) {
      const first = this.#peek()
      if (first.kind === 'end') return found
      if (first.kind !== 'word' && first.kind !== '!') {
        throw badRequest(`found '${first.text}', expected: !, identifier, or 'end of string'`)
      }
      found.push(this.#requirement())
      const next = this.#take()
      if (next.kind === 'end') return found
      if (next.kind !== ',') throw badRequest(`found '${next.text}', expected: ',' or 'end of string'`)
      const after = this.#peek()
      if (after.kind !== 'word' && after.kind !== '!') {
        throw badRequest(`found '${after.text}', expected: identifier after ','`)
      }
    }
  }

  #peek(): Token {
    return this.#tokens[this.#at] as Token
  }

  #take(): Token {
    return this.#tokens[this.#at++] as Token
  }

  #requirement(): LabelRequirement {
    let token = this.#take()
    const negated = token.kind === '!'
    if (negated) token = this.#take()
    const key = token.text
    if (token.kind !== 'word') throw unparsable(`found '${key}', expected: identifier`)
    const faults = labelKeyFaults(key)
    if (faults.length > 0) throw unparsable(`<nil>: Invalid value: ${quoted(key)}: ${faults.join('; ')}`)
    if (negated) return { key, operator: 'absent', values: [] }
    const next = this.#peek().kind
    if (next === 'end' || next === ',') return { key, operator: 'exists', values: [] }

    const sign = this.#take()
    const operator = Object.hasOwn(operators, sign.text) ? operators[sign.text] : undefined
    if (operator === undefined) throw unparsable(`found '${sign.text}', expected: in, notin, =, ==, !=, gt, lt`)
    const values = sign.kind === 'word' ? this.#set() : [this.#value()]
    check(key, operator, values)
    return { key, operator, values }
  }

  /** `()` and every gap between commas stand for the empty value. */
  #set(): string[] {
    const open = this.#take()
    if (open.kind !== '(') throw unparsable(`found '${open.text}' expected: '('`)
    const first = this.#peek()
    if (first.kind !== 'word' && first.kind !== ',' && first.kind !== ')') {
      throw unparsable(`found '${first.text}', expected: ',', ')' or identifier`)
    }
    const values = new Set<string>()
    let pending = true // A value, or the lack of one, is due before the next comma or the end.
    for (;;) {
      const token = this.#take()
      if (token.kind === 'word' && pending) {
        values.add(token.text)
        pending = false
      } else if (token.kind === ',' || token.kind === ')') {
        if (pending) values.add('')
        if (token.kind === ')') return [...values].sort()
        pending = true
      } else if (pending) throw unparsable(`found '${token.text}', expected: ',', or identifier`)
      else throw unparsable(`found '${token.text}', expected: ',' or ')'`)
    }
  }

  #value(): string {
    const next = this.#peek()
    if (next.kind === 'end' || next.kind === ',') return ''
    this.#at++
    if (next.kind !== 'word') throw unparsable(`found '${next.text}', expected: identifier`)
    return next.text
  }
}

function check(key: string, operator: LabelOperator, values: readonly string[]): void {
  const faults: string[] = []
  if (operator === 'gt' || operator === 'lt') {
    for (const [i, value] of values.entries()) {
      if (integer(value) !== undefined) continue
      const why = "for 'Gt', 'Lt' operators, the value must be an integer"
      faults.push(`values[${i}]: Invalid value: ${quoted(value)}: ${why}`)
    }
  }
  for (const [i, value] of values.entries()) {
    const why = labelValueFaults(value)
    if (why.length > 0) faults.push(`values[${i}][${key}]: Invalid value: ${quoted(value)}: ${why.join('; ')}`)
  }
  if (faults.length === 1) throw unparsable(faults[0] as string)
  if (faults.length > 1) throw unparsable(`[${[...new Set(faults)].join(', ')}]`)
}

function unparsable(why: string): Error {
  return badRequest(`unable to parse requirement: ${why}`)
}
