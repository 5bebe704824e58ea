/**
 * How many connections the system's limit on open files leaves room for. Where that is lower than ours, new connections
 * would fail before ours is reached and a connection is chosen to go, and so would the files of the store.
 */
import { readFileSync } from 'node:fs'
import { standardLimits } from '../endpoint/sockets/limits.ts'

/** The log and its segments, the index, connections to the API server: generous. */
const ownFilesMax = 256
/** An upgraded connection has another one at the API server. */
const filesPerConnection = 2
/** However few files there are: the machine's own clients. */
const connectionsMin = 64

/** `text` is what the system says about a process: /proc/self/limits; without it our own limit stands. */
export function connectionsWithin(text: string | undefined): number {
  const room = Math.floor((filesIn(text) - ownFilesMax) / filesPerConnection)
  return Math.min(standardLimits.connectionsMax, Math.max(connectionsMin, room))
}

/** How many links a hub has room for: each is one file, and an upgraded request at the API server is another now and then. */
export function linksWithin(text: string | undefined): number {
  return Math.max(connectionsMin, filesIn(text) - 2 * ownFilesMax)
}

export function linksHere(): number {
  return linksWithin(limitsHere())
}

export function connectionsHere(): number {
  return connectionsWithin(limitsHere())
}

function filesIn(text: string | undefined): number {
  return Number(/^Max open files\s+(\d+)/m.exec(text ?? '')?.[1] ?? Number.POSITIVE_INFINITY)
}

function limitsHere(): string | undefined {
  try {
    return readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return undefined
  }
}
