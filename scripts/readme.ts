/**
 * Writes the generated parts of the README between their markers, `<!-- options -->` … `<!-- /options -->`.
 * `--check` changes nothing and fails if a part is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { optionsMarkdown } from '../src/app/options.ts'
import { report, root } from './tree.ts'

/** The document with each part renewed; throws if a marker is missing. */
export function renewParts(document: string, parts: Readonly<Record<string, string>>): string {
  let renewed = document
  for (const [name, text] of Object.entries(parts)) {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
    const start = renewed.indexOf(open)
    const end = renewed.indexOf(close, start)
    if (start < 0 || end < 0) throw new Error(`README.md has no part between ${open} and ${close}`)
    renewed = `${renewed.slice(0, start + open.length)}\n${text}${renewed.slice(end)}`
  }
  return renewed
}

if (import.meta.main) {
  const path = join(root, 'README.md')
  const document = readFileSync(path, 'utf8')
  const renewed = renewParts(document, { options: optionsMarkdown() })
  if (process.argv.includes('--check'))
    report(document === renewed ? [] : ['README.md is stale: run node scripts/readme.ts'])
  else if (document !== renewed) writeFileSync(path, renewed)
}
