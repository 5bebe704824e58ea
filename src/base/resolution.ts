/**
 * Imported first in each thread, it finds and reads our own files. Node itself asks the file system and the nearest
 * package.json anew for each import of each file, some thousand times, which was a quarter of a start; and it keeps a second
 * copy of each file without its types in memory for as long as it runs, for a compile cache that has it on the disk anyway.
 */
import { closeSync, mkdirSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { bare } from './bare.ts'

/** Beside what Node compiles; undefined where nothing is to be kept. */
const kept = process.env.NODE_COMPILE_CACHE ? join(process.env.NODE_COMPILE_CACHE, 'bare') : undefined

/** Where files are read; few are longer. */
let desk = Buffer.allocUnsafeSlow(24 * 1024)

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
  const source = read(path)
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

/** Its bytes, until the next one is read: some hundred buffers would be left behind, to be collected long after a start. */
function read(path: string): Buffer {
  const file = openSync(path, 'r')
  try {
    for (let length = 0; ; ) {
      const got = readSync(file, desk, length, desk.length - length, null)
      length += got
      if (got === 0) return desk.subarray(0, length)
      if (length === desk.length) desk = Buffer.concat([desk], desk.length * 2)
    }
  } finally {
    closeSync(file)
  }
}

/** What Node does to each file that is imported, and more. Only of the function does it say that it may change. */
function withoutTypes(source: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return bare(stripTypeScriptTypes(source))
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
