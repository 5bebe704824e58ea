/** Losses that a full disk leaves no room to note: the index does not step over them before that is done. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { disk } from './damage.test-support.ts'
import { logFolder, segmentPath } from './segment.ts'
import { copyKilled, World } from './world.test-support.ts'

const limits = { historyBytesMax: 1 << 20, segmentBytes: 2_000 }
const open = (folder: string) => new World({ folder, limits, disk })

async function write(world: World, version: number): Promise<void> {
  const change = { interest: '/a', key: `k${version}`, version, position: version, kind: 'put' as const }
  assert.ok(await world.commit({ changes: [{ ...change, body: Buffer.alloc(300, 'x') }], synced: true }))
}

/** From now on no file that is set aside can be made. */
function fill(): void {
  const full = (real: (...parts: never[]) => unknown, which: number) =>
    ((...parts: never[]) => {
      if (!String(parts[which]).includes(join('log', 'aside'))) return real(...parts)
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    }) as never
  mock.method(fs, 'copyFileSync', full(fs.copyFileSync, 1))
  for (const name of ['writeFileSync', 'openSync', 'mkdirSync'] as const) mock.method(fs, name, full(fs[name], 0))
  syncBuiltinESMExports()
}

function empty(): void {
  mock.restoreAll()
  syncBuiltinESMExports()
}

const harms: Record<string, (at: string) => void> = {
  'in the middle of the log': (at) => {
    const path = segmentPath(logFolder(at), 2)
    const bytes = fs.readFileSync(path)
    for (const name of ['ake.db', 'ake.db-wal']) rmSync(join(at, name), { force: true })
    fs.writeFileSync(path, bytes.fill(0xaa, 40, 700))
  },
  'at its end': (at) => rmSync(segmentPath(logFolder(at), 3)),
}

for (const [where, harm] of Object.entries(harms)) {
  for (const isKilled of [true, false]) {
    const end = isKilled ? 'is killed' : 'ends when there is room again'
    test(`[D3] [D4] a loss ${where} that a full disk cannot note is named again by the next start, where the process ${end}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'ake-full-'))
      try {
        const at = join(folder, 'store')
        fs.mkdirSync(at)
        const world = open(at)
        for (let version = 1; version <= 18; version++) await write(world, version)
        world.follow()
        await world.close()
        harm(at)
        fill()
        const full = open(at)
        assert.equal(full.index.takeNews().losses.length, 1)
        assert.equal(full.index.losses.length, 1)
        assert.match(String(full.index.behind), /no space/)
        await write(full, 19)
        full.follow()
        if (!isKilled) empty()
        full.follow()
        const next = join(folder, 'next')
        if (isKilled) copyKilled(at, next)
        await full.close()
        empty()
        if (!isKilled) copyKilled(at, next)
        for (let life = 0; life < 2; life++) {
          const again = open(next)
          assert.equal(again.index.losses.length, 1, 'it is named')
          assert.ok(again.index.interests().every(({ isDoubted }) => isDoubted))
          await again.close()
        }
      } finally {
        empty()
        rmSync(folder, { recursive: true })
      }
    })
  }
}

for (const isWritten of [false, true]) {
  const when = isWritten ? 'also where a write comes before there is room' : 'also where nothing is written'
  test(`[D3] [D4] what a full disk cannot note at a start is noted once there is room, ${when}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ake-full-'))
    try {
      const world = open(folder)
      for (let version = 1; version <= 18; version++) await write(world, version)
      world.follow()
      await world.close()
      harms['at its end']?.(folder)
      fill()
      const full = open(folder)
      const { raised } = full.index
      assert.ok(raised > 18)
      if (isWritten) await write(full, 19)
      full.follow()
      assert.match(String(full.index.behind), /no space/)
      assert.ok(full.index.raised >= raised, 'versions above what may be lost stay above')
      empty()
      full.follow()
      assert.equal(full.index.behind, undefined, 'it heals by itself')
      await full.close()
      const again = open(folder)
      assert.ok(again.index.raised >= raised)
      assert.equal(again.index.losses.length, 1)
      await again.close()
    } finally {
      empty()
      rmSync(folder, { recursive: true })
    }
  })
}
