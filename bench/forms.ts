/**
 * How long does somebody else wait, and how much memory does it take, while a client lists 5,000 pods (17.4 MB) in each
 * form that has to be made for it? Every form is made in pieces, so nobody is to wait longer than 50 ms.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Bench, Contestant, Figure, Question, Target } from './bench.ts'
import { connectTo } from './client.ts'
import { namespaceName } from './fixture.ts'
import { memoryKb } from './process.ts'

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const metadata = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const gzip = { 'accept-encoding': 'gzip' }

type Form = { readonly name: string; readonly query?: string; readonly headers: Readonly<Record<string, string>> }

const asked: readonly Form[] = [
  { name: 'JSON', headers: {} },
  { name: 'indented', query: '?pretty=1', headers: {} },
  { name: 'YAML', headers: { accept: 'application/yaml' } },
  { name: 'YAML, gzip', headers: { accept: 'application/yaml', ...gzip } },
  { name: 'Table', headers: { accept: table } },
  { name: 'Table, gzip', headers: { accept: table, ...gzip } },
  { name: 'metadata', headers: { accept: metadata } },
  { name: 'protobuf', headers: { accept: 'application/vnd.kubernetes.protobuf' } },
]

/** Lists one after the other for so long. */
const readMs = 4_000
/** Somebody else asks for one object this often. */
const probeEveryMs = 5
const object = `/api/v1/namespaces/${namespaceName(0)}`

export const forms: Question = {
  name: 'forms',
  ask: async (bench) => {
    const figures: Figure[] = []
    for (const form of asked) {
      const waits: { [name in Contestant]?: number } = {}
      const memory: { [name in Contestant]?: number } = {}
      // A process that has done nothing yet: what another form took would not show again.
      for (const target of await bench.fresh('ake', 'kube-apiserver')) {
        const { waitMs, megabytes } = await measure(bench, target, form)
        waits[target.name] = waitMs
        memory[target.name] = megabytes
      }
      const name = `somebody else while 5,000 pods are listed, ${form.name}`
      figures.push({ name, unit: 'ms longest', measured: waits, atMost: 50 })
      figures.push({ name: `the same, growth at its peak`, unit: 'MB RssAnon', measured: memory })
    }
    return figures
  },
}

async function measure(
  { load, say }: Bench,
  target: Target,
  { name, query = '', headers }: Form,
): Promise<{ waitMs: number; megabytes: number }> {
  const at = { url: target.url, tls: target.tls, headers }
  const connection = await connectTo(target, 'h2')
  const megabytes = () => memoryKb(target.pid, 'RssAnon') / 1_000
  for (let warm = 0; warm < 100; warm++) await connection.ask({ path: object })
  const before = megabytes()
  let peak = before
  let waitMs = 0
  let stopped = false
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const probe = async () => {
    while (!stopped) {
      const startedAt = performance.now()
      const { status } = await connection.ask({ path: object })
      if (status !== 200) throw new Error(`${target.name} GET: ${status}`)
      waitMs = Math.max(waitMs, performance.now() - startedAt)
      peak = Math.max(peak, megabytes())
      await pause(probeEveryMs)
    }
  }
  const probing = probe()
  await load.order({ kind: 'open', at, protocol: 'h2', path: `/api/v1/pods${query}`, connections: 1, streams: 1 })
  const { done, bytes } = await load.order({ kind: 'run', forMs: readMs })
  await load.order({ kind: 'close' })
  stopped = true
  await probing
  delay.disable()
  connection.close()
  const lists = `${done} × ${Math.round(bytes / Math.max(1, done))} bytes`
  const late = `the prober itself was late by ${(delay.max / 1e6).toFixed(0)} ms`
  say(`  ${name} ${target.name}: ${waitMs.toFixed(0)} ms longest, ${(peak - before).toFixed(0)} MB; ${lists}; ${late}`)
  return { waitMs, megabytes: peak - before }
}
