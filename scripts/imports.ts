/**
 * Who may import whom: checks every import between the folders of src (type imports too) against the table in
 * docs/architecture.md, so that the table cannot lie. A folder is `kube`, and each folder in it is one too, `kube/json`;
 * what lies deeper belongs to that. Who may import `kube` from outside may import all that is in it; among the
 * rooms of one folder each has to be named. Also: one form of path, no cycles between files or folders, and sockets only where
 * they are known. Tests may compose what they need; for them only the form is checked.
 */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { readTexts, report, root } from './tree.ts'

type Graph = Map<string, Set<string>>

/** Who may listen and dial, as docs/architecture.md says above its table. */
const socketRooms = ['app', 'upstream', 'link/socket', 'endpoint/sockets', 'hub/sockets', 'hub/replicas']
/** Of their modules what only reads an address. */
const addressWords = ['isIP', 'isIPv4', 'isIPv6', 'BlockList']

/** `files`: path → text of everything below src; `document`: Markdown with a table `| folder | may import |`. */
export function checkImports(files: ReadonlyMap<string, string>, document: string): string[] {
  const allowed = parseTable(document)
  if (allowed === undefined) return ['docs/architecture.md has no table with the columns "folder" and "may import"']
  const faults: string[] = []
  const fileGraph: Graph = new Map()
  for (const [path, text] of files) {
    const from = folderOf(path)
    const mayKnowSockets = socketRooms.some((room) => from === room || from.startsWith(`${room}/`))
    if (!isTest(path) && !mayKnowSockets)
      for (const name of socketNamesOf(text)) faults.push(`${path}: ${from} may not know sockets (${name})`)
    for (const specifier of importsOf(text)) {
      if (specifier === '../../package.json') continue // the version, which has no other home
      const target = posix.join(posix.dirname(path), specifier)
      const to = folderOf(target)
      const shortest = pathBetween(path, target)
      if (specifier !== shortest) faults.push(`${path}: write "${specifier}" as "${shortest}"`)
      else if (!files.has(target)) faults.push(`${path}: "${specifier}" does not exist`)
      else if (!isTest(path)) {
        link(fileGraph, path, target)
        if (to !== from && !mayImport(allowed, from, to))
          faults.push(`${path}: ${from} may not import ${to} ("${specifier}")`)
      }
    }
  }
  const folders = new Set([...files.keys()].map(folderOf).filter((folder) => folder !== ''))
  for (const folder of folders) if (!allowed.has(folder)) faults.push(`the table does not list the folder ${folder}`)
  for (const folder of allowed.keys())
    if (!folders.has(folder)) faults.push(`the table lists ${folder}, which does not exist`)
  for (const [what, graph] of [
    ['files', fileGraph],
    ['folders', foldersOf(fileGraph)],
  ] as const) {
    const cycle = findCycle(graph)
    if (cycle) faults.push(`cycle between ${what}: ${cycle.join(' → ')}`)
  }
  return faults
}

function parseTable(document: string): Map<string, Set<string> | 'everything'> | undefined {
  const lines = document.split('\n')
  const header = lines.findIndex((line) => /^\|\s*folder\s*\|\s*may import\s*\|/i.test(line))
  if (header < 0) return undefined
  const allowed = new Map<string, Set<string> | 'everything'>()
  for (const line of lines.slice(header + 2)) {
    const cells = /^\|([^|]*)\|([^|]*)\|/.exec(line)
    if (!cells) break
    const names = (cell = '') => [...cell.matchAll(/`([\w/-]+)`/g)].map((match) => match[1] ?? '')
    const imports = /\beverything\b/.test(cells[2] ?? '') ? 'everything' : new Set(names(cells[2]))
    for (const folder of names(cells[1])) allowed.set(folder, imports)
  }
  return allowed
}

function mayImport(allowed: NonNullable<ReturnType<typeof parseTable>>, from: string, to: string): boolean {
  if (from === '') return to === 'app' || to === 'base' // main.ts starts a command, nothing else
  const imports = allowed.get(from)
  const [house = '', room] = to.split('/')
  const isNeighbour = room !== undefined && from.startsWith(`${house}/`)
  return imports === 'everything' || imports?.has(to) === true || (!isNeighbour && imports?.has(house) === true)
}

/** The relative imports of a module: static, re-exported, dynamic, and files named by URL (workers). */
function importsOf(text: string): string[] {
  const forms = [
    /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s+['"](\.[^'"]+)['"]/gm,
    /^\s*import\s+['"](\.[^'"]+)['"]/gm,
    /\bimport\(\s*['"](\.[^'"]+)['"]\s*\)/g,
    /\bnew URL\(\s*['"](\.[^'"]+\.ts)['"],\s*import\.meta\.url/g,
  ]
  return forms.flatMap((form) => [...text.matchAll(form)].map((match) => match[1] ?? ''))
}

/** What a module takes, not as a type, of those that open connections. */
function socketNamesOf(text: string): string[] {
  const taken = /^import (?!type\b)([^'"]*?)\s*from '(?:node:(?:net|tls|http|https|http2|dgram)|ws)'/gm
  const names = [...text.matchAll(taken)].flatMap(([, found = '']) => found.replace(/[{}]/g, '').split(','))
  return names
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type ') && !addressWords.includes(name))
}

/** `src/kube/status.ts` → `kube`, `src/kube/schema/cel/cel.ts` → `kube/schema`; files directly in src have none. */
function folderOf(path: string): string {
  return /^src\/([^/]+(?:\/[^/]+)?)\//.exec(path)?.[1] ?? ''
}

/** The one form of a path from file to file: the shortest. */
function pathBetween(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to)
  return path.startsWith('.') ? path : `./${path}`
}

const isTest = (path: string): boolean => /\.test(-support)?\.ts$/.test(path)

function link(graph: Graph, from: string, to: string): void {
  const targets = graph.get(from)
  if (targets) targets.add(to)
  else graph.set(from, new Set([to]))
}

function foldersOf(files: Graph): Graph {
  const graph: Graph = new Map()
  for (const [from, targets] of files) {
    for (const to of targets) {
      const [a, b] = [folderOf(from), folderOf(to)]
      // A folder and what is in it are one room: its files may not go in circles, it may hold parts that use each other.
      if (a !== b && !a.startsWith(`${b}/`) && !b.startsWith(`${a}/`)) link(graph, a, b)
    }
  }
  return graph
}

/** One cycle, its first node repeated at the end, or undefined. */
function findCycle(graph: Graph): string[] | undefined {
  const done = new Set<string>()
  const visit = (node: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node]
    if (done.has(node)) return undefined
    for (const next of graph.get(node) ?? []) {
      const cycle = visit(next, [...path, node])
      if (cycle) return cycle
    }
    done.add(node)
    return undefined
  }
  for (const node of graph.keys()) {
    const cycle = visit(node, [])
    if (cycle) return cycle
  }
  return undefined
}

if (import.meta.main) {
  report(checkImports(readTexts(/^src\/.*\.ts$/), readFileSync(join(root, 'docs/architecture.md'), 'utf8')))
}
