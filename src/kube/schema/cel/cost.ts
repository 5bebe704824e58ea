/**
 * What a rule costs while it is evaluated, by kube-apiserver's tariff: one for a name, a selection or a call, a tenth
 * for each character a call has to walk along. A rule that costs more than its limit is broken off. Where the engine
 * walks along something for which that tariff asks nothing (a list that is copied, a text that is counted), a tenth is
 * charged for each element all the same: the limit is there to bound time.
 */

import type { ASTNode } from '@marcbachmann/cel-js'

/** For one evaluation of one expression, as kube-apiserver's `PerCallLimit`. */
export const CALL_COST_MAX = 1_000_000
/** For all rules of one object, as its `RuntimeCELCostBudget`. */
export const OBJECT_COST_MAX = 10_000_000

/** A turn of a loop that comes to nothing. */
const TURN_COST = 0.1
const LIST_COST = 10
const MAP_COST = 30
/** Each element or character that is walked along. */
const WALK_COST = 0.1
/** Each character that is only counted. */
const COUNT_COST = 0.001
/** Each character of a pattern, for each tenth of a text that is held to it. */
const PATTERN_COST = 0.25
/** An element that is compared or copied takes as long as this many characters. */
const ELEMENT_SIZE = 5
/** A time in another zone: the engine spends 200 µs on it. */
const ZONE_COST = 4000
/** An error, which an expression may go on after: the engine spends some µs on its message. */
const ERROR_COST = 100

class CostExceeded extends Error {}

/** Counts one evaluation at a time; evaluations never wait for anything. */
export class Meter {
  #cost = 0
  #limit = CALL_COST_MAX
  readonly #sizes = new WeakMap<object, number>()

  begin(limit: number): void {
    this.#cost = 0
    this.#limit = limit
  }

  /** So far, in the evaluation that began last. */
  get cost(): number {
    return this.#cost
  }

  get isExceeded(): boolean {
    return this.#cost > this.#limit
  }

  charge(cost: number): void {
    this.#cost += cost
    if (this.#cost > this.#limit) throw new CostExceeded('operation cancelled: actual cost limit exceeded')
  }

  walk(size: number): void {
    this.charge(Math.ceil(size * WALK_COST))
  }

  /** How long it takes to walk along everything below a value, in characters. */
  deepSize(value: unknown): number {
    if (typeof value === 'string') return value.length
    if (typeof value !== 'object' || value === null) return 1
    const known = this.#sizes.get(value)
    if (known !== undefined) return known
    let size = 1 + ELEMENT_SIZE * sizeOf(value)
    if (Array.isArray(value)) for (const item of value) size += this.deepSize(item)
    else if (value instanceof Map) for (const [key, item] of value) size += this.deepSize(key) + this.deepSize(item)
    else if (value instanceof Uint8Array) size = value.length
    else if (Object.getPrototypeOf(value) === Object.prototype)
      for (const [key, item] of Object.entries(value)) size += key.length + this.deepSize(item)
    this.#sizes.set(value, size)
    return size
  }
}

type Evaluate = (engine: unknown, node: unknown, context: unknown) => unknown
type Handle = (...args: unknown[]) => unknown

/** A node as the engine has prepared it for evaluation: more than its types say. */
type Prepared = {
  readonly op: string
  readonly args: unknown
  handle?: Handle
  readonly meta: {
    readonly evaluate: Evaluate
    /** What a macro was expanded to, which is evaluated in its place. */
    readonly alternate?: Prepared
    readonly macro?: Record<string, unknown> & { evaluate: Evaluate }
  }
  setMeta(key: 'evaluate', evaluate: Evaluate): unknown
}

type Comprehension = { condition?: (accumulated: unknown) => unknown; readonly init: Prepared }

/** Makes an expression that has been checked, and not evaluated yet, charge the meter for whatever it does. */
export function metered(root: ASTNode, meter: Meter): void {
  const seen = new Set<unknown>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    if (Array.isArray(value)) for (const item of value) visit(item)
    else if (isPrepared(value)) node(value)
  }
  const node = (prepared: Prepared): void => {
    const { alternate, macro } = prepared.meta
    if (alternate !== undefined) {
      visit(alternate)
      return
    }
    if (macro !== undefined) {
      const { evaluate, macroHasProps } = macro
      const cost = Array.isArray(macroHasProps) ? macroHasProps.length - 1 : 1
      macro.evaluate = (engine, self, context) => {
        meter.charge(cost)
        return evaluate(engine, self, context)
      }
      for (const [name, part] of Object.entries(macro)) if (name !== 'ast') visit(part)
      return
    }
    meterNode(prepared, meter)
    const { args } = prepared
    visit(prepared.op === 'comprehension' ? Object.values(args as object) : args)
  }
  visit(root)
}

function isPrepared(value: object): value is Prepared {
  return 'op' in value && 'meta' in value && 'setMeta' in value
}

const FIXED: Readonly<Record<string, number>> = {
  id: 1,
  '.': 1,
  '.?': 1,
  '[]': 1,
  '[?]': 1,
  list: LIST_COST,
  map: MAP_COST,
  // What a macro does with what it has gathered so far, spelled out as kube-apiserver's engine spells it.
  // That has nothing for what a turn leaves as it was, but turns take their time.
  accuValue: TURN_COST,
  accuInc: 2,
  accuPush: LIST_COST + 2,
  '!_': 1,
  '-_': 1,
}

/** A list or map of literals: kube-apiserver makes it once. */
function isConstant({ op, args }: Prepared): boolean {
  if ((op !== 'list' && op !== 'map') || !Array.isArray(args)) return false
  return args.flat().every((part: Prepared) => part.op === 'value' || isConstant(part))
}

function meterNode(prepared: Prepared, meter: Meter): void {
  const { op } = prepared
  const fixed = isConstant(prepared) ? Math.ceil(sizeOf(prepared.args) * WALK_COST) : (FIXED[op] ?? 0)
  if (fixed > 0) {
    const { evaluate } = prepared.meta
    prepared.setMeta('evaluate', (engine, node, context) => {
      meter.charge(fixed)
      return evaluate(engine, node, context)
    })
  }
  const { handle } = prepared
  if (op === 'comprehension') meterLoop(prepared.args as Comprehension, meter)
  if (handle === undefined) return
  const charge = chargeOf(prepared, meter)
  prepared.handle = (first, second, ...rest) => {
    charge?.(first, second)
    if (op === 'comprehension' || op === '?:') return handle(first, second, ...rest)
    try {
      return handle(first, second, ...rest)
    } catch (error) {
      meter.charge(ERROR_COST)
      throw error
    }
  }
}

/** What is charged for the values that a node is about to work on. */
function chargeOf({ op, args }: Prepared, meter: Meter): ((first: unknown, second: unknown) => void) | undefined {
  if (op === 'call' || op === 'rcall') {
    const [name] = args as [string]
    return (values) => chargeCall(meter, name, values as unknown[])
  }
  // The keys of a map are copied before the first of them is looked at.
  if (op === 'comprehension') return (values) => Array.isArray(values) || meter.walk(ELEMENT_SIZE * sizeOf(values))
  return BINARY.has(op) ? (left, right) => chargeOperator(meter, op, left, right) : undefined
}

const BINARY: ReadonlySet<string> = new Set('!= == in + - * / % < <= > >='.split(' '))

/** The engine goes on after an error in one turn of a loop, but not after one in the question whether to go on. */
function meterLoop(loop: Comprehension, meter: Meter): void {
  const { condition } = loop
  if (condition === undefined) return
  // `all` looks at what it has, `exists` at the opposite.
  const cost = loop.init.args === true ? 3 : 4
  loop.condition = (accumulated) => {
    meter.charge(cost)
    return condition(accumulated)
  }
}

function chargeOperator(meter: Meter, op: string, left: unknown, right: unknown): void {
  if (op === 'in') meter.charge(Math.max(sizeOf(right), Math.ceil(meter.deepSize(right) * WALK_COST)))
  else if (op === '+' && Array.isArray(left)) meter.walk(ELEMENT_SIZE * (left.length + sizeOf(right)))
  else if (op === '+' && sized(left)) meter.walk(sizeOf(left) + sizeOf(right))
  else if (sized(left)) meter.walk(Math.min(meter.deepSize(left), meter.deepSize(right)))
  else meter.charge(1)
}

function sized(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value) || value instanceof Uint8Array) return value.length
  if (value instanceof Map) return value.size
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
    ? Object.keys(value).length
    : 1
}

/** Calls that hold a text to a pattern; the pattern is the second value. */
const PATTERNS: ReadonlySet<string> = new Set(['matchesPattern', 'find', 'findAll'])
/** Calls that walk along a list. */
const LISTS: ReadonlySet<string> = new Set(['isSorted', 'sum', 'min', 'max', 'indexOf', 'lastIndexOf'])
/** Calls that compare every member of a list with every member of another. */
const PAIRS: ReadonlySet<string> = new Set(['contains', 'equivalent', 'intersects'])
/** Calls that print, along with everything below, what they are given. */
const PRINTS: ReadonlySet<string> = new Set(['format', 'replace', 'split', 'reverse', 'quote'])
/** The pattern behind a named format, in characters. */
const FORMAT_PATTERN = 100

/** By name: which of the functions of that name it is shows in the values. */
function chargeCall(meter: Meter, name: string, values: readonly unknown[]): void {
  const [first, second, third] = values
  if (PATTERNS.has(name)) chargePattern(meter, sizeOf(first), sizeOf(second))
  else if (name === 'validate') chargePattern(meter, sizeOf(second), FORMAT_PATTERN)
  else if (PAIRS.has(name) && Array.isArray(second) && Array.isArray(third)) {
    meter.walk(1 + meter.deepSize(second) * meter.deepSize(third))
  } else if (name === 'contains' && typeof first === 'string') {
    meter.charge(Math.ceil(first.length * WALK_COST) * Math.ceil(sizeOf(second) * WALK_COST))
  } else if (LISTS.has(name) && Array.isArray(first)) {
    meter.charge(first.length + Math.ceil(meter.deepSize(first) * WALK_COST))
  } else if (name === 'join' && Array.isArray(first)) {
    meter.walk(2 * (meter.deepSize(first) + first.length * sizeOf(second ?? '')))
  } else if (PRINTS.has(name)) {
    meter.walk(2 * values.reduce((sum: number, value) => sum + meter.deepSize(value), 0))
  } else if (name === 'lengthOf') {
    meter.charge(1 + Math.ceil(textSize(first) * COUNT_COST))
  } else if (first instanceof Date && typeof second === 'string') {
    meter.charge(ZONE_COST)
  } else {
    meter.walk(Math.max(1, textSize(first) + textSize(second)))
  }
}

function chargePattern(meter: Meter, text: number, pattern: number): void {
  meter.charge(Math.ceil((text + 1) * WALK_COST) * Math.ceil(pattern * PATTERN_COST))
}

/** Texts are walked along whatever is done with them; how long a list is is known. */
function textSize(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0
}
