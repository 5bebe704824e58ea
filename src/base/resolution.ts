/**
 * Imported first in each thread, it finds and reads our own files. Node itself asks the file system and the nearest
 * package.json anew for each import of each file, some thousand times, which was a quarter of a start; and it keeps a second
 * copy of each file without its types in memory for as long as it runs, for a compile cache that has it on the disk anyway.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'

/** Beside what Node compiles; undefined where nothing is to be kept. */
const kept = process.env.NODE_COMPILE_CACHE ? join(process.env.NODE_COMPILE_CACHE, 'stripped') : undefined

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL } = context
    const isOwn = specifier.startsWith('.') && specifier.endsWith('.ts') && parentURL !== undefined
    if (!isOwn) return next(specifier, context)
    return { url: new URL(specifier, parentURL).href, format: 'module-typescript', shortCircuit: true }
  },
  load(url, context, next) {
    if (kept === undefined || context.format !== 'module-typescript') return next(url, context)
    return { format: 'module', source: stripped(fileURLToPath(url), kept), shortCircuit: true }
  },
})

/** A file without its types, from where an earlier start has put it. As in Node's own cache its contents name it. */
function stripped(path: string, folder: string): string {
  const source = readFileSync(path)
  const name = [process.version, crc32(path), crc32(source), source.length].join('-')
  const file = join(folder, name)
  try {
    return readFileSync(file, 'utf8')
  } catch {
    const text = withoutTypes(source.toString())
    keep(file, text, folder)
    return text
  }
}

/** What Node does to each file that is imported. Only of the function does it say that it may change. */
function withoutTypes(source: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Whole or not at all: others start at the same time. */
function keep(file: string, text: string, folder: string): void {
  const unfinished = `${file}.${process.pid}`
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(unfinished, text)
    renameSync(unfinished, file)
  } catch {
    // Without room for it the next start strips them again.
  }
}
