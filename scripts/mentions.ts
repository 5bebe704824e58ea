/**
 * What comments and documents point at exists: decisions by their number ("decision 3 of docs/architecture.md", "decisions 5
 * and 11"), and places in backticks (`cache/copy`, `endpoint/sockets`, in src also a neighbour, `copy.ts`). A pointer to
 * nothing is worse than none. And comments of src name who acts, and a type's name means one thing.
 */
import { posix } from 'node:path'
import { readTexts, report } from './tree.ts'

/** `files`: path → text of documents and code; the decisions are the numbered entries below "## Decisions". */
export function checkMentions(files: ReadonlyMap<string, string>, architecture: string): string[] {
  const [, decisions = ''] = /^## Decisions\n([\s\S]*?)^## /m.exec(architecture) ?? []
  const numbers = new Set([...decisions.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => number))
  const places = placesOf([...files.keys()])
  const faults: string[] = []
  for (const [path, text] of files) {
    for (const [, list = ''] of text.matchAll(/\b[Dd]ecisions? (\d+(?:(?:, | and |, and )\d+)*)\b/g)) {
      for (const [number] of list.matchAll(/\d+/g))
        if (!numbers.has(number)) faults.push(`${path}: there is no decision ${number}`)
    }
    for (const [, place = ''] of text.matchAll(/`(?:src\/)?([a-z]+(?:\/[a-z0-9]+)+(?:\.test)?)(?:\.ts|\/)?`/g)) {
      const [room = ''] = place.split('/')
      if (places.has(room) && !places.has(place)) faults.push(`${path}: there is no ${place}`)
    }
    if (!path.startsWith('src/')) continue
    for (const [, neighbour = ''] of text.matchAll(/`([a-z0-9]+(?:\.test-support)?\.ts)`/g))
      if (!files.has(posix.join(posix.dirname(path), neighbour)))
        faults.push(`${path}: there is no ${neighbour} beside it`)
  }
  return faults
}

/** Words that hide who acts: a comment names the caller, client, edge, API server, reader, writer or operator. */
const faceless = /\b(?:whoever|nobody|somebody|anybody|everybody)\b/i
/** A comment on lines of its own, or behind code; what tests are called and messages say is no comment. */
const comment = /^\s*(?:\/\*\*?|\*|\/\/)(?<own>.*)|\s\/\/\s(?<behind>.*)/

export function checkActors(files: ReadonlyMap<string, string>): string[] {
  return [...files].flatMap(([path, text]) => {
    if (!path.startsWith('src/')) return []
    return text.split('\n').flatMap((line, at) => {
      const { own, behind } = comment.exec(line)?.groups ?? {}
      const word = faceless.exec(own ?? behind ?? '')?.[0]
      return word === undefined ? [] : [`${path}:${at + 1}: who is "${word}"? a comment names the actor`]
    })
  })
}

/** Said twice and meaning the same: `access` declares what it needs of a store that it may not import. */
const saidTwice = new Set(['RecordChange'])

/** What a file of src exports as a type, class or interface has a name that no other file declares, not even for itself. */
export function checkNames(files: ReadonlyMap<string, string>): string[] {
  const exported = new Map<string, string>()
  const declared: [path: string, name: string][] = []
  for (const [path, text] of files) {
    if (!/^src\/.*(?<!\.test|\.test-support)\.ts$/.test(path)) continue
    for (const [, exports, name = ''] of text.matchAll(/^(export )?(?:abstract )?(?:class|type|interface) (\w+)/gm)) {
      declared.push([path, name])
      if (exports !== undefined && !exported.has(name)) exported.set(name, path)
    }
  }
  return declared.flatMap(([path, name]) => {
    const home = exported.get(name) ?? path
    return home === path || saidTwice.has(name) ? [] : [`${path}: ${name} is something else in ${home}`]
  })
}

/** Files and folders as prose names them: without `src/` and `.ts`. */
function placesOf(paths: readonly string[]): Set<string> {
  const places = new Set<string>()
  for (const path of paths) {
    if (!path.endsWith('.ts')) continue
    for (let place = path.replace(/^src\/|\.ts$/g, ''); place !== '.'; place = posix.dirname(place)) places.add(place)
  }
  return places
}

if (import.meta.main) {
  const files = readTexts(/^(?:src|test|bench|conformance|scripts|docs)\/(?!gate\.test).*\.(?:ts|md)$|^README\.md$/)
  report([
    ...checkMentions(files, files.get('docs/architecture.md') ?? ''),
    ...checkActors(files),
    ...checkNames(files),
  ])
}
