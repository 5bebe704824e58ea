/**
 * Patterns as Go reads and matches them, in time linear in the text whatever the pattern: schemas and rules bring both,
 * and a backtracking engine can be made to stall the process with either. The engine is loaded at the first pattern.
 */

import { createRequire } from 'node:module'
import type * as Re2 from 're2js'

export type Pattern = {
  readonly compiled: Re2.RE2JS
  /** Instructions of the compiled program: a text costs at most its length times this. */
  readonly size: number
}

/** Longest program, in instructions: it takes 50 ms to make. Schemas in use need some hundreds; Go stops at a million. */
const SIZE_MAX = 10_000
/** Longest source, in characters: what stands in a class is no instruction, and has to be read all the same. */
const SOURCE_MAX = 100_000

/**
 * The most one text may cost, in instructions times characters: a tenth of a second in the worst case, a thousandth
 * usually. 1.5 MB, the largest object there is, may be held to a pattern of ten instructions.
 */
export const TEXT_STEPS_MAX = 16_000_000

/** Compiled patterns kept: what the definitions in use need, beyond that compiling again is cheap enough. */
const KEPT_MAX = 2_000

/** A pattern remembers states it has been in, at most 8 MB of them, which is reached after this many steps at the least. */
const GROWN_MAX_STEPS = 1_000_000
/** What all kept patterns may have grown to: beyond 32 full ones (256 MB, were every pattern hostile) all are forgotten. */
const KEPT_GROWN_MAX_STEPS = 32 * GROWN_MAX_STEPS

type Kept = Pattern & { grown: number }

const kept = new Map<string, Kept>()
let grown = 0

let engine: typeof Re2 | undefined

function load(): typeof Re2 {
  engine ??= createRequire(import.meta.url)('re2js') as typeof Re2
  return engine
}

/** Throws a SyntaxError in Go's words for what is no pattern. */
export function goPattern(source: string): Pattern {
  let known = kept.get(source)
  if (known === undefined) {
    known = { ...compile(source), grown: 0 }
    if (kept.size >= KEPT_MAX) forget()
    kept.set(source, known)
  }
  return known
}

/** Undefined where the text is too long for this pattern. */
export function matches(source: string, text: string): boolean | undefined {
  const pattern = patternFor(source, text)
  return pattern?.compiled.test(text)
}

/** The first place that matches, '' where none does; undefined where the text is too long. */
export function firstMatch(source: string, text: string): string | undefined {
  const pattern = patternFor(source, text)
  return pattern === undefined ? undefined : (pattern.compiled.exec(text)?.[0] ?? '')
}

/** At most `limit` places that match, all of them with a negative one; undefined where the text is too long. */
export function allMatches(source: string, text: string, limit: number): string[] | undefined {
  const pattern = patternFor(source, text)
  if (pattern === undefined) return undefined
  const found: string[] = []
  for (const match of pattern.compiled.matchAll(text)) {
    if (found.length === limit) break
    found.push(match[0])
  }
  return found
}

/** The steps a text takes in the worst case. */
export function stepsOf(source: string, text: string): number {
  return goPattern(source).size * (text.length + 1)
}

/** Whether a pattern is at hand; making one takes about 5 µs for each instruction. */
export function sizeToCompile(source: string): number {
  return kept.has(source) ? 0 : programSize(source)
}

function patternFor(source: string, text: string): Pattern | undefined {
  const pattern = goPattern(source) as Kept
  const steps = pattern.size * (text.length + 1)
  if (steps > TEXT_STEPS_MAX) return undefined
  if (pattern.grown < GROWN_MAX_STEPS) {
    pattern.grown += steps
    grown += steps
    if (grown > KEPT_GROWN_MAX_STEPS) forget()
  }
  return pattern
}

function forget(): void {
  kept.clear()
  grown = 0
}

function compile(source: string): Pattern {
  if (source.length > SOURCE_MAX || programSize(source) > SIZE_MAX)
    throw new SyntaxError(`expression too large: \`${source.slice(0, 100)}\``)
  try {
    const compiled = load().RE2JS.compile(source)
    return { compiled, size: compiled.programSize() }
  } catch (error) {
    const words = (error as Error).message.replace(/^error parsing regexp: /, '')
    // Go shows what it complains about, even where that is nothing.
    throw new SyntaxError(/: `/.test(words) ? words : `${words}: \`\``)
  }
}

/**
 * About how many instructions a pattern has, counted repetitions written out: a short text can ask for a million. What
 * is no pattern at all gets some number too; the engine refuses it afterwards.
 */
function programSize(source: string): number {
  const outer: number[] = []
  let sum = 0
  let last = 0
  for (let at = 0; at < source.length; at++) {
    const character = source[at]
    if (character === '(') {
      outer.push(sum + last)
      sum = 0
      last = 0
    } else if (character === ')') {
      last += sum + 2
      sum = outer.pop() ?? 0
    } else if (character === '{') {
      const counted = /^\{(\d{1,4})(?:,(\d{0,4}))?\}/.exec(source.slice(at, at + 12))
      if (counted === null) {
        sum += last
        last = 1
      } else {
        const [least, most] = [Number(counted[1]), Number(counted[2] ?? 0)]
        // What may be there or not takes an instruction more each time.
        last = last * Math.max(least, most, 1) + Math.max(most - least, 0)
        at += counted[0].length - 1
      }
    } else {
      sum += last
      last = 1
      if (character === '\\') at++
      if (character === '[') at = classEnd(source, at)
    }
    if (sum + last > SIZE_MAX) return sum + last
  }
  return outer.reduce((a, b) => a + b, sum + last)
}

/** Where a character class ends. */
function classEnd(source: string, start: number): number {
  let at = start + 1
  if (source[at] === '^') at++
  if (source[at] === ']') at++
  for (; at < source.length && source[at] !== ']'; at++) {
    if (source[at] === '\\') at++
    else if (source.startsWith('[:', at)) {
      const end = source.indexOf(':]', at)
      if (end > 0 && end - at < 12) at = end + 1
    }
  }
  return at
}
