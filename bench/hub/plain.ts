/** What client-go does without us, over a line that counts: watches in JSON, gzipped lists, WatchList. */

import { setTimeout as pause } from 'node:timers/promises'
import type { Link } from '../../conformance/link.ts'
import type { Address } from '../bench.ts'
import { connectTo } from '../client.ts'
import { countedWatch } from '../counted.ts'
import { passed } from './site.ts'

const pollMs = 20
const arriveMsMax = 60_000

export type PlainWatch = {
  /** Resolves when so many events have come since it was opened. */
  until(count: number): Promise<void>
  close(): void
}

/** `streams` of the same watch on one connection. */
export async function plainWatch(at: Address, path: string, streams = 1): Promise<PlainWatch> {
  const { seen, close } = await countedWatch(at, path, streams)
  return {
    until: async (count) => {
      const give = performance.now() + arriveMsMax
      while (seen() < count && performance.now() < give) await pause(pollMs)
      if (seen() < count) throw new Error(`of ${count} events ${seen()} came`)
    },
    close,
  }
}

export function podsSince(version: number): string {
  return `/api/v1/pods?watch=true&resourceVersion=${version}&timeoutSeconds=3600`
}

/** Bytes of a watch that goes on from a version, with its handshake, which client-go makes in full. */
export async function resumedWatch(at: Address, line: Link, since: number, events: number): Promise<number> {
  const before = passed(line)
  const watch = await plainWatch(at, podsSince(since))
  await watch.until(events)
  const bytes = passed(line) - before
  watch.close()
  return bytes
}

export async function gzippedList(at: Address, line: Link): Promise<{ readonly bytes: number; readonly ms: number }> {
  const [before, began] = [passed(line), performance.now()]
  const connection = await connectTo(at, 'h2')
  const { status } = await connection.ask({
    ...{ path: '/api/v1/pods?resourceVersion=0', headers: { 'accept-encoding': 'gzip' } },
  })
  const found = { bytes: passed(line) - before, ms: performance.now() - began }
  connection.close()
  if (status !== 200) throw new Error(`LIST: ${status}`)
  return found
}

export async function watchListBytes(at: Address, line: Link, objects: number): Promise<number> {
  const before = passed(line)
  const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  const watch = await plainWatch(at, `/api/v1/pods?${query}&timeoutSeconds=3600`)
  await watch.until(objects)
  const bytes = passed(line) - before
  watch.close()
  return bytes
}
