/**
 * The JSONPath of Kubernetes, as far as a CRD's printer columns can use it: fields, ['keys'], indexes and slices,
 * wildcards, recursive descent, unions and filters like `.status.conditions[?(@.type=="Ready")].status`.
 */

type PathStep =
  | { readonly is: 'field'; readonly name: string }
  | { readonly is: 'wildcard' }
  | { readonly is: 'recursive' }
  | { readonly is: 'literal'; readonly value: string | number | boolean }
  | {
      readonly is: 'slice'
      readonly from?: number
      readonly to?: number
      readonly single: boolean
      readonly by: number
    }
  | { readonly is: 'union'; readonly of: readonly PathStep[][] }
  | { readonly is: 'filter'; readonly left: PathStep[]; readonly operator: string; readonly right: PathStep[] }
  | { readonly is: 'unknown' }

/** Everything the path finds in a value; nothing where it does not fit the value's shape. */
export type JsonPath = (root: unknown) => readonly unknown[]

/**
 * What all steps of a path together may look at and find in one object: `..`, `[*]` or `[0,0]` repeated multiply. No column needs more,
 * and it is made in some ms, for as long as which every other client waits.
 */
const MOST_FINDINGS = 100_000

class PathError extends Error {}

/** The path in the form a CRD spells it, without the braces; undefined when it does not parse. */
export function compileJsonPath(text: string): JsonPath | undefined {
  let steps: PathStep[]
  try {
    steps = parse(text)
  } catch (error) {
    if (error instanceof PathError) return undefined
    throw error
  }
  return (root) => {
    try {
      return walk(steps, [root], { left: MOST_FINDINGS })
    } catch (error) {
      if (error instanceof PathError) return []
      throw error
    }
  }
}

/** One left-to-right pass; each branch takes what it recognises and returns the index behind it. */
function parse(text: string): PathStep[] {
  const steps: PathStep[] = []
  let at = 0
  while (at < text.length) {
    const char = text.charAt(at)
    if (text.startsWith('[?(', at)) at = parseFilter(text, at + 3, steps)
    else if (text.startsWith('..', at)) {
      if (steps.at(-1)?.is === 'recursive') throw new PathError('two recursive descents in a row')
      steps.push({ is: 'recursive' })
      at += 2
      if (/[\p{L}\p{Nd}_]/u.test(text.charAt(at))) at = parseField(text, at, steps)
    } else if (char === ' ' || char === '@' || char === '$') at += 1
    else if (char === '[') at = parseBracket(text, at, steps)
    else if (char === '"' || char === "'") at = parseQuoted(text, at, steps)
    else if (char === '.') at = parseField(text, at + 1, steps)
    else if (/[-+\d]/.test(char)) at = parseNumber(text, at, steps)
    else if (/[\p{L}_]/u.test(char)) at = parseWord(text, at, steps)
    else throw new PathError(`unexpected ${char}`)
  }
  return steps
}

const TERMINATOR = /[\s.,[\]$@{}]/

function parseField(text: string, start: number, steps: PathStep[]): number {
  let at = start
  while (at < text.length && !TERMINATOR.test(text.charAt(at))) at += text[at] === '\\' ? 2 : 1
  const name = text.slice(start, at)
  steps.push(name === '*' ? { is: 'wildcard' } : { is: 'field', name: name.replaceAll('\\', '') })
  return Math.min(at, text.length)
}

function parseWord(text: string, start: number, steps: PathStep[]): number {
  let at = start
  while (at < text.length && !TERMINATOR.test(text.charAt(at))) at += 1
  const word = text.slice(start, at)
  // `range` and `end` are for templates of several actions, which a column is not.
  steps.push(word === 'true' || word === 'false' ? { is: 'literal', value: word === 'true' } : { is: 'unknown' })
  return at
}

function parseNumber(text: string, start: number, steps: PathStep[]): number {
  const match = /^[-+]?[\d.]*/.exec(text.slice(start))?.[0] ?? ''
  if (!/^[-+]?(\d+\.?\d*|\.\d+)$/.test(match)) throw new PathError(`no number: ${match}`)
  steps.push({ is: 'literal', value: Number(match) })
  return start + match.length
}

function parseQuoted(text: string, start: number, steps: PathStep[]): number {
  const quote = text.charAt(start)
  let at = start + 1
  while (at < text.length && (text[at] !== quote || text[at - 1] === '\\')) at += 1
  if (at >= text.length) throw new PathError('unterminated string')
  steps.push({ is: 'literal', value: unescaped(text.slice(start + 1, at)) })
  return at + 1
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', '"': '"', "'": "'" }

function unescaped(text: string): string {
  return text.replace(/\\(.?)/gs, (_, char: string) => {
    const plain = ESCAPES[char]
    if (plain === undefined) throw new PathError(`unknown escape ${char}`)
    return plain
  })
}

function parseBracket(text: string, start: number, steps: PathStep[]): number {
  const close = text.indexOf(']', start)
  if (close < 0) throw new PathError('unterminated array')
  const inner = text.slice(start + 1, close)
  const parts = inner.split(',')
  if (parts.length > 1) steps.push({ is: 'union', of: parts.map((part) => parse(`[${part.trim()}]`)) })
  else steps.push(...parseSelection(inner))
  return close + 1
}

function parseSelection(inner: string): PathStep[] {
  const key = /^'([^']*)'$/.exec(inner)?.[1]
  // A quoted key is read as fields: Kubernetes wants the dots of one key escaped here too.
  if (key !== undefined) return parse(`.${key}`)
  const match = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(inner === '*' ? ':' : inner)
  if (match === null || match.includes('-')) throw new PathError(`no index: ${inner}`)
  const [from, to, by] = match.slice(1).map((part) => (part === undefined || part === '' ? undefined : Number(part)))
  const step = { is: 'slice', single: match[2] === undefined, by: by ?? 1 } as const
  return [{ ...step, ...(from !== undefined && { from }), ...(to !== undefined && { to }) }]
}

function parseFilter(text: string, start: number, steps: PathStep[]): number {
  let quote = ''
  let closed = true
  let at = start
  for (; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === ')' && closed) break
    if (char !== '"' && char !== "'") continue
    if (quote === '') {
      quote = char
      closed = false
    } else if (char === quote && text[at - 1] !== '\\') closed = true
  }
  if (text[at] !== ')' || text[at + 1] !== ']') throw new PathError('unterminated filter')
  const inner = text.slice(start, at)
  const comparison = /^([^!<>=]+)([!<>=]+)(.+)$/.exec(inner)
  if (comparison === null) steps.push({ is: 'filter', left: parse(inner), operator: 'exists', right: [] })
  else {
    const [, left = '', operator = '', right = ''] = comparison
    steps.push({ is: 'filter', left: parse(left), operator, right: parse(right) })
  }
  return at + 2
}

/** What may still be found: by all parts of one path. */
type Findings = { left: number }

function spend(budget: Findings, findings: number): void {
  budget.left -= findings
  if (budget.left < 0) throw new PathError('too many findings')
}

function walk(steps: readonly PathStep[], input: readonly unknown[], budget: Findings): readonly unknown[] {
  let current = input
  for (const step of steps) {
    spend(budget, 1 + current.length)
    current = take(step, current, budget)
  }
  return current
}

function take(step: PathStep, input: readonly unknown[], budget: Findings): readonly unknown[] {
  switch (step.is) {
    case 'field':
      return input
        .filter((value) => isObject(value) && Object.hasOwn(value, step.name))
        .map((v) => Object(v)[step.name])
    case 'wildcard':
      return gathered(input, childrenOf, budget)
    case 'recursive':
      return descend(input, budget)
    case 'literal':
      return input.map(() => step.value)
    case 'slice':
      return gathered(input, (value) => (value === null ? [] : sliceOf(value, step)), budget)
    case 'union':
      return gathered(step.of, (branch) => walk(branch, input, budget), budget)
    case 'filter':
      return gathered(input, (value) => arrayOf(value).filter((item) => passes(item, step, budget)), budget)
    case 'unknown':
      throw new PathError('unrecognized identifier')
  }
}

/** What is found in each value, paid for before it is put beside what the others have. */
function gathered<Value>(
  input: readonly Value[],
  findIn: (value: Value) => readonly unknown[],
  budget: Findings,
): readonly unknown[] {
  const found: unknown[] = []
  for (const value of input) {
    const more = findIn(value)
    spend(budget, more.length)
    for (const one of more) found.push(one)
  }
  return found
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function arrayOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new PathError('not an array')
  return value
}

function childrenOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  return isObject(value) ? Object.values(value) : []
}

/** Everything below, what lies first first; of any depth. */
function descend(input: readonly unknown[], budget: Findings): unknown[] {
  const found: unknown[] = []
  const left = [...input].reverse()
  while (left.length > 0) {
    const value = left.pop()
    const children = childrenOf(value)
    if (children.length === 0) continue
    spend(budget, children.length)
    found.push(value)
    for (let at = children.length - 1; at >= 0; at--) left.push(children[at])
  }
  return found
}

function sliceOf(value: unknown, step: PathStep & { is: 'slice' }): readonly unknown[] {
  const items = arrayOf(value)
  let from = step.from ?? 0
  let to = step.single ? from + 1 : (step.to ?? items.length)
  if (from < 0) from += items.length
  if (to < 0 || (to === 0 && step.single)) to += items.length
  if (from === to) return []
  if (from < 0 || from >= items.length || to < 0 || to > items.length || from > to || step.by <= 0) {
    throw new PathError('index out of bounds')
  }
  return items.slice(from, to).filter((_, index) => index % step.by === 0)
}

function passes(item: unknown, step: PathStep & { is: 'filter' }, budget: Findings): boolean {
  const left = walk(step.left, [item], budget)
  if (step.operator === 'exists') return left.length > 0
  if (left.length === 0) return false
  const right = walk(step.right, [item], budget)
  if (right.length === 0) return false
  if (left.length > 1 || right.length > 1) throw new PathError('only one element can be compared at a time')
  return compare(left[0], step.operator, right[0])
}

function compare(left: unknown, operator: string, right: unknown): boolean {
  const kind = typeof left
  if (kind !== typeof right || (kind !== 'string' && kind !== 'number' && kind !== 'boolean')) {
    throw new PathError('incompatible kinds for comparison')
  }
  if (operator === '==') return left === right
  if (operator === '!=') return left !== right
  if (kind === 'boolean') throw new PathError('booleans have no order')
  const [a, b] = [left as string | number, right as string | number]
  if (operator === '<') return a < b
  if (operator === '<=') return a <= b
  if (operator === '>') return a > b
  if (operator === '>=') return a >= b
  throw new PathError(`unrecognized operator ${operator}`)
}
