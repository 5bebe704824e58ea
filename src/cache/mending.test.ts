/** What a disk damages of a store that runs is written again from what the copy holds. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { until } from '../base/until.test-support.ts'
import { type Damage, openDurable } from '../store/durable.ts'
import { stepEveryMs } from '../store/scrub.ts'
import { filterFor, openWorld } from './fixture.test-support.ts'

/** Turns a bit of the log, where this text is. */
function damage(folder: string, text: string): void {
  for (const name of fs.readdirSync(join(folder, 'log'))) {
    const path = join(folder, 'log', name)
    const bytes = fs.readFileSync(path)
    const at = bytes.indexOf(text)
    if (at >= 0) bytes[at] = (bytes[at] as number) ^ 1
    if (at >= 0) fs.writeFileSync(path, bytes)
  }
}

test('[D4] an object that a disk damages while it is served is told, served on, and sound at the next start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-mending-'))
  const clock = fakeClock()
  const told: Damage['kind'][] = []
  const open = () => openDurable({ folder, historyBytesMax: 1 << 20, clock, onDamage: ({ kind }) => told.push(kind) })
  const store = open()
  try {
    const world = await openWorld({ store, clock })
    await world.put('a/x', 'sound')
    await world.put('a/y', 'soon damaged')
    // The index has followed.
    await store.history('/pods', { version: 0, position: 0 }, { entries: 10, bytes: 1 << 20 })
    damage(folder, 'soon damaged')
    for (const step of [1, 2]) {
      clock.advance(stepEveryMs)
      await until(() => store.figures.scrub !== undefined && (step === 1 || store.figures.scrub.mended === 1))
    }
    assert.deepEqual(told, ['object', 'mended'])
    assert.equal(world.cache.list(filterFor({})).length, 2)
  } finally {
    await store.close()
  }
  const again = open()
  try {
    const { cache } = await openWorld({ store: again, clock })
    assert.match(String(cache.get('a/y')?.bytes), /soon damaged/)
  } finally {
    await again.close()
    rmSync(folder, { recursive: true })
  }
})
