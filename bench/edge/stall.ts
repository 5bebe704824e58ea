/**
 * How long does somebody wait who reads every 50 ms while the line to the API server is cut, in each of the ways lines are
 * cut? With a version never longer than without a fault; without one, which only the API server can answer for sure, at
 * most once per fault as long as the limit of a read. And nobody ever gets an error.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import { type Mode, startLink } from '../../conformance/link.ts'
import type { Address, Figure, Question } from '../bench.ts'
import { connectTo } from '../client.ts'
import { makePods } from '../fixture.ts'
import { asAccount, startEdge, untilState, untilSynced } from './edge.ts'
import { startCloud } from './upstream.ts'

const pods = 500
const readEveryMs = 50

const faultMs = 8_000
const healedMsMax = 60_000
/** Before each fault everything is as it should be, for this long. */
const calmMs = 1_500

/** A read that takes this long has waited for something; those that do not wait take one or two. */
const stallMs = 100

/** A line on which everything arrives, after longer than anybody waits. */
const slow: Mode = {
  kind: 'slow',
  up: { bytesPerSecond: 4_000, delayMs: 700 },
  down: { bytesPerSecond: 4_000, delayMs: 700 },
}
const faults: readonly Mode[] = [
  { kind: 'refuse' },
  { kind: 'reset' },
  { kind: 'blackhole' },
  { kind: 'halfopen', lost: 'down' },
  { kind: 'halfopen', lost: 'up' },
  slow,
]

const [pod] = makePods(1)
const object = `/api/v1/namespaces/${pod!.namespace}/pods/${pod!.name}`
const list = `/api/v1/namespaces/${pod!.namespace}/pods`
const asked = [
  { versioned: true, path: `${object}?resourceVersion=0` },
  { versioned: true, path: `${list}?resourceVersion=0` },
  { versioned: false, path: object },
  { versioned: false, path: list },
]

export const edgestall: Question = {
  name: 'edgestall',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgestall-'))
    const cloud = await startCloud({ dir, pods })
    const link = await startLink({ target: { host: '127.0.0.1', port: cloud.port } })
    const kubeconfig = join(dir, 'edge.kubeconfig')
    await writeKubeconfig(kubeconfig, { url: link.url, ...cloud.tls })
    const args = ['--mirror', 'pods']
    const edge = await startEdge({ dir: join(dir, 'edge'), server: link.url, kubeconfig, args })
    const probers: Prober[] = []
    const delay = monitorEventLoopDelay({ resolution: 5 })
    try {
      await untilSynced(edge)
      const account = asAccount(edge)
      for (const { path, versioned } of asked) probers.push(await startProber(account, path, versioned))
      delay.enable()
      const rows: Row[] = []
      for (const fault of faults) {
        await pause(calmMs)
        for (const prober of probers) prober.take()
        delay.reset()
        await link.set(fault)
        await pause(faultMs)
        const during = rowOf(fault, probers, delay.max / 1e6)
        await link.set('up')
        await untilState(edge, 'reachable', healedMsMax)
        rows.push(during)
        say(`  ${textOf(during)}`)
      }
      return figuresOf(rows)
    } finally {
      for (const prober of probers) prober.stop()
      delay.disable()
      await edge.stop()
      await link.close()
      await cloud.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

type Taken = { readonly reads: number; readonly longestMs: number; readonly stalls: number; readonly errors: number }
type Prober = { readonly versioned: boolean; take(): Taken; stop(): void }

/** Reads one after the other, each at the next tick after the last was answered. */
async function startProber(at: Address, path: string, versioned: boolean): Promise<Prober> {
  const connection = await connectTo(at, 'h2')
  const nothing = { reads: 0, longestMs: 0, stalls: 0, errors: 0 }
  let now = { ...nothing }
  let stopped = false
  const probe = async () => {
    while (!stopped) {
      const startedAt = performance.now()
      const isGood = await connection.ask({ path }).then(
        ({ status }) => status === 200,
        () => stopped,
      )
      const tookMs = performance.now() - startedAt
      now.reads++
      if (!isGood) now.errors++
      if (tookMs >= stallMs) now.stalls++
      now.longestMs = Math.max(now.longestMs, tookMs)
      await pause(Math.max(0, readEveryMs - tookMs))
    }
  }
  void probe()
  return {
    versioned,
    take: () => {
      const taken = now
      now = { ...nothing }
      return taken
    },
    stop: () => {
      stopped = true
      connection.close()
    },
  }
}

type Row = {
  readonly name: string
  readonly reads: number
  readonly errors: number
  readonly versionedMs: number
  readonly recentMs: number
  /** The most that one prober met. */
  readonly stalls: number
  readonly loopMs: number
}

function rowOf(fault: Mode, probers: readonly Prober[], loopMs: number): Row {
  const taken = probers.map((prober) => ({ versioned: prober.versioned, ...prober.take() }))
  const longest = (versioned: boolean) =>
    Math.max(...taken.filter((one) => one.versioned === versioned).map(({ longestMs }) => longestMs))
  const lost = fault.kind === 'halfopen' ? ` (${fault.lost} lost)` : ''
  return {
    name: `${fault.kind}${lost}`,
    reads: taken.reduce((sum, { reads }) => sum + reads, 0),
    errors: taken.reduce((sum, { errors }) => sum + errors, 0),
    versionedMs: longest(true),
    recentMs: longest(false),
    stalls: Math.max(...taken.filter(({ versioned }) => !versioned).map(({ stalls }) => stalls)),
    loopMs,
  }
}

function textOf({ name, reads, errors, versionedMs, recentMs, stalls, loopMs }: Row): string {
  return (
    `${name}: ${reads} reads, ${errors} errors; with a version at most ${versionedMs.toFixed(0)} ms; without one at ` +
    `most ${recentMs.toFixed(0)} ms, ${stalls} stalls; the prober itself was late by ${loopMs.toFixed(0)} ms`
  )
}

function figuresOf(rows: readonly Row[]): Figure[] {
  const most = (values: readonly number[]) => ({ ake: Math.max(...values) })
  const sum = rows.reduce((errors, row) => errors + row.errors, 0)
  const of = 'edge, reads every 50 ms while the line is cut'
  return [
    {
      name: `${of}, with a version`,
      unit: 'ms longest',
      measured: most(rows.map((row) => row.versionedMs)),
      atMost: 50,
    },
    { name: `${of}, without one`, unit: 'stalls per fault', measured: most(rows.map((row) => row.stalls)), atMost: 1 },
    { name: `${of}, without one`, unit: 'ms longest', measured: most(rows.map((row) => row.recentMs)), atMost: 2_050 },
    { name: of, unit: 'errors', measured: { ake: sum }, atMost: 0 },
  ]
}
