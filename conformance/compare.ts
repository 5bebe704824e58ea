/** Two answers to one request, brought to one form and compared: status, headers that matter, layout and body. */
import { load } from 'js-yaml'
import { type Answer, isSaid } from './exchange.ts'
import type { Mapping } from './mapping.ts'

/** `field` is a path such as `status`, `header.warning`, `body.items[0].metadata.labels`, `frames[2].type`. */
export type Difference = { readonly field: string; readonly real: unknown; readonly ours: unknown }

export type Reading = { readonly [part: string]: unknown }

/** Of the connection, or of the moment. */
const unread = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])
/** Whose presence alone is compared. */
const presenceOnly = new Set(['audit-id', 'etag', 'last-modified', 'expires'])

const absent = '<absent>'

export function read(answer: Answer, mapping: Mapping, asWatch: boolean): Reading {
  const type = String(answer.headers['content-type'] ?? '')
  const header: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(answer.headers)) {
    if (unread.has(name)) continue
    if (name.startsWith('x-kubernetes-pf-')) mapping.removed.add('priority-and-fairness')
    else header[name] = presenceOnly.has(name) ? `<${name}>` : mapping.json(value)
  }
  const top = { status: answer.status, header }
  const streamed = asWatch && answer.status === 200
  if (streamed) {
    const lines = answer.body.split('\n').filter(Boolean)
    const frames = lines.filter(isSaid)
    if (frames.length < lines.length) mapping.removed.add('plain-bookmarks')
    return { ...top, frames: frames.map((line) => parsed(line, mapping)) }
  }
  if (answer.body === '') return { ...top, body: '' }
  if (type.startsWith('application/json') || answer.body.startsWith('{'))
    return { ...top, layout: layoutOf(answer.body), body: parsed(answer.body, mapping) }
  if (type.startsWith('application/yaml')) return { ...top, body: mapping.json(load(answer.body)) }
  return { ...top, body: mapping.text(answer.body) }
}

function parsed(text: string, mapping: Mapping): unknown {
  try {
    return mapping.json(JSON.parse(text, keepSpelling))
  } catch {
    return mapping.text(text)
  }
}

/** A number is its spelling: 1.0 and 1 differ, and so do two large integers. */
function keepSpelling(_key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  return typeof value === 'number' && source !== String(value) ? `number ${source}` : value
}

function layoutOf(text: string): string {
  const end = text.endsWith('\n') ? 'newline' : 'no newline'
  const indent = /^[[{]\n( +)"/.exec(text)?.[1]?.length
  return `${indent === undefined ? 'compact' : `indented by ${indent}`}, ${end}`
}

export function differences(real: unknown, ours: unknown, field = ''): Difference[] {
  if (Object.is(real, ours)) return []
  if (Array.isArray(real) && Array.isArray(ours)) {
    const found = real.flatMap((inner, at) => (at < ours.length ? differences(inner, ours[at], `${field}[${at}]`) : []))
    if (real.length !== ours.length) {
      const rest = (list: unknown[]) => list.slice(Math.min(real.length, ours.length))
      found.push({ field: `${field}.length`, real: [real.length, ...rest(real)], ours: [ours.length, ...rest(ours)] })
    }
    return found
  }
  if (isObject(real) && isObject(ours)) {
    const keys = new Set([...Object.keys(real), ...Object.keys(ours)])
    return [...keys].flatMap((key) => {
      const path = field === '' ? key : `${field}.${key}`
      return differences(key in real ? real[key] : absent, key in ours ? ours[key] : absent, path)
    })
  }
  return [{ field, real, ours }]
}

function isObject(value: unknown): value is { [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
