/**
 * The thread of the index: it applies the log when it is told how far that reaches, answers what is asked about the
 * past, and tidies up in between. The main loop never waits for a disk.
 */
import { type MessagePort, workerData } from 'node:worker_threads'
import { isDamage } from './connection.ts'
import { Index } from './index.ts'
import { Seal } from './seal.ts'
import { type Handed, packObjects, packPage, packRecords } from './slab.ts'
import { HistoryGone, StoreUnusable } from './store.ts'
import type { FromWorker, Reach, ThreadParts, ToWorker } from './wire.ts'

const { port, isFirst, keys, ...parts } = workerData as ThreadParts & { port: MessagePort }

const say = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)

let index: Index
let tidying: NodeJS.Immediate | undefined
let resting: NodeJS.Timeout | undefined
const restMs = 4_000
let toldLeft = keys.length === 0 ? 0 : -1
try {
  index = new Index({ ...parts, seal: new Seal(keys) })
  if (isFirst) say({ kind: 'opened', ...index.recover(), losses: index.losses })
  tellNews()
  tellSealing()
  port.on('message', handle)
} catch (error) {
  giveUp(error)
}

function giveUp(error: unknown): void {
  // A disk that fails for a while says nothing about what is on it.
  const damaged = error instanceof StoreUnusable ? error.damaged : isDamage(error)
  say({ kind: 'unusable', message: (error as Error).message, damaged })
  port.close()
}

/** Whatever was found to be lost, or had to be made again. */
function tellNews(): void {
  const news = index.takeNews()
  if (news.losses.length > 0 || news.cuts.length > 0 || news.remade !== undefined) say({ kind: 'news', ...news })
}

/** How much is not sealed yet with the key that seals, where that is news. */
function tellSealing(): void {
  const { left, of } = index.sealProgress
  if (left !== toldLeft) say({ kind: 'sealing', left, of })
  toldLeft = left
}

function handle(message: ToWorker): void {
  switch (message.kind) {
    case 'reach':
      if (apply(message.reach, true)) index.release(message.released)
      return
    case 'load':
      if (message.reach === undefined || apply(message.reach)) tryLoad()
      else say({ kind: 'unloaded', message: 'the index cannot follow the log' })
      return
    case 'history':
      answer(message, () => {
        const page = packPage(
          index.bodies,
          message.interest,
          index.history(message.interest, message.after, message.limit),
        )
        const { rows: entries, bytes, more } = page
        say({ kind: 'page', id: message.id, entries, bytes, more }, [bytes.buffer])
      })
      return
    case 'records':
      answer(message, () => {
        const corrupt: string[] = []
        const found = index.records(message.of, message.key)
        const asked = { kind: message.of, records: found }
        const { rows: records, bytes } = packRecords(index.bodies, asked, (key) => corrupt.push(key))
        say({ kind: 'records', id: message.id, of: message.of, records, bytes, corrupt }, [bytes.buffer])
      })
      return
    case 'scrub':
      scrub()
      return
    case 'mend':
      say({ kind: 'mended', id: message.id, isDone: index.mend(message) })
      return
    case 'close':
      if (message.reach !== undefined && apply(message.reach, true)) index.release(message.released)
      clearImmediate(tidying)
      clearTimeout(resting)
      index.close()
      say({ kind: 'closed' })
      port.close()
  }
}

/** False when nothing can be said about what the log holds up to there. */
function apply(reach: Reach, triesAgain = false): boolean {
  try {
    index.apply(reach, { triesAgain, proven: reach.proven })
  } catch (error) {
    say({ kind: 'stuck', message: (error as Error).message })
    return false
  }
  const { historyBytes, behind } = index
  tellNews()
  say({ kind: 'applied', reach, floors: index.takeFloors(), historyBytes, behind: behind?.message })
  tidyLater()
  restLater()
  return true
}

/** What cannot be read now is looked at by a later step. */
function scrub(): void {
  try {
    const step = index.scrub()
    if (step !== undefined) say({ kind: 'scrubbed', ...step })
  } catch {
    // A disk that does not even tell what lies where: a question about the past is told of it.
  }
}

/** One step at a time: questions come in between. */
function tidyLater(): void {
  tidying ??= setImmediate(() => {
    tidying = undefined
    if (index.tidy()) tidyLater()
    tellSealing()
  })
}

/** A while after something was applied, and again as long as much is. */
function restLater(): void {
  resting ??= setTimeout(() => {
    resting = undefined
    if (index.rest()) restLater()
  }, restMs).unref()
}

/** A file that cannot be read to its end is damaged beyond what checksums of single bodies tell. */
function tryLoad(): void {
  try {
    load()
  } catch (error) {
    giveUp(error)
  }
}

function load(): void {
  let newest = 0
  const handed: Handed = new Map()
  for (const interest of index.interests()) {
    newest = Math.max(newest, interest.lastVersion)
    const { name } = interest
    const corrupt: string[] = []
    const telling = { corrupt: (key: string) => void corrupt.push(key), handed }
    for (const slab of packObjects(index.bodies, index.objects(name), telling)) {
      const objects = slab.rows.map((row) => (row.start < 0 && row.shared !== undefined ? row.shared : row))
      say({ kind: 'objects', name, objects, bytes: slab.bytes }, [slab.bytes.buffer])
    }
    say({ kind: 'interest', ...interest, corrupt })
  }
  const { raised, historyBytes } = index
  say({ kind: 'loaded', version: Math.max(newest, raised), historyBytes })
  if (index.sealProgress.left > 0) tidyLater()
}

function answer({ id, reach }: { id: number; reach: Reach | undefined }, tell: () => void): void {
  if (reach !== undefined && !apply(reach)) {
    say({ kind: 'failed', id, message: 'the index cannot follow the log' })
    return
  }
  try {
    tell()
  } catch (error) {
    if (error instanceof HistoryGone) say({ kind: 'gone', id, floor: error.floor })
    else say({ kind: 'failed', id, message: (error as Error).message })
  }
}
