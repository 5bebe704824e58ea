/** kill -9 at any instant: nothing acknowledged and nothing published is lost, and the store opens clean. */

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { lives } from '../src/base/lives.test-support.ts'
import { seeded } from '../src/base/seeded.test-support.ts'
import { until } from '../src/base/until.test-support.ts'
import { Client, configMap, configMaps, type Frame, seedOfRun, Watch, withFolder } from './process.ts'

/** How many times a writing process is killed: the lanes run side by side. */
const killsPerLane = lives(100)
const lanes = 2
const serveKills = lives(10)
/** Every fifth kill comes while the process is starting: recovery has to survive its own interruption. */
const startingMsMax = 150
/** The others come after so many lines of the writer, on the slowest machine too, and a moment later. */
const linesMax = 100
const momentMsMax = 5

const writer = join(import.meta.dirname, 'crashwriter.ts')
const scratch = mkdtempSync(join(tmpdir(), 'ake-crash-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
/** Two hundred starts: the compiled sources are kept, which a killed process never gets to do itself. */
const cached = { NODE_COMPILE_CACHE: join(scratch, 'compiled'), ...process.env }

/** What clients know of one key: its newest state, and what was under way. */
type Known = { version: number; value: string; attempt: string | undefined }

class Model {
  readonly known = new Map<string, Known>()
  /** Acknowledged or published versions, and the state each stands for. */
  readonly versions = new Map<number, string>()
  highest = 0

  #of(key: string): Known {
    let known = this.known.get(key)
    if (known === undefined) {
      known = { version: 0, value: '-', attempt: undefined }
      this.known.set(key, known)
    }
    return known
  }

  attempt(key: string, value: string): void {
    this.#of(key).attempt = value
  }

  done(key: string, version: number, value: string): void {
    const known = this.#of(key)
    // A change is told twice, to its writer and to watchers, in any order.
    if (version > known.version) {
      Object.assign(known, { version, value })
      if (known.attempt === value) known.attempt = undefined
    }
    this.versions.set(version, `${key} ${value}`)
    this.highest = Math.max(this.highest, version)
  }

  /** The answer to a delete names no version. */
  removed(key: string): void {
    Object.assign(this.#of(key), { value: '-', attempt: undefined })
  }

  /** Compares what a restart found with what was known, and learns what became of the attempts. */
  check(found: Found): void {
    for (const [key, known] of this.known) {
      const { version, value } = found.objects.get(key) ?? { version: undefined, value: '-' }
      const kept = value === known.value && (value === '-' || version === known.version)
      if (!kept) {
        assert.equal(
          value,
          known.attempt,
          `${key}: ${known.value}@${known.version} was known, found ${value}@${version}`,
        )
        known.value = value
        known.version = version ?? known.version
      }
      known.attempt = undefined
    }
    for (const key of found.objects.keys()) assert.ok(this.known.has(key), `${key} comes from nowhere`)
    assert.ok(found.version >= this.highest, `the counter fell from ${this.highest} to ${found.version}`)
    for (const [version, step] of this.versions) {
      if (version <= found.floor) this.versions.delete(version)
      else assert.equal(found.history.get(version), step, `history lost version ${version}`)
    }
    const last = new Map<string, string>()
    for (const step of found.history.values()) {
      const [key, value] = step.split(' ') as [string, string]
      last.set(key, value)
    }
    for (const [key, value] of last) assert.equal(found.objects.get(key)?.value ?? '-', value, `history of ${key}`)
  }
}

type Found = {
  objects: Map<string, { version: number; value: string }>
  history: Map<number, string>
  version: number
  floor: number
}

/** One life of the writer. Answers whether it got as far as opening the store. */
async function live(folder: string, model: Model, random: (below: number) => number): Promise<boolean> {
  const starting = random(5) === 0
  const history = [64 << 10, 1 << 20, 64 << 20][random(3)]
  const args = [writer, folder, String(random(1 << 30)), String(1 + random(12)), String(history)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: cached })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = new Promise<number | null>((resolve) => void child.on('close', (code) => resolve(code)))
  const killIn = (ms: number) => setTimeout(() => child.kill('SIGKILL'), ms)
  if (starting) killIn(random(startingMsMax))
  const found: Found = { objects: new Map(), history: new Map(), version: 0, floor: 0 }
  let opened = false
  let lines = random(linesMax)
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, key = '', version = '', value = ''] = line.split(' ')
    if (word === 'object') found.objects.set(key, { version: Number(version), value })
    else if (word === 'history') found.history.set(Number(version), `${key} ${value}`)
    else if (word === 'opened') {
      opened = true
      found.version = Number(key)
      found.floor = Number(version)
      model.check(found)
    } else if (word === 'try') model.attempt(key, version)
    else if (word === 'done' || word === 'published') model.done(key, Number(version), value)
    else assert.fail(`an unexpected line: ${line}`)
    if (opened && !starting && lines-- === 0) killIn(random(momentMsMax))
  }
  assert.equal(await ended, null, `the writer ended by itself: ${stderr}`)
  return opened
}

test(`[D2] ${killsPerLane * lanes} kills of a writing process lose nothing acknowledged or published`, async () => {
  mkdirSync(join(scratch, 'warm'))
  const warm = spawnSync(process.execPath, [writer, join(scratch, 'warm'), '1', '0', '1000'], { env: cached })
  assert.equal(warm.status, 0, warm.stderr.toString())
  const run = async (lane: number) => {
    const seed = seedOfRun + lane
    const random = seeded(seed)
    const folder = join(scratch, `lane${lane}`)
    mkdirSync(folder)
    const model = new Model()
    for (let kill = 0; kill < killsPerLane; kill++) {
      await live(folder, model, random).catch((error: Error) => {
        throw new Error(`AKE_SEED=${seedOfRun}, lane ${lane}, kill ${kill}: ${error.message}`, { cause: error })
      })
    }
    assert.ok(model.highest > killsPerLane, `only ${model.highest} writes: nothing was tested`)
  }
  await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane)))
})

test(`[D1] [D2] ${serveKills} kills of the whole server lose nothing a client was told`, () =>
  withFolder(async (_, serve) => {
    const random = seeded(seedOfRun)
    const model = new Model()
    for (let kill = 0; kill <= serveKills; kill++) {
      const serving = await serve()
      const client = new Client(serving)
      const found = await foundBy(client)
      try {
        model.check(found)
      } catch (error) {
        throw new Error(`AKE_SEED=${seedOfRun}, kill ${kill}: ${(error as Error).message}`, { cause: error })
      }
      const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${found.version}`, (frame) => {
        model.done(nameOf(frame), versionOf(frame), stateOf(frame))
      })
      await watch.opened()
      const writers = Array.from({ length: 8 }, (_, writer) => writeUntilDead(client, model, writer, random))
      const wanted = found.version + random(60)
      await until(() => model.highest > wanted, 'writes')
      await pause(random(momentMsMax))
      await serving.end('SIGKILL')
      await Promise.all([watch.ended, ...writers])
    }
    assert.ok(model.highest > serveKills * 5, `only ${model.highest} writes: nothing was tested`)
  }))

/** Everything clients can see after a restart: the list, and a watch of the whole history. */
async function foundBy(client: Client): Promise<Found> {
  type Listed = { metadata: { resourceVersion: string }; items: Frame['object'][] }
  const list = await client.json<Listed>('GET', configMaps)
  const objects: Found['objects'] = new Map()
  for (const { metadata, data } of list.items) {
    objects.set(metadata.name, { version: Number(metadata.resourceVersion), value: data?.value ?? '' })
  }
  const history: Found['history'] = new Map()
  const version = Number(list.metadata.resourceVersion)
  const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=1&timeoutSeconds=1`, (frame) => {
    history.set(versionOf(frame), `${nameOf(frame)} ${stateOf(frame)}`)
  })
  // To its end: the newest step may be a removal, of which the list knows nothing.
  await watch.ended
  return { objects, history, version, floor: 1 }
}

async function writeUntilDead(
  client: Client,
  model: Model,
  writer: number,
  random: (below: number) => number,
): Promise<void> {
  type Written = { metadata: { resourceVersion: string } }
  for (let step = 0; ; step++) {
    const name = `w${writer}-k${random(4)}`
    const known = model.known.get(name)
    const exists = known !== undefined && known.value !== '-'
    try {
      if (exists && random(4) === 0) {
        model.attempt(name, '-')
        await client.json('DELETE', `${configMaps}/${name}`)
        model.removed(name)
      } else {
        const value = `${process.pid}.${writer}.${step}.${random(1 << 30)}`
        model.attempt(name, value)
        const body = configMap(name, { value })
        const written = await (exists
          ? client.json<Written>('PUT', `${configMaps}/${name}`, body)
          : client.json<Written>('POST', configMaps, body))
        model.done(name, Number(written.metadata.resourceVersion), value)
      }
    } catch (error) {
      if (!client.session.destroyed && !client.session.closed) throw error
      return
    }
  }
}

function nameOf(frame: Frame): string {
  return frame.object.metadata.name
}

function versionOf(frame: Frame): number {
  return Number(frame.object.metadata.resourceVersion)
}

function stateOf(frame: Frame): string {
  return frame.type === 'DELETED' ? '-' : (frame.object.data?.value ?? '')
}
