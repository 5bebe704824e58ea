/**
 * Label selectors: parsed once, compiled into one closure, and normalised so that two spellings of the same wish look the
 * same to indexes and to the covering test. Texts of complaints are kube-apiserver's.
 */
import { quoted } from './json/gotext.ts'
import {
  compiled,
  fewTerms,
  integer,
  type LabelOperator,
  type LabelRequirement,
  type MatchedLabels,
} from './labelmatch.ts'
import { labelKeyFaults, labelValueFaults } from './labels.ts'
import { badRequest } from './status.ts'

export class LabelSelector {
  /** Sorted by key, then by their text; without repeats. */
  readonly requirements: readonly LabelRequirement[]
  /** Keys that must have one given value. */
  readonly equalities: readonly (readonly [key: string, value: string])[]
  readonly matches: (labels: MatchedLabels) => boolean
  readonly #text: string
  /** Of each requirement, in their order. */
  readonly #texts: readonly string[]
  #textSet: ReadonlySet<string> | undefined

  constructor(requirements: readonly LabelRequirement[]) {
    const entries = requirements.map((requirement) => ({ text: spelled(requirement), requirement }))
    // A client that writes thousands of requirements mostly writes them in order.
    if (!entries.every((one, i) => i === 0 || order(entries[i - 1] as SpelledRequirement, one) < 0)) entries.sort(order)
    const distinct = entries.filter(({ text }, i) => i === 0 || text !== entries[i - 1]?.text)
    this.requirements = distinct.map(({ requirement }) => requirement)
    this.#texts = distinct.map(({ text }) => text)
    this.#text = this.#texts.join(',')
    this.equalities = this.requirements
      .filter(({ operator, values }) => operator === 'in' && values.length === 1)
      .map(({ key, values }) => [key, values[0] as string] as const)
    this.matches = compiled(this.requirements)
  }

  get empty(): boolean {
    return this.requirements.length === 0
  }

  /** Whether every requirement of the other stands here too. */
  includes(other: LabelSelector): boolean {
    return other.#texts.every((text) => this.#has(text))
  }

  /** One long selector is compared with many short ones. */
  #has(text: string): boolean {
    if (this.#texts.length <= fewTerms) return this.#texts.includes(text)
    this.#textSet ??= new Set(this.#texts)
    return this.#textSet.has(text)
  }

  toString(): string {
    return this.#text
  }
}

type SpelledRequirement = { readonly text: string; readonly requirement: LabelRequirement }

function order(a: SpelledRequirement, b: SpelledRequirement): number {
  return compare(a.requirement.key, b.requirement.key) || compare(a.text, b.text)
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

const blanks = ' \t\r\n'
const signs = new Map(['=', '!', '(', ')', ',', '>', '<'].map((kind) => [kind, { kind, text: kind } as Token]))
const double: Readonly<Record<string, Token>> = { '=': { kind: '==', text: '==' }, '!': { kind: '!=', text: '!=' } }
const wordEnds = /[ \t\r\n=!(),><\0]/g

/** `in` and `notin` are words: whether one is an operator depends on where it stands. */
function tokens(text: string): Token[] {
  const found: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    const sign = signs.get(char)
    if (sign !== undefined) {
      const doubled = text[at + 1] === '=' ? double[char] : undefined
      found.push(doubled ?? sign)
      at += doubled === undefined ? 1 : 2
    } else if (blanks.includes(char)) at++
    else if (char === '\0') break
    else {
      const end = wordEnd(text, at + 1)
      found.push({ kind: 'word', text: text.slice(at, end) })
      at = text[end] === '\0' ? end + 1 : end // A NUL ends a word and is swallowed; elsewhere it ends the selector.
    }
  }
  found.push({ kind: 'end', text: '' })
  return found
}

function wordEnd(text: string, from: number): number {
  wordEnds.lastIndex = from
  return wordEnds.test(text) ? wordEnds.lastIndex - 1 : text.length
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
