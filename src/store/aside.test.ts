/** Losses that a full disk leaves no room to note: the index does not step over them before that is done. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { disk } from './damage.test-support.ts'
import { headerBytes, logFolder, readSegments, segmentPath } from './segment.ts'
import { copyKilled, objectsOf, World } from './world.test-support.ts'

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

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-full-'))
  try {
    await body(folder)
  } finally {
    empty()
    rmSync(folder, { recursive: true })
  }
}

/** Eighteen objects, then the harm. */
async function harmed(at: string, harm: ((at: string) => void) | undefined): Promise<void> {
  fs.mkdirSync(at, { recursive: true })
  const world = open(at)
  for (let version = 1; version <= 18; version++) await write(world, version)
  world.follow()
  await world.close()
  harm?.(at)
}

test('[D3] [D4] what a full disk cannot note outlives a round that fails for another reason', () =>
  inFolder(async (folder) => {
    await harmed(folder, harms['at its end'])
    fill()
    const full = open(folder)
    const { raised } = full.index
    empty()
    const { openSync } = fs
    mock.method(fs, 'openSync', (...parts: Parameters<typeof openSync>) => {
      if (String(parts[0]).endsWith('.log')) throw Object.assign(new Error('too many files'), { code: 'EMFILE' })
      return openSync(...parts)
    })
    syncBuiltinESMExports()
    assert.throws(() => full.follow(), /too many files/)
    empty()
    full.follow()
    full.follow()
    assert.equal(full.index.behind, undefined)
    assert.ok(full.index.raised >= raised, 'versions above what may be lost stay above')
    await full.close()
    const again = open(folder)
    assert.ok(again.index.raised >= raised)
    assert.equal(again.index.losses.length, 1)
    await again.close()
  }))

test('[D3] what an operator keeps beside what is set aside does not keep the index from following the log', () =>
  inFolder(async (folder) => {
    const aside = join(logFolder(folder), 'aside')
    await harmed(folder, (at) => {
      harms['in the middle of the log']?.(at)
      fs.mkdirSync(join(aside, 'for support'), { recursive: true })
      fs.utimesSync(join(aside, 'for support'), 0, 0)
      for (let file = 0; file < 70; file++) fs.writeFileSync(join(aside, `old-${file}`), '')
    })
    const world = open(folder)
    await write(world, 19)
    world.follow()
    assert.equal(world.index.behind, undefined)
    assert.equal(world.index.losses.length, 1)
    await world.close()
    assert.ok(fs.existsSync(join(aside, 'for support')))
    assert.ok(fs.readdirSync(aside).length <= 66, 'what is bounded is the files')
  }))

test('[D3] [D4] a torn segment that a full disk does not let out of the way stays, is not written over, and takes nothing with it', () =>
  inFolder(async (folder) => {
    const at = join(folder, 'killed')
    const log = logFolder(at)
    const alive = join(folder, 'alive')
    fs.mkdirSync(alive)
    const world = open(alive)
    let version = 0
    const segments = () => readSegments(logFolder(alive)).length
    while (segments() < 2) await write(world, ++version)
    world.follow()
    const before = segments()
    while (segments() === before) await write(world, ++version)
    copyKilled(alive, at)
    await world.close()
    const torn = segmentPath(log, before + 1)
    const bytes = fs.readFileSync(torn).subarray(0, headerBytes + 10)
    fs.writeFileSync(torn, bytes)
    fill()
    for (let life = 0; life < 2; life++) {
      const full = open(at)
      for (let more = 0; more < 3; more++) await write(full, 100 + life * 10 + more)
      await full.close()
      assert.deepEqual(fs.readFileSync(torn), bytes)
    }
    empty()
    const again = open(at)
    again.follow()
    const keys = objectsOf(again.index, '/a').map((line) => line.split(' ')[0])
    for (const one of [100, 101, 102, 110, 111, 112, version - 1]) assert.ok(keys.includes(`k${one}`), `k${one}`)
    assert.deepEqual(again.index.losses, [])
    assert.ok(!fs.existsSync(torn))
    await again.close()
    const kept = fs.readdirSync(join(log, 'aside')).map((name) => fs.readFileSync(join(log, 'aside', name)))
    assert.ok(kept.some((one) => one.equals(bytes)))
  }))
