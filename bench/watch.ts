/**
 * What does an event cost per watcher, and how late is it? 1,000 watchers of all pods on 100 connections, at 100 events/s.
 * kube-apiserver cannot keep up with that on two cores, so its cost per delivery is taken at 10 events/s; ours at that rate
 * is shown too, and is higher: less shares a system call.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Bench, Contestant, Figure, Question, Target } from './bench.ts'
import { connectTo } from './client.ts'
import { makePods, podCount } from './fixture.ts'
import { cpuMs, memoryKb } from './process.ts'
import { writeSteadily } from './writer.ts'

const connections = 100
const streams = 10
const watchers = connections * streams
const quietPerSecond = 10
const promisedPerSecond = 100
const writeForMs = 8_000

/** For memory to settle after opening. */
const settleMs = 2_000

/** For the last events to reach the last watcher, of a server that has fallen behind. */
const arriveWithinMs = 20_000

type Cost = { readonly cpuUs: number; readonly p99Ms: number }
type Measured = { [name in Contestant]?: number }

export const watch: Question = {
  name: 'watch',
  ask: async (bench) => {
    const cpu: Measured = {}
    const memory: Measured = {}
    const promised: { cpu: Measured; p99: Measured } = { cpu: {}, p99: {} }
    for (const target of await bench.fresh('ake', 'kube-apiserver')) {
      memory[target.name] = await openWatchers(bench, target)
      cpu[target.name] = (await measureRate(bench, target, quietPerSecond)).cpuUs
      if (target.name === 'ake') {
        const cost = await measureRate(bench, target, promisedPerSecond)
        promised.cpu.ake = cost.cpuUs
        promised.p99.ake = cost.p99Ms
      }
      await bench.load.order({ kind: 'close' })
    }
    const at = (perSecond: number) => `1,000 watchers, ${perSecond} events/s`
    const us = 'µs CPU per delivery'
    const theirs = cpu['kube-apiserver'] === undefined ? {} : { 'kube-apiserver': cpu['kube-apiserver'] }
    const compared: Measured = { ...promised.cpu, ...theirs }
    const name = `${at(promisedPerSecond)} (kube-apiserver: ${quietPerSecond})`
    const figures: Figure[] = [
      { name, unit: us, measured: compared, versus: 'kube-apiserver', atMost: 1 / 3 },
      { name: at(quietPerSecond), unit: us, measured: cpu, versus: 'kube-apiserver' },
      { name: `${at(promisedPerSecond)}, p99`, unit: 'ms from update to delivery', measured: promised.p99, atMost: 50 },
      { name: 'memory of a watcher', unit: 'KB', measured: memory, atMost: 20 },
    ]
    return figures
  },
}

/** Opens them from now on; returns what each costs in memory while nothing happens. */
async function openWatchers({ load, say }: Bench, target: Target): Promise<number> {
  const version = await currentVersion(target)
  const path = `/api/v1/pods?watch=true&resourceVersion=${version}&timeoutSeconds=3600`
  const before = await heldKb(target)
  const at = { url: target.url, tls: target.tls }
  await load.order({ kind: 'watch', at, path, connections, streams })
  await pause(settleMs)
  const each = ((await heldKb(target)) - before) / watchers
  say(`  ${target.name}: ${watchers} watchers open, ${each.toFixed(1)} KB each`)
  return each
}

/**
 * Of us, RSS. A Go process just started has freed tens of megabytes that it goes on holding, in which the watchers' memory
 * would vanish: so of kube-apiserver, what its heap and stacks have in use after a forced collection.
 */
async function heldKb(target: Target): Promise<number> {
  if (target.name === 'ake') return memoryKb(target.pid, 'VmRSS')
  const connection = await connectTo(target, 'h2')
  await connection.ask({ path: '/debug/pprof/heap?gc=1' })
  const { text = '' } = await connection.ask({ path: '/metrics' }, true)
  connection.close()
  const value = (name: string) => {
    const found = new RegExp(`^go_memstats_${name}_inuse_bytes (\\S+)`, 'm').exec(text)?.[1]
    if (found === undefined) throw new Error(`${target.name} tells no go_memstats_${name}_inuse_bytes`)
    return Number(found)
  }
  return (value('heap') + value('stack')) / 1024
}

async function measureRate({ load, say }: Bench, target: Target, perSecond: number): Promise<Cost> {
  await load.order({ kind: 'collect', atLeast: 0, withinMs: 0 })
  const before = cpuMs(target.pid)
  const updates = await writeSteadily({ at: target, pods: makePods(podCount), perSecond, forMs: writeForMs })
  const expected = updates * watchers
  const { done, p50Ms, p99Ms } = await load.order({ kind: 'collect', atLeast: expected, withinMs: arriveWithinMs })
  // A latency of those that did arrive would flatter a server that loses the rest.
  if (done < expected) throw new Error(`${target.name} delivered ${done} of ${expected} events`)
  const cpuUs = ((cpuMs(target.pid) - before) * 1_000) / done
  const times = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
  say(`  ${target.name} at ${perSecond}/s: ${cpuUs.toFixed(1)} µs CPU per delivery, ${done} deliveries, ${times}`)
  return { cpuUs, p99Ms }
}

export async function currentVersion(target: Target): Promise<string> {
  const connection = await connectTo(target, 'h2')
  const { text } = await connection.ask({ path: '/api/v1/pods?limit=1' }, true)
  connection.close()
  return (JSON.parse(text ?? '{}') as { metadata: { resourceVersion: string } }).metadata.resourceVersion
}
