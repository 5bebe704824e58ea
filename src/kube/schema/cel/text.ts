/** `"%s has %d".format([…])` and `strings.quote` of CEL's strings extension. */

import type { Fail } from './value.ts'

export function formatText(template: string, values: readonly unknown[], fail: Fail): string {
  let at = 0
  return template.replace(/%(?:%|(\.\d+)?([a-zA-Z]))/g, (clause, precision: string | undefined, verb: string) => {
    if (clause === '%%') return '%'
    if (at >= values.length) throw fail(`index ${at} out of range`)
    return oneValue(values[at++], verb, precision === undefined ? undefined : Number(precision.slice(1)), fail)
  })
}

function oneValue(value: unknown, verb: string, precision: number | undefined, fail: Fail): string {
  const number = typeof value === 'bigint' || typeof value === 'number'
  switch (verb) {
    case 's':
      return plainText(value)
    case 'd':
      if (number) return String(value)
      break
    case 'f':
      if (number) return Number(value).toFixed(precision ?? 6)
      break
    case 'e':
      if (number)
        return Number(value)
          .toExponential(precision ?? 6)
          .replace(/e([+-])(\d)$/, 'e$10$2')
      break
    case 'b':
      if (typeof value === 'bigint') return value.toString(2)
      if (typeof value === 'boolean') return value ? '1' : '0'
      break
    case 'o':
      if (typeof value === 'bigint') return value.toString(8)
      break
    case 'x':
    case 'X': {
      const hex =
        typeof value === 'bigint'
          ? value.toString(16)
          : typeof value === 'string'
            ? Buffer.from(value).toString('hex')
            : ''
      if (hex !== '') return verb === 'x' ? hex : hex.toUpperCase()
      break
    }
    default:
      throw fail(`could not parse formatting clause: unrecognized formatting clause "${verb}"`)
  }
  throw fail(`error during formatting: %${verb} does not take this type of value`)
}

function plainText(value: unknown): string {
  if (value instanceof Date) return value.toISOString().replace(/\.?0+Z$/, 'Z')
  if (Array.isArray(value)) return `[${value.map(plainText).join(', ')}]`
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]) => `${plainText(key)}: ${plainText(item)}`)
    return `{${entries.sort().join(', ')}}`
  }
  return String(value)
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

export function quoteText(text: string): string {
  return `"${[...text].map((character) => ESCAPES[character] ?? character).join('')}"`
}
