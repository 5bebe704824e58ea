/**
 * The functions Kubernetes adds to CEL: lists, regular expressions, sets, strings, formats; addresses and amounts are
 * registered from celnetwork and celamount. Arguments arrive as the engine represents them (integers are bigint).
 */

import type * as Cel from '@marcbachmann/cel-js'
import { parseGoDuration } from '../../json/gotext.ts'
import { labelKeyFaults, labelValueFaults } from '../../labels.ts'
import { asWholeName, dns1035LabelFaults, dnsLabelFaults, dnsSubdomainFaults } from '../../names.ts'
import { stringFormat } from '../formats.ts'
import { allMatches, firstMatch, matches, sizeToCompile, stepsOf } from '../pattern.ts'
import { lengthOf } from '../values.ts'
import { registerAmounts } from './amount.ts'
import type { Meter } from './cost.ts'
import { registerNetwork } from './network.ts'
import { formatText, quoteText } from './text.ts'
import type { DurationOf, Environment, Fail } from './value.ts'

/** Longest duration, in characters. */
const DURATION_MAX = 1_000

type Parts = { readonly cel: typeof Cel; readonly meter: Meter; readonly durationOf: DurationOf }

export function registerLibrary(environment: Environment, { cel, meter, durationOf }: Parts): void {
  const fail: Fail = (message) => new cel.EvaluationError({ code: 'library_error', message } as never)
  registerSizes(environment)
  environment.registerFunction('durationOf(string): google.protobuf.Duration', (text: string) => {
    const parsed = text.length <= DURATION_MAX ? parseGoDuration(text) : undefined
    if (parsed !== undefined && 'ns' in parsed) return durationOf(parsed.ns)
    throw fail("type conversion error from 'string' to 'google.protobuf.Duration'")
  })
  registerLists(environment, fail)
  registerPatterns(environment, fail, meter)
  registerSets(environment)
  registerStrings(environment, fail, meter)
  registerFormats(environment, cel)
  registerNetwork(environment, fail)
  registerAmounts(environment, fail)
}

/** Texts in characters: the engine's own walks along them one by one. */
function registerSizes(environment: Environment): void {
  const sizes: Record<string, (value: never) => number> = {
    string: (text: string) => lengthOf(text),
    bytes: (bytes: Uint8Array) => bytes.length,
    list: (list: unknown[]) => list.length,
    map: (map: Map<unknown, unknown> | object) => (map instanceof Map ? map.size : Object.keys(map).length),
  }
  for (const [type, size] of Object.entries(sizes)) {
    const handler = (value: unknown) => BigInt(size(value as never))
    environment.registerFunction(`lengthOf(${type}): int`, handler)
    environment.registerFunction(`${type}.lengthOf(): int`, handler)
  }
}

type Comparable = bigint | number | string | boolean | Date

function registerLists(environment: Environment, fail: Fail): void {
  const best = (name: string, better: (a: Comparable, b: Comparable) => boolean) => (list: Comparable[]) => {
    const first = list[0]
    if (first === undefined) throw fail(`${name} called on empty list`)
    return list.reduce((a, b) => (better(b, a) ? b : a), first)
  }
  environment
    .registerFunction('list.isSorted(): bool', (list: Comparable[]) =>
      list.every((item, index) => index === 0 || (list[index - 1] as Comparable) <= item),
    )
    .registerFunction('list.sum(): dyn', (list: Array<bigint | number>) => {
      if (list.length === 0) return 0n
      return typeof list[0] === 'bigint'
        ? (list as bigint[]).reduce((a, b) => a + b, 0n)
        : (list as number[]).reduce((a, b) => a + b, 0)
    })
    .registerFunction(
      'list.min(): dyn',
      best('min', (a, b) => a < b),
    )
    .registerFunction(
      'list.max(): dyn',
      best('max', (a, b) => a > b),
    )
    .registerFunction('list.indexOf(dyn): int', (list: unknown[], item: unknown) =>
      BigInt(list.findIndex((other) => sameItem(other, item))),
    )
    .registerFunction('list.lastIndexOf(dyn): int', (list: unknown[], item: unknown) =>
      BigInt(list.findLastIndex((other) => sameItem(other, item))),
    )
}

/** Deep equality of the engine's values. */
function sameItem(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (
    (typeof left === 'bigint' || typeof left === 'number') &&
    (typeof right === 'bigint' || typeof right === 'number')
  )
    // biome-ignore lint/suspicious/noDoubleEquals: 1n and 1.0 are equal in CEL
    return left == right
  if (left instanceof Date && right instanceof Date) return left.getTime() === right.getTime()
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => sameItem(item, right[index]))
  if (left instanceof Map && right instanceof Map)
    return (
      left.size === right.size && [...left].every(([key, item]) => right.has(key) && sameItem(item, right.get(key)))
    )
  return false
}

/** By the tariff of rules, for each instruction that is made, and for each instruction and character that meet. */
const COMPILE_COST = 50
const STEP_COST = 0.05

function registerPatterns(environment: Environment, fail: Fail, meter: Meter): void {
  const held = <T>(source: string, text: string, find: () => T | undefined): T => {
    meter.charge(sizeToCompile(source) * COMPILE_COST)
    let found: T | undefined
    try {
      meter.charge(Math.ceil(stepsOf(source, text) * STEP_COST))
      found = find()
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw fail(`Illegal regex: ${error.message}`)
    }
    if (found === undefined) throw fail('the text is too long for its pattern')
    return found
  }
  const test = (text: string, source: string) => held(source, text, () => matches(source, text))
  environment
    .registerFunction('string.matchesPattern(string): bool', test)
    .registerFunction('matchesPattern(string, string): bool', test)
    .registerFunction('string.find(string): string', (text: string, source: string) =>
      held(source, text, () => firstMatch(source, text)),
    )
    .registerFunction('string.findAll(string): list<string>', (text: string, source: string) =>
      held(source, text, () => allMatches(source, text, -1)),
    )
    .registerFunction('string.findAll(string, int): list<string>', (text: string, source: string, limit: bigint) =>
      held(source, text, () => allMatches(source, text, Number(limit))),
    )
}

class SetsNamespace {}
class StringsNamespace {}
class FormatNamespace {}
class Format {
  readonly problems: (text: string) => string[]

  constructor(problems: (text: string) => string[]) {
    this.problems = problems
  }
}

function registerSets(environment: Environment): void {
  const within = (list: unknown[], item: unknown) => list.some((other) => sameItem(other, item))
  const contains = (list: unknown[], part: unknown[]) => part.every((item) => within(list, item))
  environment
    .registerType('SetsNamespace', SetsNamespace)
    .registerConstant('sets', 'SetsNamespace', new SetsNamespace())
    .registerFunction('SetsNamespace.contains(list, list): bool', (_: unknown, list: unknown[], part: unknown[]) =>
      contains(list, part),
    )
    .registerFunction(
      'SetsNamespace.equivalent(list, list): bool',
      (_: unknown, a: unknown[], b: unknown[]) => contains(a, b) && contains(b, a),
    )
    .registerFunction('SetsNamespace.intersects(list, list): bool', (_: unknown, a: unknown[], b: unknown[]) =>
      a.some((item) => within(b, item)),
    )
}

function registerStrings(environment: Environment, fail: Fail, meter: Meter): void {
  const replaced = (text: string, from: string, to: string, limit: number): string => {
    const parts = text.split(from)
    const head = limit < 0 ? parts : parts.slice(0, limit + 1)
    // Two short texts can ask for a very long one.
    meter.walk(text.length + (head.length + 1) * to.length)
    return limit < 0 ? text.replaceAll(from, () => to) : [head.join(to), ...parts.slice(head.length)].join(from)
  }
  environment
    .registerFunction('string.charAt(int): string', (text: string, index: bigint) => {
      const characters = [...text]
      if (index < 0n || index > BigInt(characters.length)) throw fail(`index out of range: ${index}`)
      return characters[Number(index)] ?? ''
    })
    .registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
      replaced(text, from, to, -1),
    )
    .registerFunction(
      'string.replace(string, string, int): string',
      (text: string, from: string, to: string, limit: bigint) => replaced(text, from, to, Number(limit)),
    )
    .registerFunction('string.reverse(): string', (text: string) => [...text].reverse().join(''))
    .registerFunction('string.format(list): string', (text: string, list: unknown[]) => formatText(text, list, fail))
    .registerType('StringsNamespace', StringsNamespace)
    .registerConstant('strings', 'StringsNamespace', new StringsNamespace())
    .registerFunction('StringsNamespace.quote(string): string', (_: unknown, text: string) => quoteText(text))
}

function registerFormats(environment: Environment, cel: typeof Cel): void {
  const known = (name: string, text: string) =>
    stringFormat(name)?.(text) ? [] : [`does not match the ${name} format`]
  const prefix = (check: (text: string) => string[]) => (text: string) => check(asWholeName(text))
  const formats: Record<string, (text: string) => string[]> = {
    dns1123Label: dnsLabelFaults,
    dns1123Subdomain: (text) => dnsSubdomainFaults(text),
    dns1035Label: dns1035LabelFaults,
    dns1123LabelPrefix: prefix(dnsLabelFaults),
    dns1123SubdomainPrefix: prefix((text) => dnsSubdomainFaults(text)),
    dns1035LabelPrefix: prefix(dns1035LabelFaults),
    qualifiedName: labelKeyFaults,
    labelValue: labelValueFaults,
    uri: (text) => known('uri', text),
    uuid: (text) => known('uuid', text),
    byte: (text) => known('byte', text),
    date: (text) => known('date', text),
    datetime: (text) => known('datetime', text),
  }
  environment
    .registerType('FormatNamespace', FormatNamespace)
    .registerType('Format', Format)
    .registerConstant('format', 'FormatNamespace', new FormatNamespace())
    .registerFunction('FormatNamespace.named(string): optional<Format>', (_: unknown, name: string) => {
      const check = Object.hasOwn(formats, name) ? formats[name] : undefined
      return check === undefined ? cel.Optional.none() : cel.Optional.of(new Format(check))
    })
    .registerFunction('Format.validate(string): optional<list<string>>', (format: Format, text: string) => {
      const problems = format.problems(text)
      return problems.length === 0 ? cel.Optional.none() : cel.Optional.of(problems)
    })
  for (const [name, check] of Object.entries(formats)) {
    environment.registerFunction(`FormatNamespace.${name}(): Format`, () => new Format(check))
  }
}
