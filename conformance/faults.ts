/**
 * A disk that fills up and one that fails, for real: a small ext4 of its own (so this step needs root) and a limit on the
 * running process's file size, which makes the kernel refuse its writes. Rule D3: what is there is served, what was not
 * stored is said, and it heals by itself; and D2 with it: a kill -9 on a full disk loses nothing either.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Client, configMap, configMaps, type Frame, Watch } from '../test/process.ts'
import type { Ake } from './ake.ts'
import { SmallDisk } from './smalldisk.ts'
import type { Step, StepContext, StepResult } from './step.ts'

/** Some hundred writes fill it. */
const diskMb = 24
/** Set free later on: more than the store needs for a checkpoint of its log and some writes. */
const ballastBytes = 8 * 1024 * 1024
const valueBytes = 50_000
const writersAtOnce = 8
/** A disk of this size is full long before. */
const writesMax = 2_000
const promptMs = 2_000

type Object = Frame['object']
type Listed = { metadata: { resourceVersion: string }; items: Object[] }

export const step: Step = { name: 'faults', tier: 'default', minutes: 1, run }

async function run(context: StepContext): Promise<StepResult> {
  const notes: string[] = []
  let passed = 0
  let failed = 0
  for (const [name, part] of Object.entries({ full, failing })) {
    if (!context.only(name)) continue
    try {
      const skipped = await part(context)
      if (skipped === undefined) passed++
      else notes.push(`${name} was skipped: ${skipped}`)
    } catch (error) {
      failed++
      notes.push(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
  }
  return { passed, failed, notes }
}

/** What clients were told, to be found again whatever happens. */
class Ledger {
  readonly #told = new Map<string, { version: string; value: string }>()
  #next = 0

  get size(): number {
    return this.#told.size
  }

  /** Creates one object; answers the status. */
  async write(client: Client): Promise<number> {
    const name = `c${this.#next++}`
    const value = `${name}:${'x'.repeat(valueBytes)}`
    const { status, body } = await client.ask('POST', configMaps, configMap(name, { value }))
    const answer = JSON.parse(body.toString()) as Object & { kind: string; code?: number }
    if (status === 201) this.#told.set(name, { version: answer.metadata.resourceVersion, value })
    else assert.deepEqual([answer.kind, answer.code], ['Status', status])
    return status
  }

  /** Writes from several writers, then alone, until even a single write finds no room; answers with what it is refused. */
  async writeUntilRefused(client: Client): Promise<number> {
    let refused = 0
    const writer = async () => {
      while (refused === 0 && this.#next < writesMax) {
        const status = await this.write(client)
        if (status !== 201) refused = status
      }
    }
    await Promise.all(Array.from({ length: writersAtOnce }, writer))
    for (let inRow = 0; inRow < 3 && this.#next < writesMax; )
      inRow = (await this.write(client)) === 201 ? 0 : inRow + 1
    return refused
  }

  async check(client: Client): Promise<void> {
    const { items } = await client.json<Listed>('GET', configMaps)
    const found = new Map(items.map(({ metadata, data }) => [metadata.name, { metadata, data }]))
    for (const [name, { version, value }] of this.#told) {
      assert.equal(found.get(name)?.metadata.resourceVersion, version, `the version of ${name}`)
      assert.equal(found.get(name)?.data?.value, value, `the value of ${name}`)
    }
    const [name] = [...this.#told.keys()].slice(-1)
    assert.equal((await client.ask('GET', `${configMaps}/${name}`)).status, 200)
  }

  /** A watch has told of everything that was acknowledged. */
  async heardBy(watch: Watch): Promise<void> {
    // Asked with each frame that comes: what was heard is noted once.
    const missing = new Set(this.#told.keys())
    let heard = 0
    await watch.until((frames) => {
      for (; heard < frames.length; heard++) missing.delete(frames[heard]?.object.metadata.name ?? '')
      return missing.size === 0
    })
  }
}

function clientOf(ake: Ake): Client {
  return new Client({ url: ake.url, credentials: ake })
}

/** Readiness tells the disk's state; liveness never does, or a full disk would mean endless restarts. */
async function checkHealth(client: Client, healthy: boolean): Promise<void> {
  const ready = await client.ask('GET', '/readyz?verbose')
  assert.equal(ready.status, healthy ? 200 : 500)
  assert.match(ready.body.toString(), healthy ? /\[\+\]store ok/ : /\[-\]store failed/)
  assert.equal((await client.ask('GET', '/livez')).status, 200)
}

/** Readiness comes back without anybody writing: a balancer that waits for it would otherwise wait for ever. */
async function untilReady(client: Client): Promise<void> {
  const deadlineMs = Date.now() + 10_000
  while ((await client.ask('GET', '/readyz')).status !== 200) {
    assert.ok(Date.now() < deadlineMs, 'not ready again 10 s after the disk was')
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

async function refusesPromptly(client: Client, ledger: Ledger, status: number): Promise<void> {
  const startedMs = Date.now()
  for (let i = 0; i < 5; i++) assert.equal(await ledger.write(client), status)
  assert.ok(Date.now() - startedMs < promptMs, 'refusals take their time')
}

async function full(context: StepContext): Promise<string | undefined> {
  const disk = SmallDisk.mount(context.dir, join(context.dir, 'disk'), diskMb)
  if (typeof disk === 'string') return disk
  let ake: Ake | undefined
  try {
    disk.reserve(ballastBytes)
    ake = await context.ake({ dir: disk.at, args: ['--history', '4Mi'] })
    let client = clientOf(ake)
    const ledger = new Ledger()
    await ledger.write(client)
    const { metadata } = await client.json<Listed>('GET', configMaps)
    const watching = `${configMaps}?watch=1&resourceVersion=${Number(metadata.resourceVersion) - 1}`
    const watch = new Watch(client, watching)

    context.progress('filling the disk')
    assert.equal(await ledger.writeUntilRefused(client), 507)
    context.progress(`full after ${ledger.size} writes`)
    await refusesPromptly(client, ledger, 507)
    await checkHealth(client, false)
    await ledger.check(client)
    await ledger.heardBy(watch)

    context.progress('giving space back')
    disk.free()
    await untilReady(client)
    assert.equal(await ledger.write(client), 201)
    await checkHealth(client, true)
    await ledger.heardBy(watch)
    await ledger.check(client)

    context.progress('kill -9 on the full disk, and a start on it')
    assert.equal(await ledger.writeUntilRefused(client), 507)
    client.close()
    await ake.kill()
    ake = await context.ake({ dir: disk.at, port: ake.port, args: ['--history', '4Mi'] })
    client = clientOf(ake)
    await ledger.check(client)
    await ledger.heardBy(new Watch(client, watching))
    assert.equal(await ledger.writeUntilRefused(client), 507)
    client.close()
    assert.equal(await ake.stop(), 0)

    context.progress('a start on the full disk after an orderly end')
    disk.fill()
    ake = await context.ake({ dir: disk.at, port: ake.port, args: ['--history', '4Mi'] })
    client = clientOf(ake)
    await ledger.check(client)
    client.close()
    assert.equal(await ake.stop(), 0)
    return undefined
  } finally {
    await ake?.kill()
    disk.unmount()
  }
}

async function failing(context: StepContext): Promise<string | undefined> {
  const ake = await context.ake()
  const limit = (bytes: string) => execFileSync('prlimit', ['--pid', String(ake.pid), `--fsize=${bytes}`])
  try {
    limit('unlimited:unlimited')
  } catch (error) {
    return `prlimit does not work here (${(error as Error).message.split('\n')[0]})`
  }
  const client = clientOf(ake)
  const ledger = new Ledger()
  for (let i = 0; i < 20; i++) assert.equal(await ledger.write(client), 201)
  const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=1`)
  await ledger.heardBy(watch)
  // The kernel refuses every write beyond the first page of a file: as good as a failing disk, and to be taken back.
  limit('4096:unlimited')
  await refusesPromptly(client, ledger, 500)
  await checkHealth(client, false)
  await ledger.check(client)
  await ledger.heardBy(new Watch(client, `${configMaps}?watch=1&resourceVersion=1`))
  limit('unlimited:unlimited')
  await untilReady(client)
  for (let i = 0; i < 20; i++) assert.equal(await ledger.write(client), 201)
  await ledger.check(client)
  await ledger.heardBy(watch)
  client.close()
  assert.equal(await ake.stop(), 0)
  return undefined
}
