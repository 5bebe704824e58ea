/**
 * Writes the generated parts of documents between their markers, `<!-- options -->` … `<!-- /options -->`: options,
 * figures, differences from kube-apiserver. `--check` changes nothing and fails if a part is stale, or the README longer than it may be.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { highlights, type Results, resultsMarkdown } from '../bench/report.ts'
import { differencesMarkdown, type Table } from '../conformance/listed/listed.ts'
import { optionsMarkdown } from '../src/app/options.ts'
import { report, root } from './tree.ts'

/** A README is read in five minutes; what is longer belongs into docs/. */
const readmeBytesMax = 9_000

const differences: readonly Table[] = ['differences', 'apply differences', 'edge differences']

/** The document with each part renewed; throws if a marker is missing. */
export function renewParts(document: string, parts: Readonly<Record<string, string>>): string {
  let renewed = document
  for (const [name, text] of Object.entries(parts)) {
    const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
    const start = renewed.indexOf(open)
    const end = renewed.indexOf(close, start)
    if (start < 0 || end < 0) throw new Error(`the document has no part between ${open} and ${close}`)
    renewed = `${renewed.slice(0, start + open.length)}\n${text}${renewed.slice(end)}`
  }
  return renewed
}

/** Whatever is wrong with the README itself. */
export function checkReadme(text: string): string[] {
  const bytes = Buffer.byteLength(text)
  if (bytes <= readmeBytesMax) return []
  return [`README.md has ${bytes} bytes, at most ${readmeBytesMax} are allowed: move something into docs/`]
}

/** Writes what is stale. */
export function renewDocuments(): void {
  for (const { path, text, renewed } of documents()) if (text !== renewed) writeFileSync(join(root, path), renewed)
}

function documents() {
  const results = JSON.parse(read('bench/results.json')) as Results
  const parts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'README.md': { figures: highlights(results) },
    'bench/RESULTS.md': { figures: resultsMarkdown(results) },
    'docs/options.md': { options: optionsMarkdown() },
    'docs/api.md': Object.fromEntries(differences.map((table) => [table, differencesMarkdown(table)])),
  }
  return Object.entries(parts).map(([path, own]) => {
    const text = read(path)
    return { path, text, renewed: renewParts(text, own) }
  })
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = documents().filter(({ text, renewed }) => text !== renewed)
    report([
      ...stale.map(({ path }) => `${path} is stale: run node scripts/readme.ts`),
      ...checkReadme(read('README.md')),
    ])
  } else renewDocuments()
}
