/**
 * Field selectors: `spec.nodeName=n1,status.phase!=Failed`. Which fields exist is the resource's matter (fields.ts);
 * here is only the grammar, with `\` escaping `\`, `,` and `=` in values.
 */
import { badRequest } from './status.ts'

export type FieldRequirement = { readonly field: string; readonly operator: '=' | '!='; readonly value: string }

/** All that is asked of one field. */
export type FieldWish = {
  /** Its value has to be this one. */
  readonly required: string | undefined
  /** It has to be another one too: nothing matches. */
  readonly contradictory: boolean
  /** Nor may it be one of these. */
  readonly refused: ReadonlySet<string> | undefined
}

/** Up to so many requirements are quicker looked at one after the other than looked up. */
const fewTerms = 8

export class FieldSelector {
  /** Sorted by their text and without repeats, so that equal selectors look equal. */
  readonly requirements: readonly FieldRequirement[]
  #wishes: ReadonlyMap<string, FieldWish> | undefined
  #texts: ReadonlySet<string> | undefined

  constructor(requirements: readonly FieldRequirement[]) {
    this.requirements = requirements.length < 2 ? requirements : distinct(requirements)
  }

  get empty(): boolean {
    return this.requirements.length === 0
  }

  /** By field: a caller may write thousands of requirements, of the few fields that a resource has. */
  get wishes(): ReadonlyMap<string, FieldWish> {
    this.#wishes ??= gathered(this.requirements)
    return this.#wishes
  }

  /** Whether an object matches, of which `lookup` tells a field's value. */
  matches(lookup: (field: string) => string): boolean {
    for (const [field, { required, contradictory, refused }] of this.wishes) {
      const value = lookup(field)
      if (contradictory || refused?.has(value) || (required !== undefined && required !== value)) return false
    }
    return true
  }

  /** The value that this selector demands of the field, if it demands one. */
  required(field: string): string | undefined {
    if (this.requirements.length > fewTerms) return this.wishes.get(field)?.required
    return this.requirements.find((one) => one.operator === '=' && one.field === field)?.value
  }

  has({ field, operator, value }: FieldRequirement): boolean {
    if (this.requirements.length <= fewTerms) {
      return this.requirements.some((one) => one.field === field && one.operator === operator && one.value === value)
    }
    this.#texts ??= new Set(this.requirements.map(spelled))
    return this.#texts.has(spelled({ field, operator, value }))
  }

  /** The same selector over renamed fields; itself where none has another name. */
  renamed(rename: (field: string) => string): FieldSelector {
    const named = this.requirements.map((one) => {
      const field = rename(one.field)
      return field === one.field ? one : { ...one, field }
    })
    return named.every((one, i) => one === this.requirements[i]) ? this : new FieldSelector(named)
  }

  toString(): string {
    return this.requirements.map(spelled).join(',')
  }
}

function gathered(requirements: readonly FieldRequirement[]): ReadonlyMap<string, FieldWish> {
  const wishes = new Map<
    string,
    { required: string | undefined; contradictory: boolean; refused: Set<string> | undefined }
  >()
  for (const { field, operator, value } of requirements) {
    let wish = wishes.get(field)
    if (wish === undefined) {
      wish = { required: undefined, contradictory: false, refused: undefined }
      wishes.set(field, wish)
    }
    if (operator === '!=') {
      wish.refused ??= new Set()
      wish.refused.add(value)
    } else if (wish.required === undefined) wish.required = value
    else wish.contradictory = true // Without repeats, it is another value.
  }
  return wishes
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
  // Without the room that was made for more: a hub has some thirty for each of its edges.
  return requirements.length === 0 ? everything : new FieldSelector(requirements.slice())
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
  if (!/[\\,=]/.test(text)) return text
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
