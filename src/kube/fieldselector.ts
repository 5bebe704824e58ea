/**
 * Field selectors: `spec.nodeName=n1,status.phase!=Failed`. Which fields exist is the resource's matter (fields.ts);
 * here is only the grammar, with `\` escaping `\`, `,` and `=` in values.
 */
import { badRequest } from './status.ts'

export type FieldRequirement = { readonly field: string; readonly operator: '=' | '!='; readonly value: string }

export class FieldSelector {
  /** Sorted by their text and without repeats, so that equal selectors look equal. */
  readonly requirements: readonly FieldRequirement[]

  constructor(requirements: readonly FieldRequirement[]) {
    this.requirements = requirements.length < 2 ? requirements : distinct(requirements)
  }

  get empty(): boolean {
    return this.requirements.length === 0
  }

  /** Whether an object matches, of which `lookup` tells a field's value. */
  matches(lookup: (field: string) => string): boolean {
    for (const { field, operator, value } of this.requirements) {
      if ((lookup(field) === value) !== (operator === '=')) return false
    }
    return true
  }

  /** The value that this selector demands of the field, if it demands one. */
  required(field: string): string | undefined {
    return this.requirements.find((one) => one.operator === '=' && one.field === field)?.value
  }

  /** The same selector over renamed fields. */
  renamed(rename: (field: string) => string): FieldSelector {
    return new FieldSelector(this.requirements.map((one) => ({ ...one, field: rename(one.field) })))
  }

  toString(): string {
    return this.requirements.map(spelled).join(',')
  }
}

function distinct(requirements: readonly FieldRequirement[]): FieldRequirement[] {
  const byText = new Map(requirements.map((requirement) => [spelled(requirement), requirement]))
  return [...byText.keys()].sort().map((text) => byText.get(text) as FieldRequirement)
}

function spelled({ field, operator, value }: FieldRequirement): string {
  return `${field}${operator}${value.replace(/[\\,=]/g, '\\$&')}`
}

const everything = new FieldSelector([])

export function parseFieldSelector(text: string): FieldSelector {
  if (text === '') return everything
  const requirements: FieldRequirement[] = []
  // In sorted order, because the first faulty term in that order is the one complained about.
  for (const term of terms(text).sort()) {
    if (term === '') continue
    const equals = term.indexOf('=')
    if (equals < 0) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    const negated = term[equals - 1] === '!'
    const doubled = !negated && term[equals + 1] === '='
    const field = term.slice(0, negated ? equals - 1 : equals)
    const value = unescaped(term.slice(equals + (doubled ? 2 : 1)))
    // Of nothing, nothing is asked: neither `=` nor `!=` alone leaves anything out.
    if (field !== '' || value !== '') requirements.push({ field, operator: negated ? '!=' : '=', value })
  }
  return requirements.length === 0 ? everything : new FieldSelector(requirements)
}

/** Split at the commas that no backslash protects. */
function terms(text: string): string[] {
  if (!text.includes('\\')) return text.split(',')
  const found: string[] = []
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === ',') {
      found.push(text.slice(start, i))
      start = i + 1
    }
  }
  found.push(text.slice(start))
  return found
}

function unescaped(text: string): string {
  let value = ''
  let afterSlash = false
  for (const char of text) {
    const special = char === '\\' || char === ',' || char === '='
    if (afterSlash) {
      if (!special) throw badRequest(`invalid field selector: invalid escape sequence: \\${char}`)
      value += char
      afterSlash = false
    } else if (char === '\\') afterSlash = true
    else if (special) throw badRequest(`invalid field selector: unescaped character in value: ${char.charCodeAt(0)}`)
    else value += char
  }
  if (afterSlash) throw badRequest('invalid field selector: invalid escape sequence: \\')
  return value
}
