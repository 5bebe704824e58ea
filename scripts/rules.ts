/**
 * Rules have numbers and tests carry them. The convention: a document in docs/ states a rule behind its bold number,
 * `**A3** (in force) a watch from version n yields …`; without the two words it is planned. A test that proves it
 * has the number in its title, `test('[A3] a cut watch resumes', …)`, or several, `[A3, A4]`. Faults: a rule in force that
 * no test cites, and a test that cites what no document states.
 */
import { readTexts, report } from './tree.ts'

export function checkRules(documents: ReadonlyMap<string, string>, tests: ReadonlyMap<string, string>): string[] {
  const stated = new Set<string>()
  const inForce = new Map<string, string>()
  for (const [path, text] of documents) {
    for (const [, rule = '', force] of text.matchAll(/\*\*([A-Z]\d+)\*\*( \(in force\))?/g)) {
      stated.add(rule)
      if (force) inForce.set(rule, path)
    }
  }
  const cited = new Map<string, string>()
  for (const [path, text] of tests) for (const rule of citedIn(text)) cited.set(rule, path)

  const faults: string[] = []
  for (const [rule, path] of inForce)
    if (!cited.has(rule)) faults.push(`${path}: ${rule} is in force, but no test cites [${rule}]`)
  for (const [rule, path] of cited)
    if (!stated.has(rule)) faults.push(`${path}: a test cites [${rule}], which no document states`)
  return faults
}

function citedIn(text: string): string[] {
  const titles = text.matchAll(/\b(?:test|it|describe|suite)(?:\.\w+)?\(\s*(['"`])(.*?)\1/g)
  return [...titles].flatMap(([, , title = '']) =>
    [...title.matchAll(/\[([A-Z]\d+(?:, ?[A-Z]\d+)*)\]/g)].flatMap((match) => (match[1] ?? '').split(/, ?/)),
  )
}

if (import.meta.main) {
  // Not only *.test.ts: contract suites, shared by several implementations, are ordinary files. This file's samples do not count.
  report(checkRules(readTexts(/^docs\/.*\.md$/), readTexts(/^(src|conformance|test)\/(?!gate\.test).*\.ts$/)))
}
