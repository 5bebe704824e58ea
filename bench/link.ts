/**
 * What does the link to a hub send, and what does it cost to make? Updates as deltas beside whole objects, and the keys that
 * differ found by digests beside a list of all. Nothing is connected: the same code, in this process. A frame's bytes are
 * without those of WebSocket and TLS, about 26 for each message.
 */

import { constants, gzipSync } from 'node:zlib'
import { chanceOf } from '../src/base/seeded.test-support.ts'
import { decodeDelta, encodeDelta } from '../src/link/delta.ts'
import { answerComparison } from '../src/link/digest/answer.ts'
import { type DigestEntry, DigestTree } from '../src/link/digest/digest.ts'
import { DigestWalk } from '../src/link/digest/walk.ts'
import { decodeChange, encodeChange } from '../src/link/frames/change.ts'
import { changeBytesMax, decodeFrame, encodeFrame } from '../src/link/frames/frames.ts'
import type { Figure, Question } from './bench.ts'
import { makePods, podCount, stampKey, uuid } from './fixture.ts'
import { median } from './median.ts'

const updated = 500
const rounds = 5

type Update = { readonly key: string; readonly base: Buffer; readonly bytes: Buffer }
type Updates = { readonly name: string; readonly all: readonly Update[]; readonly atMost?: number }

export const link: Question = {
  name: 'link',
  ask: ({ say }) => Promise.resolve([...[podStamps(), podStatuses(), leases()].flatMap(measure), ...digests(say)]),
}

function measure({ name, all, atMost }: Updates): Figure[] {
  const frames = all.map((update) => encode(update, encodeDelta(update.bytes, update.base)))
  const deltas = all.map(({ bytes, base }) => encodeDelta(bytes, base))
  return [
    {
      name: `link, ${name}`,
      unit: 'bytes',
      measured: {
        ake: median(frames.map(({ length }) => length)),
        gzip: median(all.map(({ bytes }) => gzipSync(bytes).length)),
        JSON: median(all.map(({ bytes }) => bytes.length)),
      },
      ...(atMost !== undefined && { atMost }),
    },
    {
      name: `link, ${name}, to encode once`,
      unit: 'µs CPU',
      measured: {
        ake: leastCpu(all, ({ bytes, base }) => encodeDelta(bytes, base)),
        gzip: leastCpu(all, ({ bytes }) => gzipSync(bytes)),
      },
    },
    {
      name: `link, ${name}, to put it into an edge's frame`,
      unit: 'µs CPU',
      measured: { ake: leastCpu(all, (update, at) => encode(update, deltas[at]!)) },
      atMost: 8,
    },
    {
      name: `link, ${name}, to decode at an edge`,
      unit: 'µs CPU',
      measured: { ake: leastCpu(all, (update, at) => decode(update, frames[at]!)) },
    },
  ]
}

function encode({ key }: Update, delta: Buffer): Buffer {
  const change = encodeChange({ type: 'put', key, version: 1_234_567, base: key, delta }, changeBytesMax)
  return encodeFrame({ kind: 'events', position: 10_000, events: [{ interest: 7, change }] })
}

function decode({ base, bytes }: Update, message: Buffer): void {
  const frame = decodeFrame(message)
  const change = frame?.kind === 'events' ? decodeChange(frame.events[0]!.change) : undefined
  if (change?.type !== 'put' || !decodeDelta(change.delta, base).equals(bytes)) throw new Error('not the same bytes')
}

/** The least of several rounds over all of them, for each. */
function leastCpu(all: readonly Update[], run: (update: Update, at: number) => unknown): number {
  const round = () => {
    for (const [at, update] of all.entries()) run(update, at)
  }
  return leastOf(round) / all.length
}

type Stored = { metadata: object; status: { conditions: object[]; containerStatuses: object[] } }

/** As an API server keeps them: with their uid and version. */
function storedPods(): { key: string; pod: Stored }[] {
  const random = chanceOf(2)
  return makePods(updated).map(({ namespace, name, object }, at) => {
    const metadata = { ...object.metadata, uid: uuid(random), resourceVersion: String(1_200_000 + at) }
    return { key: `${namespace}/${name}`, pod: { ...object, metadata } as unknown as Stored }
  })
}

function update(key: string, before: object, after: object): Update {
  return { key, base: Buffer.from(JSON.stringify(before)), bytes: Buffer.from(JSON.stringify(after)) }
}

function podStamps(): Updates {
  const all = storedPods().map(({ key, pod }, at) => {
    const annotations = { [stampKey]: String(10n ** 19n + BigInt(at) * 12_345_678_901n) }
    return update(key, pod, {
      ...pod,
      metadata: { ...pod.metadata, annotations, resourceVersion: String(1_230_000 + at) },
    })
  })
  return { name: "an update of a pod's annotation", all, atMost: 200 - 26 }
}

/** Not ready any more, as a kubelet says it. */
function podStatuses(): Updates {
  const all = storedPods().map(({ key, pod }, at) => {
    const lastTransitionTime = new Date(Date.UTC(2026, 10, 17) + at * 1_000).toISOString().replace('.000', '')
    const unready = {
      ...{ status: 'False', lastTransitionTime, reason: 'ContainersNotReady' },
      message: `containers with unready status: [${key.split('/')[1]}]`,
    }
    const conditions = pod.status.conditions.map((one, place) =>
      place === 2 || place === 3 ? { ...one, ...unready } : one,
    )
    const containerStatuses = pod.status.containerStatuses.map((one) => ({ ...one, ready: false, started: false }))
    const metadata = { ...pod.metadata, resourceVersion: String(1_230_000 + at) }
    return update(key, pod, { ...pod, metadata, status: { ...pod.status, conditions, containerStatuses } })
  })
  return { name: 'a pod that is not ready any more', all, atMost: 200 - 26 }
}

function leases(): Updates {
  const random = chanceOf(3)
  const all = Array.from({ length: updated }, (_, at) => {
    const name = `node-${at}`
    const uid = uuid(random)
    const owner = { apiVersion: 'v1', kind: 'Node', name, uid: uuid(random) }
    const lease = (version: number, second: number) => ({
      metadata: {
        ...{ name, namespace: 'kube-node-lease', uid, resourceVersion: String(version) },
        ...{ creationTimestamp: '2026-11-01T00:00:00Z', ownerReferences: [owner] },
      },
      spec: {
        holderIdentity: name,
        leaseDurationSeconds: 40,
        renewTime: new Date(Date.UTC(2026, 10, 17) + second * 1_003).toISOString().replace('Z', '917Z'),
      },
    })
    return update(`kube-node-lease/${name}`, lease(1_200_000 + at, at), lease(1_230_000 + at, at + 10))
  })
  return { name: 'a renewal of a lease', all }
}

function digests(say: (line: string) => void): Figure[] {
  const random = chanceOf(4)
  const all = makePods(podCount).map(({ namespace, name }, at) => ({
    key: `${namespace}/${name}`,
    uid: uuid(random),
    version: 1_200_000 + at,
  }))
  const changed = all.map((one, at) => (at % 100 === 0 ? { ...one, version: one.version + 50_000 } : one))
  const secret = Buffer.from('a secret of the hub')
  const treeOf = (entries: readonly DigestEntry[]) => {
    const tree = new DigestTree(secret)
    for (const entry of entries) tree.put(entry)
    return tree
  }
  const [edge, hub] = [treeOf(all), treeOf(changed)]
  const { bytes, trips, found } = compare(edge, hub)
  if (found !== podCount / 100) throw new Error(`${found} keys differ`)
  say(`  ${trips} trips`)
  const listed = gzipSync(JSON.stringify(changed.map(({ key, uid, version }) => [key, uid, version])), {
    level: constants.Z_BEST_COMPRESSION,
  })
  const name = (what: string) => `link, digests of 5,000 pods, ${what}`
  const cpu = leastOf(() => treeOf(all)) / podCount
  return [
    {
      name: name('to find 1 % that differ'),
      unit: 'bytes',
      measured: { ake: bytes, gzip: listed.length },
      atMost: 6_000,
    },
    {
      name: name('to find 1 % that differ, both sides'),
      unit: 'µs CPU',
      measured: { ake: leastOf(() => compare(edge, hub)) },
    },
    { name: name('each one put in'), unit: 'µs CPU', measured: { ake: cpu } },
  ]
}

function compare(edge: DigestTree, hub: DigestTree) {
  let [bytes, trips, found] = [0, 0, 0]
  const walk = new DigestWalk(edge)
  for (let request = walk.next(); request !== undefined; trips++) {
    const { answer, differing } = answerComparison(hub, request)
    bytes += request.length + answer.length
    found += differing.length
    request = walk.next(answer)
  }
  return { bytes, trips, found }
}

function leastOf(run: () => unknown): number {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const began = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(began)
    least = Math.min(least, user + system)
  }
  return least
}
