/**
 * Two answers to one read of the same cluster, one of them an edge's: bytes against bytes. What belongs to the moment or to
 * the connection is taken out of both first, and nothing else.
 */

import { type Difference, differences } from '../compare.ts'
import type { Case } from '../corpus.ts'
import { type Answer, isSaid } from '../exchange.ts'

/** Of the connection or of the moment; lengths follow from the bodies. */
const unread = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding', 'audit-id'])
/** What an edge says about the age of its copy. */
const aboutTheCopy = /299 \S+ "served from the local copy(?:[^"\\]|\\.)*"(?:, )?/g
const age = /"(?:<invalid>|(?:\d+[ydhms])+)"/g
const shownAround = 120

const momentary: readonly [RegExp, string][] = [
  // A list's version, or a bookmark's: it moves with everything that is written to the cluster. An object's stands behind its name.
  [/("metadata":\s*\{\s*"resourceVersion":\s*")\d+/g, '$1<version>'],
  [/(metadata:\n\s+(?:continue: .*\n\s+(?:remainingItemCount: \d+\n\s+)?)?resourceVersion: ")\d+/g, '$1<version>'],
  [/("continue":\s*")[^"]+/g, '$1<continue>'],
  [/(continue: )\S+/g, '$1<continue>'],
  [/("k8s\.io\/initial-events-end":"true"\},"resourceVersion":")\d+/g, '$1<version>'],
  // Of custom resources, whose keys are in the order of the alphabet.
  [
    /("continue":\s*"(?:<continue>)?",\s*(?:"remainingItemCount":\s*\d+,\s*)?"resourceVersion":\s*")\d+/g,
    '$1<version>',
  ],
  [/current: \d+/g, 'current: <version>'],
  [/too old resource version: (\d+) \(\d+\)/g, 'too old resource version: $1 (<version>)'],
]

/** Whether the API server made it: only it names the flow that admitted a request. */
export function isForwarded({ headers }: Answer): boolean {
  return headers['x-kubernetes-pf-flowschema-uid'] !== undefined
}

/**
 * What an edge says of what it does not know while the line is cut, a Status and nothing to retry, has a field of its own:
 * `unanswered` for what the API server answers, `unverified` for what it refuses or does not have.
 */
export function byteDifferences(one: Case, real: Answer, ours: Answer): Difference[] {
  if (isIgnorance(ours, one)) {
    return [{ field: real.status < 300 ? 'unanswered' : 'unverified', real: real.status, ours: ours.status }]
  }
  const top = differences(
    { status: real.status, header: headersOf(real) },
    { status: ours.status, header: headersOf(ours) },
  )
  const [left, right] = [bodyOf(one, real), bodyOf(one, ours)]
  return left === right ? top : [...top, ...bodyDifferences(left, right)]
}

function isIgnorance({ status, headers, body }: Answer, { method }: Case): boolean {
  if (status !== 503 || headers['retry-after'] !== undefined) return false
  return method === 'HEAD' || /kind"?: ?"?Status/.test(body)
}

function headersOf({ headers }: Answer): Record<string, unknown> {
  const said: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (unread.has(name) || name.startsWith('x-kubernetes-pf-')) continue
    const text = name === 'warning' ? String(value).replaceAll(aboutTheCopy, '').replace(/, $/, '') : value
    if (text !== '') said[name] = text
  }
  return said
}

function bodyOf(one: Case, { body, status }: Answer): string {
  let text = momentary.reduce((so, [pattern, name]) => so.replace(pattern, name), body)
  text = text.replaceAll(/"cells":\s*\[[^\]]*\]/g, (cells) => cells.replaceAll(age, '"<age>"'))
  if (one.watch === undefined || status !== 200) return text
  // A client that allows bookmarks gets them when the server thinks it is time; one that does not must get none.
  const lines = text.split('\n')
  return (one.path.includes('allowWatchBookmarks=true') ? lines.filter(isSaid) : lines).join('\n')
}

/** By field where both are JSON and differ in more than their spelling. */
function bodyDifferences(real: string, ours: string): Difference[] {
  const [left, right] = [parsed(real), parsed(ours)]
  if (left !== undefined && right !== undefined) {
    const found = differences(left, right, 'body')
    if (found.length > 0) return found
  }
  let at = 0
  while (real[at] === ours[at]) at++
  const around = (text: string) => `…${text.slice(Math.max(0, at - shownAround / 2), at + shownAround)}`
  return [{ field: left === undefined ? 'text' : 'bytes', real: around(real), ours: around(ours) }]
}

/** A watch's frames become a list. */
function parsed(text: string): unknown {
  const keepSpelling = (_key: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' && source !== String(value) ? `number ${source}` : value
  try {
    return JSON.parse(text, keepSpelling)
  } catch {
    try {
      const lines = text.split('\n').filter(Boolean)
      return lines.map((line) => JSON.parse(line, keepSpelling))
    } catch {
      return undefined
    }
  }
}
