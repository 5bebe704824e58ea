/**
 * What do reads and watches in protobuf cost? A LIST beside nginx sending the same bytes, watches beside the same watches in
 * JSON, single messages, and the memory of a server of which both forms of 10,000 pods were asked.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { decodeMessage, encodeMessage, type Message, messageOf } from '../src/kube/protobuf/protobuf.ts'
import { fillByWriting, startAke } from './ake.ts'
import type { Bench, Figure, Question, Target } from './bench.ts'
import { connectTo } from './client.ts'
import { makePods, podCount } from './fixture.ts'
import { cpuMs, memoryKb } from './process.ts'
import { measureReading } from './reading.ts'
import { writeSteadily } from './writer.ts'

const accept = 'application/vnd.kubernetes.protobuf'
const connections = 100
const streams = 10
const watchers = connections * streams
const perSecond = 100
const writeForMs = 8_000
const arriveWithinMs = 20_000
const manyPods = 10_000
const listsOfEach = 5
/** After the lists: what is still held then is held for long. */
const settleMs = 2_000

export const protobuf: Question = {
  name: 'protobuf',
  ask: async (bench) => [
    ...(await measureReading(bench, {
      name: 'LIST of 5,000 pods in protobuf',
      path: '/api/v1/pods',
      clients: 1,
      accept,
      atMost: 1.5,
    })),
    ...measureMessages(bench),
    await measureWatches(bench),
    await measureMemory(bench),
  ],
}

/** Each message once, as a server meets them: the second time it has them. */
function measureMessages({ say }: Bench): Figure[] {
  const message = messageOf('v1', 'Pod') as Message
  const type = { apiVersion: 'v1', kind: 'Pod' }
  const objects = makePods(podCount).map(({ object }) => Buffer.from(JSON.stringify(object)))
  const messages = objects.map((json) => encodeMessage(message, json))
  for (const raw of messages) decodeMessage(message, raw, type)
  const encodeUs = microseconds(objects, (json) => encodeMessage(message, json))
  const decodeUs = microseconds(messages, (raw) => decodeMessage(message, raw, type))
  const size = `${objects[0]?.length} bytes of JSON, ${messages[0]?.length} of protobuf`
  say(`  a pod of ${size}: written in ${encodeUs.toFixed(1)} µs, read in ${decodeUs.toFixed(1)} µs`)
  return [
    { name: 'a pod of 3.5 KB written in protobuf', unit: 'µs CPU', measured: { ake: encodeUs }, atMost: 60 },
    { name: 'a pod of 3.5 KB read from protobuf', unit: 'µs CPU', measured: { ake: decodeUs }, atMost: 30 },
  ]
}

function microseconds<T>(all: readonly T[], one: (item: T) => unknown): number {
  const before = process.cpuUsage()
  for (const item of all) one(item)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / all.length
}

async function measureWatches(bench: Bench): Promise<Figure> {
  const cost = { json: 0, protobuf: 0 }
  for (const form of ['json', 'protobuf'] as const) {
    const [target] = await bench.fresh('ake')
    if (target === undefined) break
    cost[form] = await measureForm(bench, target, form)
  }
  const name = '1,000 watchers, 100 events/s, in protobuf'
  const times = cost.protobuf / cost.json
  return { name, unit: 'times the CPU of JSON', measured: { ake: times }, atMost: 1 }
}

async function measureForm({ load, say }: Bench, target: Target, form: 'json' | 'protobuf'): Promise<number> {
  const connection = await connectTo(target, 'h2')
  const { text = '' } = await connection.ask({ path: '/api/v1/pods?limit=1' }, true)
  connection.close()
  const version = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion
  const path = `/api/v1/pods?watch=true&resourceVersion=${version}&timeoutSeconds=3600`
  await load.order({ kind: 'watch', at: { url: target.url, tls: target.tls }, path, connections, streams, form })
  await load.order({ kind: 'collect', atLeast: 0, withinMs: 0 })
  const before = cpuMs(target.pid)
  const updates = await writeSteadily({ at: target, pods: makePods(podCount), perSecond, forMs: writeForMs })
  const expected = updates * watchers
  const { done } = await load.order({ kind: 'collect', atLeast: expected, withinMs: arriveWithinMs })
  await load.order({ kind: 'close' })
  if (done < expected) throw new Error(`${target.name} delivered ${done} of ${expected} events in ${form}`)
  const cpuUs = ((cpuMs(target.pid) - before) * 1_000) / done
  say(`  watches in ${form}: ${cpuUs.toFixed(2)} µs CPU per delivery, ${done} deliveries`)
  return cpuUs
}

async function measureMemory({ say }: Bench): Promise<Figure> {
  const dir = await mkdtemp(join(tmpdir(), 'ake-protobuf-'))
  try {
    const filled = await startAke({ dir: join(dir, 'ake') })
    await fillByWriting(filled, makePods(manyPods))
    const target = await filled.restart!()
    const connection = await connectTo(target, 'h2')
    const held: number[] = []
    for (const headers of [{}, { accept }]) {
      for (let done = 0; done < listsOfEach; done++) {
        const { status } = await connection.ask({ path: '/api/v1/pods', headers })
        if (status !== 200) throw new Error(`LIST: ${status}`)
      }
      await pause(settleMs)
      held.push(memoryKb(target.pid, 'RssAnon') / 1_000)
    }
    connection.close()
    await target.stop()
    say(`  ${held[0]?.toFixed(0)} MB after lists in JSON, ${held[1]?.toFixed(0)} MB after lists in both forms`)
    return {
      name: 'memory, 10,000 pods, after lists in both forms',
      unit: 'MB RssAnon',
      measured: { ake: held[1] ?? 0 },
    }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
