/** `ake edge` behind `ake hub`, both in this process or, where they are stopped or go from one to another, as processes: what an edge, its hub and their cloud go through together. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startLink } from '../conformance/link.ts'
import { until } from '../src/base/until.test-support.ts'
import { type HubbedSite, withHubbedSite } from './hubprocess.ts'
import { configMap, configMaps, type Frame, Watch } from './process.ts'

type Listed = { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly unknown[] }

/** Together what no documents, reviews and differences come near to, and nothing makes smaller. */
const [many, randomBytesEach] = [200, 12_000]
/** A copy is asked whether its past is still that of its cluster by the names that are newest, one at a time. */
const witnessesMax = 8

/** What a watch has to tell of a round of changes at the cloud; what came and went meanwhile is told by history alone. */
async function change(site: HubbedSite, round: string): Promise<string[]> {
  const cloud = site.client(site.cloud)
  await cloud.json('POST', configMaps, configMap(`made-${round}`, { round }))
  await cloud.json('PUT', `${configMaps}/kept`, configMap('kept', { round }))
  await cloud.json('POST', configMaps, configMap(`fleeting-${round}`, { round }))
  await cloud.json('DELETE', `${configMaps}/fleeting-${round}`)
  await cloud.json('DELETE', `${configMaps}/many-${round}`)
  return [`ADDED made-${round}`, 'MODIFIED kept', `DELETED many-${round}`]
}

const told = (frames: readonly Frame[]) =>
  frames
    .filter(({ type }) => type !== 'BOOKMARK')
    .map(({ type, object }) => `${type} ${object.metadata.name}`)
    .filter((text) => !text.includes('fleeting'))

/** A most-recent LIST, as kubectl asks for it: how old it is said to be, if it is. */
async function warningOf(site: HubbedSite): Promise<string> {
  const { status, headers } = await site.administrator().ask('GET', configMaps)
  assert.equal(status, 200)
  return String(headers.warning ?? '')
}

/** Longer than what finds a side dead that owes something. */
const stoppedMs = 6_500

/** A site whose edge mirrors, how many objects it has, and signals for either side. */
async function withStoppable(
  body: (parts: {
    site: HubbedSite
    add: (name: string) => Promise<unknown>
    untilHeld: (objects: number) => Promise<unknown>
    signal: (side: 'hub' | 'edge', name: 'SIGSTOP' | 'SIGCONT') => void
  }) => Promise<void>,
): Promise<void> {
  await withHubbedSite(
    async (site) => {
      await site.startHub('--trust-edges')
      await site.go('hub', '--mirror', 'configmaps')
      const held = async () =>
        (await site.administrator().json<Listed>('GET', `${configMaps}?resourceVersion=0`)).items.length
      const untilHeld = (objects: number) => until(async () => (await held()) === objects, `${objects} objects`)
      const cloud = site.client(site.cloud)
      const add = (name: string) => cloud.json('POST', configMaps, configMap(name, {}))
      await add('first')
      await untilHeld(1)
      const signal = (side: 'hub' | 'edge', name: 'SIGSTOP' | 'SIGCONT') =>
        process.kill(side === 'hub' ? site.hub.pid : site.edge.pid, name)
      const { connections } = site.link.stats()
      await body({ site, add, untilHeld, signal })
      assert.equal(site.link.stats().connections, connections, 'the link was lost')
    },
    { areProcesses: true },
  )
}

/** Longer than what an edge takes for fresh without a question. */
const quietMs = 6_000
/** The first answers of a busy machine. */
const settlingMsMax = 60_000

/** Until nothing has gone over the link for that long: what has gone up. */
async function quiet(site: HubbedSite): Promise<number> {
  let [before, sinceMs] = ['', performance.now()]
  await until(
    async () => {
      const { bytesUp, bytesDown } = site.link.stats()
      const now = `${bytesUp} ${bytesDown}`
      if (now !== before) [before, sinceMs] = [now, performance.now()]
      return performance.now() - sinceMs >= quietMs
    },
    'a quiet link',
    { withinMs: settlingMsMax, everyMs: 100 },
  )
  return site.link.stats().bytesUp
}

/** They mostly wait. */
describe('an edge behind a hub', { concurrency: true }, () => {
  test('a folder goes from direct mode to a hub and back: a watch from before gets what changed meanwhile, and nothing is listed again', () =>
    withHubbedSite(
      async (site) => {
        const cloud = site.client(site.cloud)
        await cloud.json('POST', configMaps, configMap('kept', { round: 'first' }))
        for (let at = 0; at < many; at++)
          await cloud.json(
            'POST',
            configMaps,
            configMap(`many-${at}`, { x: randomBytes(randomBytesEach).toString('base64') }),
          )
        await site.startHub('--trust-edges')
        await site.go('direct', '--mirror', 'configmaps')
        const synced = async () => {
          const wanted = (await cloud.json<Listed>('GET', `${configMaps}?limit=1`)).metadata.resourceVersion
          await until(async () => {
            const { metadata } = await site.client().json<Listed>('GET', `${configMaps}?resourceVersion=0&limit=1`)
            return Number(metadata.resourceVersion) >= Number(wanted)
          }, 'synced')
        }
        await synced()
        const path = `${configMaps}?watch=true&allowWatchBookmarks=true&resourceVersion=`
        let { resourceVersion: from } = (await site.client().json<Listed>('GET', `${configMaps}?resourceVersion=0`))
          .metadata
        let lists = await site.lists('configmaps')
        let round = 0
        const whole = site.link.stats().bytesDown
        assert.ok(whole > many * randomBytesEach)
        for (const { way, listsMax } of [
          // The hub's own, for all its edges.
          { way: 'hub', listsMax: 1 },
          { way: 'direct', listsMax: witnessesMax },
          { way: 'hub', listsMax: 0 },
          { way: 'direct', listsMax: witnessesMax },
        ] as const) {
          await site.edge.end()
          const expected = await change(site, `${round++}`)
          site.link.resetStats()
          await site.go(way)
          const watch = new Watch(site.client(), path + from)
          await watch.until((frames) => told(frames).length >= expected.length)
          expected.push(...(await change(site, `${round++}`)))
          await watch.until((frames) => told(frames).length >= expected.length)
          // The order of what one version's difference brings is the copy's own.
          assert.deepEqual(told(watch.frames).sort(), expected.sort(), `${way}, from ${from}`)
          const now = await site.lists('configmaps')
          assert.ok(now - lists <= listsMax, `${now - lists} lists for the way ${way}`)
          const { bytesDown } = site.link.stats()
          assert.ok(bytesDown < whole / 2, `${bytesDown} bytes for the way ${way}, ${whole} with everything`)
          assert.equal(watch.stream.closed, false)
          lists = now
          from = watch.frames.at(-1)?.object.metadata.resourceVersion ?? ''
        }
      },
      { areProcesses: true },
    ))

  test('[A6] a hub whose own watches are dead makes a LIST at its edge say how old it is, and no longer once they live', () =>
    withHubbedSite(async (site) => {
      const between = await startLink({ target: { host: '127.0.0.1', port: site.cloud.port } })
      try {
        await site.startHub('--trust-edges', '--server', between.url)
        await site.go('hub', '--mirror', 'configmaps')
        await until(async () => (await warningOf(site)) === '', 'a copy that is as new as any')
        const { connections } = site.link.stats()
        await between.set('blackhole')
        const startedMs = performance.now()
        await until(async () => (await warningOf(site)) !== '', 'a warning', { withinMs: 60_000, everyMs: 500 })
        // The link is there and each LIST asks over it: what it is told is how long ago the hub heard anything.
        const seconds = Number(/served from the local copy, (\d+) s old/.exec(await warningOf(site))?.[1])
        const cutSeconds = (performance.now() - startedMs) / 1000
        assert.ok(seconds >= cutSeconds - 1, `${seconds} s old, ${cutSeconds} s after the cut`)
        assert.equal(site.link.stats().connections, connections)
        await between.set('up')
        await until(async () => (await warningOf(site)) === '', 'fresh again', { withinMs: 60_000, everyMs: 500 })
      } finally {
        await between.close()
      }
    }))

  test('[L3] a link lives on when its hub was stopped for longer than silence may last: what waits on its socket is read before the edge is taken for dead', () =>
    withStoppable(async ({ site, add, untilHeld, signal }) => {
      const { sent } = await site.hubTraffic()
      // The edge has not acknowledged when the hub is stopped, and has when that goes on.
      signal('edge', 'SIGSTOP')
      await add('second')
      await until(async () => (await site.hubTraffic()).sent > sent, 'sent')
      signal('hub', 'SIGSTOP')
      signal('edge', 'SIGCONT')
      await pause(stoppedMs)
      signal('hub', 'SIGCONT')
      await add('third')
      await untilHeld(3)
    }))

  test('[L3] a link lives on when its edge was stopped for longer than silence may last: what waits on its socket is read before the hub is taken for dead', () =>
    withStoppable(async ({ site, add, untilHeld, signal }) => {
      // Older than what needs no question, and nothing else is owed, such as the rest of a document that came late; the hub has not
      // answered it when the edge is stopped, and has when that goes on.
      const bytesUp = await quiet(site)
      signal('hub', 'SIGSTOP')
      const asked = site.administrator().ask('GET', configMaps)
      await until(() => site.link.stats().bytesUp > bytesUp, 'asked')
      signal('edge', 'SIGSTOP')
      signal('hub', 'SIGCONT')
      await pause(stoppedMs)
      signal('edge', 'SIGCONT')
      assert.equal((await asked).status, 200)
      await add('second')
      await untilHeld(2)
    }))
})
