/**
 * The load generator: a process of its own, so that its CPU time is nobody's. The measuring process starts it with
 * `startLoad` and gives it one order at a time; `open` and `watch` connect and warm up before anything is counted.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Address } from './bench.ts'
import { type Connection, connectTo } from './client.ts'
import { type Watching, watchMany } from './reader.ts'

export type Order =
  | { kind: 'open'; at: Address; protocol: 'h2' | 'h1'; path: string; connections: number; streams: number }
  | { kind: 'run'; forMs: number }
  | {
      kind: 'watch'
      at: Address
      path: string
      connections: number
      streams: number
      form?: 'json' | 'protobuf'
    }
  /** What the watches brought since they were opened or last collected; waits for `atLeast` events, but not for ever. */
  | { kind: 'collect'; atLeast: number; withinMs: number }
  | { kind: 'close' }

export type Report = { readonly done: number; readonly bytes: number; readonly p50Ms: number; readonly p99Ms: number }

export type Load = {
  order(order: Order): Promise<Report>
  stop(): void
}

type Reply = { readonly report: Report } | { readonly failed: string }

export function startLoad(): Load {
  const child = fork(import.meta.filename, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ended = once(child, 'exit').then(() => ({ failed: 'the load generator ended' }))
  return {
    order: async (order) => {
      const answer = once(child, 'message').then(([reply]) => reply as Reply)
      child.send(order)
      const reply = await Promise.race([answer, ended])
      if ('failed' in reply) throw new Error(`load ${order.kind}: ${reply.failed}`)
      return reply.report
    },
    stop: () => child.kill('SIGKILL'),
  }
}

/** While waiting for events: short beside what is measured, long beside what it costs. */
const pollMs = 20

const nothing: Report = { done: 0, bytes: 0, p50Ms: 0, p99Ms: 0 }

/** The child's side: the connections it holds, and what it has counted. */
function makeWorker(): (order: Order) => Promise<Report> {
  let connections: Connection[] = []
  let watching: Watching[] = []
  let plan = { path: '', streams: 0 }
  let events = 0
  let latencies: number[] = []
  let failure: Error | undefined
  const collect = (): Report => {
    if (failure !== undefined) throw failure
    const report = { done: events, bytes: 0, ...percentiles(latencies) }
    events = 0
    latencies = []
    return report
  }
  return async (order) => {
    switch (order.kind) {
      case 'open':
        plan = { path: order.path, streams: order.streams }
        connections = await Promise.all(
          Array.from({ length: order.connections }, () => connectTo(order.at, order.protocol)),
        )
        return read(connections, plan, 1)
      case 'run':
        return read(connections, plan, order.forMs)
      case 'watch': {
        failure = undefined
        const failing = Promise.withResolvers<never>()
        failing.promise.catch(() => {})
        watching = Array.from({ length: order.connections }, () =>
          watchMany({
            at: order.at,
            path: order.path,
            streams: order.streams,
            form: order.form ?? 'json',
            events: (count) => {
              events += count
            },
            latency: (ms) => latencies.push(ms),
            failed: (why) => {
              failure ??= new Error(why)
              failing.reject(failure)
            },
          }),
        )
        await Promise.race([Promise.all(watching.map((one) => one.opened)), failing.promise])
        return collect()
      }
      case 'collect': {
        const give = performance.now() + order.withinMs
        while (events < order.atLeast && failure === undefined && performance.now() < give) await pause(pollMs)
        return collect()
      }
      case 'close':
        for (const one of [...connections, ...watching]) one.close()
        connections = []
        watching = []
        return nothing
    }
  }
}

/** Every stream of every connection asks, reads the answer, and asks again, until the time is over. */
async function read(
  connections: readonly Connection[],
  { path, streams }: { path: string; streams: number },
  forMs: number,
): Promise<Report> {
  const end = performance.now() + forMs
  const latencies: number[] = []
  let bytes = 0
  const lane = async (connection: Connection) => {
    do {
      const asked = performance.now()
      const answer = await connection.ask({ path })
      if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status}`)
      latencies.push(performance.now() - asked)
      bytes += answer.bytes
    } while (performance.now() < end)
  }
  await Promise.all(connections.flatMap((connection) => Array.from({ length: streams }, () => lane(connection))))
  return { done: latencies.length, bytes, ...percentiles(latencies) }
}

function percentiles(values: number[]): { p50Ms: number; p99Ms: number } {
  const sorted = values.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

if (import.meta.main && process.send !== undefined) {
  const work = makeWorker()
  process.on('message', (order: Order) => {
    work(order).then(
      (report) => process.send?.({ report }),
      (error: Error) => process.send?.({ failed: error.message }),
    )
  })
  process.on('disconnect', () => process.exit())
}
