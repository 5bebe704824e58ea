/**
 * What the disk under an edge does to it: it takes no writes, is full, loses the index, turns bits. None of it is noticed by a
 * client: what is held is served, what was lost is made again from what is left of the folder, or fetched from the cloud.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import type { Edge, Random, Site } from '../site.ts'
import type { SmallDisk } from '../smalldisk.ts'
import { during, rest, type Trouble } from './trouble.ts'

/** Something changes all the time: it is met with the next change, and healed with the next look at what room there is. */
const metMsMax = 30_000
const configMaps = '/api/v1/namespaces/default/configmaps'

/** The kernel refuses what goes beyond the first page of a file: as good as a failing disk, and to be taken back. */
function limitFiles(site: Site, bytes: string): void {
  for (const { ake } of site.edges()) {
    execFileSync('prlimit', ['--pid', String(ake.pid), `--fsize=${bytes}:unlimited`], { stdio: 'pipe' })
  }
}

/** With others a watch whose event could not be stored stopped for good: here it waits, and goes on where it was. */
export const disk: Trouble = {
  name: 'the disk refuses writes',
  run: async (site, random) => {
    limitFiles(site, '4096')
    try {
      await rest(site, 1_000 + random.below(5_000))
    } finally {
      limitFiles(site, 'unlimited')
    }
  },
}

/** Of the edge whose folder is on this disk of its own. What it forwards is done, sometimes it is killed, and then all is current. */
export function fullDisk(small: SmallDisk, edge: Edge): Trouble {
  return {
    name: 'the disk is full',
    fault: 'full disk',
    run: async (site, random) => {
      const told = `${small.at}.log`
      const before = statSync(told).size
      const path = `${configMaps}/full-${randomUUID()}`
      try {
        await until(
          async () => {
            // An edge that gives something up frees some blocks: these are taken, too.
            small.fill()
            return (await statusOf(edge, 'GET', '/readyz')) === 500
          },
          'the edge says that its disk is full',
          { withinMs: metMsMax, everyMs: 200, signal: site.signal },
        )
        assert.match(readFileSync(told).subarray(before).toString(), /store\.refused .*(ENOSPC|the disk is full)/)
        assert.equal(await statusOf(edge, 'POST', configMaps, { metadata: { name: basename(path) } }), 201)
        if (random.below(3) === 0) await edge.restart('kill')
        await rest(site, random.below(4_000))
      } finally {
        small.free()
      }
      const waiting = { withinMs: metMsMax, everyMs: 200, signal: site.signal }
      await until(async () => (await statusOf(edge, 'GET', '/readyz')) === 200, 'the disk takes writes again', waiting)
      const isThere = async () => (await statusOf(edge, 'GET', `${path}?resourceVersion=0`)) === 200
      await until(isThere, 'what was written meanwhile is shown', waiting)
      assert.equal(await statusOf(edge, 'DELETE', path), 200)
    },
  }
}

async function statusOf(edge: Edge, method: string, path: string, body?: object): Promise<number> {
  const client = edge.client()
  try {
    return (await client.ask(method, path, body)).status
  } finally {
    client.close()
  }
}

/** What bits have turned in, of an edge's folder. */
type Scars = { isLogHurt: boolean; hurtBase: string | undefined }

const scars = new WeakMap<Edge, Scars>()

function scarsOf(edge: Edge): Scars {
  const known = scars.get(edge) ?? { isLogHurt: false, hurtBase: undefined }
  scars.set(edge, known)
  return known
}

/** Whether a folder can do without its index: from a damaged base none can be made, until there is another. */
function canLoseIndex(edge: Edge, dir: string): boolean {
  const { hurtBase } = scarsOf(edge)
  return hurtBase === undefined || hurtBase !== newestBase(dir)
}

function newestBase(dir: string): string | undefined {
  return readdirSync(join(dir, 'log'))
    .filter((name) => name.endsWith('.base'))
    .sort()
    .at(-1)
}

/**
 * The index is made again from the log: with and without the cloud nobody notices. With it alone where the log is damaged:
 * nothing that it may concern is shown before it was compared.
 */
function lostIndex(offline: boolean): Trouble {
  return {
    name: `the index is lost ${offline ? 'while offline' : 'while online'}`,
    fault: 'lost index',
    run: async (site, random) => {
      const how = random.of(['kill', 'orderly'] as const)
      const restartOne = (edge: Edge) =>
        edge.restart(how, (dir) => {
          if (!canLoseIndex(edge, dir)) return
          for (const name of readdirSync(dir)) if (name.startsWith('ake.db')) rmSync(join(dir, name))
        })
      const restartAll = async () => void (await Promise.all(site.edges().map(restartOne)))
      const isLogHurt = site.edges().some((edge) => scarsOf(edge).isLogHurt)
      if (offline && !isLogHurt) await during(site, { kind: 'refuse' }, restartAll)
      else await restartAll()
    },
  }
}

/** In the part of the file before this place. */
function turnBit(path: string, random: Random, part = 1): void {
  const bytes = readFileSync(path)
  const end = Math.floor(bytes.length * part)
  if (end === 0) return
  const at = random.below(end)
  bytes[at] = (bytes[at] as number) ^ (1 << random.below(8))
  writeFileSync(path, bytes)
}

/**
 * Bits of the log turn where the index has been already: bodies of objects, which are fetched again, and of a past that
 * nobody asks for. While offline a damaged object would be refused: the line stays whole.
 */
const turnedInLog: Trouble = {
  name: 'bits of the log turn',
  fault: 'bit flips',
  run: async (site, random) => {
    const turn = (dir: string) => {
      const log = join(dir, 'log')
      for (const name of readdirSync(log)) if (/\.(log|kept)$/.test(name)) turnBit(join(log, name), random, 1 / 2)
    }
    for (const edge of site.edges()) scarsOf(edge).isLogHurt = true
    await Promise.all(site.edges().map((edge) => edge.restart('orderly', turn)))
  },
}

/** Or of the base, which nobody reads before the index is lost: one of the two is whole. */
const turnedInIndex: Trouble = {
  name: 'bits of the index turn',
  fault: 'bit flips',
  run: async (site, random) => {
    const turn = (edge: Edge, dir: string) => {
      const base = newestBase(dir)
      const isBase = base !== undefined && (random.below(2) === 0 || !canLoseIndex(edge, dir))
      if (isBase) scarsOf(edge).hurtBase = base
      turnBit(isBase ? join(dir, 'log', base) : join(dir, 'ake.db'), random)
    }
    await Promise.all(site.edges().map((edge) => edge.restart('orderly', (dir) => turn(edge, dir))))
  },
}

export const folders: readonly Trouble[] = [lostIndex(false), lostIndex(true), turnedInLog, turnedInIndex]
