/**
 * What does an edge behind a hub cost its line? Both are real processes over kube-apiserver, and lines count every byte of TCP,
 * TLS included; beside them a plain watch of the same pods goes straight to the API server over such a line.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Line, type Link, startLink } from '../../conformance/link.ts'
import type { Address, Bench, Figure, Question, Target } from '../bench.ts'
import { connectTo } from '../client.ts'
import { makePods, podCount } from '../fixture.ts'
import { writeSteadily } from '../writer.ts'
import { gzippedList, plainWatch, podsSince, resumedWatch, watchListBytes } from './plain.ts'
import {
  type HubEdge,
  type HubSite,
  newestVersion,
  passed,
  sendEach,
  startHubSite,
  untilCurrent,
  untilQuiet,
  wantPods,
} from './site.ts'

/** Apart enough that none shares a frame with another. */
const perSecond = 10
const updates = 100
const renewals = 30
/** 1 % of all. */
const changed = podCount / 100
const quietMs = 3_000
/** After a reconnection: roots and marks come within this. */
const settleMs = 2_000
const downMs = 1_000

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
const leaseName = 'edge-1'

/** 1 Mbit/s with a round trip of 200 ms. */
const slowLine: Line = { bytesPerSecond: 125_000, delayMs: 100 }

type World = {
  readonly bench: Bench
  readonly real: Target
  readonly site: HubSite
  /** Straight to the API server. */
  readonly direct: Link
  readonly plain: Address
}

export const hubbytes: Question = {
  name: 'hubbytes',
  ask: async (bench) => {
    const real = (await bench.targets('kube-apiserver'))[0]
    if (real === undefined) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-hubbytes-'))
    const site = await startHubSite({ dir, at: real })
    const direct = await startLink({ target: { host: '127.0.0.1', port: Number(new URL(real.url).port) } })
    try {
      return await measured({ bench, real, site, direct, plain: { url: direct.url, tls: real.tls } })
    } finally {
      await sendEach(real, [{ method: 'DELETE', path: `${leases}/${leaseName}` }], [200, 404])
      await site.stop()
      await direct.close()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

async function measured(world: World): Promise<Figure[]> {
  const { site, bench } = world
  const edge = await site.edge('edge-1')
  await untilQuiet(edge.line, quietMs)
  bench.say(`  an edge that holds no pods was started with ${kb(passed(edge.line))}`)
  const figures = [
    ...(await firstSync(world, edge)),
    await update(world, edge),
    await lease(world, edge),
    ...(await reconnections(world, edge)),
  ]
  return [...figures, await restarted(world, edge)]
}

/** Over a slow line, so that its time is that of the bytes. */
async function firstSync({ bench, real, direct, plain }: World, edge: HubEdge): Promise<Figure[]> {
  const slow = { kind: 'slow', up: slowLine, down: slowLine } as const
  const watchList = await watchListBytes(plain, direct, podCount)
  await Promise.all([edge.line.set(slow), direct.set(slow)])
  const [version, before, began] = [await newestVersion(real), passed(edge.line), performance.now()]
  await wantPods(edge)
  await untilCurrent(edge, version)
  const [bytes, ms] = [passed(edge.line) - before, performance.now() - began]
  const listed = await gzippedList(plain, direct)
  await Promise.all([edge.line.set('up'), direct.set('up')])
  bench.say(
    `  first sync ${kb(bytes)} in ${ms.toFixed(0)} ms, a gzipped LIST ${kb(listed.bytes)}, WatchList ${kb(watchList)}`,
  )
  const name = 'hub, first sync of 5,000 pods'
  const mb = { ake: bytes / 1e6, gzip: listed.bytes / 1e6, WatchList: watchList / 1e6 }
  return [
    { name, unit: 'MB on the line', measured: mb, versus: 'gzip', atMost: 0.8 },
    { name: `${name}, beside WatchList`, unit: 'MB on the line', measured: mb, versus: 'WatchList', atMost: 1 / 14 },
    {
      ...{ name: `${name} at 1 Mbit/s and 200 ms`, unit: 's', versus: 'gzip' },
      measured: { ake: ms / 1_000, gzip: listed.ms / 1_000 },
    },
  ]
}

async function update({ bench, real, direct, plain }: World, edge: HubEdge): Promise<Figure> {
  const pods = makePods(podCount).slice(0, updates / 5)
  // What wrote them before is noted in them with the first update of ours.
  await write(real, pods.length, pods)
  const since = await newestVersion(real)
  await untilCurrent(edge, since)
  const watch = await plainWatch(plain, podsSince(since))
  const before = { ake: passed(edge.line), 'plain watch': passed(direct) }
  await write(real, updates, pods)
  await watch.until(updates)
  await untilCurrent(edge, await newestVersion(real))
  await pause(settleMs)
  const measured = {
    ake: (passed(edge.line) - before.ake) / updates,
    'plain watch': (passed(direct) - before['plain watch']) / updates,
  }
  watch.close()
  bench.say(`  an update: ${measured.ake.toFixed(0)} bytes, a plain watch ${measured['plain watch'].toFixed(0)}`)
  return { name: 'hub, an update of a pod', unit: 'bytes on the line', measured, atMost: 200 }
}

/** As a kubelet renews it: from the answer before. Who asks is the administrator, which makes no difference to the bytes. */
async function lease({ bench, real, direct, plain }: World, edge: HubEdge): Promise<Figure> {
  const spec = { holderIdentity: leaseName, leaseDurationSeconds: 40 }
  const body = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata: { name: leaseName }, spec }
  await sendEach(real, [{ method: 'POST', path: leases, body: JSON.stringify(body) }])
  const renew = async (at: Address, line: Link): Promise<number> => {
    const connection = await connectTo(at, 'h2')
    const one = `${leases}/${leaseName}`
    let { text = '' } = await connection.ask({ path: one }, true)
    let before = 0
    for (let round = 0; round < renewals + 5; round++) {
      if (round === 5) before = passed(line)
      const held = JSON.parse(text) as { spec: object }
      const renewTime = new Date().toISOString().replace('Z', '000Z')
      const next = JSON.stringify({ ...held, spec: { ...held.spec, renewTime } })
      const answer = await connection.ask({ method: 'PUT', path: one, body: next }, true)
      if (answer.status !== 200) throw new Error(`PUT ${one}: ${answer.status} ${answer.text}`)
      text = answer.text ?? ''
    }
    const bytes = passed(line) - before
    connection.close()
    return bytes / renewals
  }
  const measured = { ake: await renew(edge.ake, edge.line), 'HTTP/2': await renew(plain, direct) }
  bench.say(`  a renewed lease: ${measured.ake.toFixed(0)} bytes, by HTTPS/2 ${measured['HTTP/2'].toFixed(0)}`)
  return { name: 'hub, a forwarded lease renewal', unit: 'bytes on the line', measured, atMost: 300 }
}

async function reconnections({ bench, real, direct, plain }: World, edge: HubEdge): Promise<Figure[]> {
  const since = await newestVersion(real)
  const { interests } = await untilCurrent(edge, since)
  const nothing = await reconnected(edge, real)
  const plainNothing = await resumedWatch(plain, direct, since, 0)
  const some = await reconnected(edge, real, () => write(real, changed))
  const plainSome = await resumedWatch(plain, direct, since, changed)
  const { bytes: gzip } = await gzippedList(plain, direct)
  bench.say(
    `  a reconnection: ${nothing} bytes with ${interests.length} interests, a plain watch ${plainNothing}; ` +
      `${kb(some)} with ${changed} changed, a plain watch ${kb(plainSome)}, a gzipped relist ${kb(gzip)}`,
  )
  return [
    {
      ...{ name: `hub, a reconnection of ${interests.length} interests, nothing changed`, unit: 'bytes on the line' },
      ...{ measured: { ake: nothing, 'plain watch': plainNothing }, atMost: 4_000 + 24 * interests.length },
    },
    {
      ...{ name: 'hub, a reconnection, 1 % of 5,000 pods changed', unit: 'KB on the line', atMost: 10 },
      measured: { ake: some / 1e3, 'plain watch': plainSome / 1e3, gzip: gzip / 1e3 },
    },
  ]
}

/** Its history is gone with the hub that was: digests find what differs. */
async function restarted({ bench, real, site, direct, plain }: World, edge: HubEdge): Promise<Figure> {
  const since = await newestVersion(real)
  const bytes = await reconnected(edge, real, async () => {
    await write(real, changed)
    await site.hub.restart('kill')
  })
  const measured = { ake: bytes / 1e3, 'plain watch': (await resumedWatch(plain, direct, since, changed)) / 1e3 }
  const { bytes: gzip } = await gzippedList(plain, direct)
  bench.say(`  after a restart of the hub with ${changed} changed: ${kb(bytes)}`)
  return {
    ...{ name: 'hub, a reconnection after its restart, 1 % of 5,000 pods changed', unit: 'KB on the line' },
    ...{ measured: { ...measured, gzip: gzip / 1e3 }, atMost: 60 },
  }
}

/** From the first byte after a cut until everything is current and silent. */
async function reconnected(edge: HubEdge, real: Address, meanwhile = async () => {}): Promise<number> {
  const { line } = edge
  await line.set({ kind: 'refuse', end: 'destroy' })
  await meanwhile()
  await pause(downMs)
  const version = await newestVersion(real)
  const before = passed(line)
  const { connections } = line.stats()
  await line.set('up')
  while (line.stats().connections === connections) await pause(10)
  await untilCurrent(edge, version)
  await pause(settleMs)
  return passed(line) - before
}

async function write(at: Address, count: number, pods = makePods(podCount)): Promise<void> {
  await writeSteadily({ at, pods, perSecond, forMs: (count / perSecond) * 1_000 })
}

function kb(bytes: number): string {
  return `${(bytes / 1e3).toFixed(1)} KB`
}
