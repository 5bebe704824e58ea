/**
 * The process that crash.test.ts kills: a copy over a durable store with several writers at once. Whatever it was told, it
 * says so on standard output with a synchronous write, one line each, before it goes on: what the parent has read is
 * exactly what a client could have known at the moment of the kill.
 */

import { writeSync } from 'node:fs'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { seeded } from '../src/base/seeded.test-support.ts'
import { AuthorityCopy } from '../src/cache/authoritycopy.ts'
import type { Form } from '../src/cache/event.ts'
import { everything } from '../src/cache/filter.ts'
import { noFields } from '../src/kube/object.ts'
import { openDurable } from '../src/store/durable.ts'
import { afterAll } from '../src/store/store.ts'

const [folder, seedText, writersText, historyText] = process.argv.slice(2) as [string, string, string, string]
const writers = Number(writersText)
const keysPerWriter = 6
const random = seeded(Number(seedText))

function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`)
  let at = 0
  while (at < bytes.length) {
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

const interest = '/configmaps'
// Small segments: those that are emptied and removed are part of what is killed.
const segmentBytes = Math.max(16 * 1024, Number(historyText) / 16)
const store = openDurable({ folder, historyBytesMax: Number(historyText), segmentBytes })
const copy = await AuthorityCopy.open({ store, clock: systemClock, log: silentLog, planOf: () => noFields })
const cache = copy.cache(interest)

// What was found: every object, and every step of its history.
for (const item of cache.all()) say(`object ${item.key} ${item.version} ${stateOf(item.bytes)}`)
let cursor = { version: store.floor(interest), position: afterAll }
const lines: string[] = []
for (;;) {
  const page = await store.history(interest, cursor, { entries: 500, bytes: 1 << 20 })
  for (const { kind, key, version, position, body } of page.entries) {
    lines.push(`history ${key} ${version} ${kind === 'put' ? stateOf(body as Buffer) : '-'}`)
    cursor = { version, position }
  }
  if (!page.more) break
}
if (lines.length > 0) say(lines.join('\n'))
say(`opened ${cache.version} ${store.floor(interest)}`)
// Nobody to write: the run that only warms the compile cache.
if (writers === 0) {
  await store.close()
  process.exit(0)
}

const form: Form = {
  frame: (type, item) =>
    Buffer.from(`published ${item.key} ${item.version} ${type === 'DELETED' ? '-' : stateOf(item.bytes)}\n`),
  bookmark: () => Buffer.from(''),
}
const watcher = cache.watch({
  filter: everything,
  form,
  start: { kind: 'after', version: cache.version },
  bookmarks: false,
  errorFrame: (status) => Buffer.from(`error ${status.message}\n`),
})
void (async () => {
  for await (const chunk of watcher) say(chunk.toString().trimEnd())
})()
for (let writer = 0; writer < writers; writer++) void write(writer)

async function write(writer: number): Promise<void> {
  for (let step = 0; ; step++) {
    const key = `w${writer}/k${random(keysPerWriter)}`
    if (cache.get(key) !== undefined && random(4) === 0) {
      say(`try ${key} -`)
      const { version } = await copy.remove(interest, key)
      say(`done ${key} ${version} -`)
    } else {
      const value = `${process.pid}.${writer}.${step}`
      say(`try ${key} ${value}`)
      const { version } = await copy.put(interest, key, (at) => bodyOf(key, at, value))
      say(`done ${key} ${version} ${value}`)
    }
  }
}

function bodyOf(key: string, version: number, value: string): Buffer {
  const [namespace, name] = key.split('/')
  const filler = 'x'.repeat(random(random(8) === 0 ? 16_000 : 1_000))
  const metadata = { name, namespace, resourceVersion: String(version) }
  return Buffer.from(JSON.stringify({ metadata, value, filler, again: value }))
}

/** The value, if the whole body is of one piece. */
function stateOf(bytes: Buffer): string {
  const { value, again } = JSON.parse(bytes.toString()) as { value: string; again: string }
  if (value !== again) throw new Error(`a torn body: ${value} ${again}`)
  return value
}
