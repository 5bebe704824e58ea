/**
 * Random lives of a hub: edges that come, go, take nothing for a while or are cut anywhere, a cloud that breaks off and compacts, interests
 * that end for want of readers. Wherever an edge claims a version its copy is what the cluster had then, and in the end all have
 * what they want. AKE_SEED repeats a run that failed, AKE_SEEDS says how many there are.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveEach, lives } from '../../base/lives.test-support.ts'
import { seeded } from '../../base/seeded.test-support.ts'
import { type EdgeCopy, HubWorld, type TestEdge } from './hub.test-support.ts'

const all = 20
const runs = lives(all)
const stepsPerRun = 80

type Held = {
  readonly key: string
  readonly thing: { readonly node?: string; readonly labels?: Record<string, string> }
}

/** By name, what each selects. */
const wishes: Readonly<Record<string, (held: Held) => boolean>> = {
  'v1/pods': () => true,
  'v1/pods@a': ({ key }) => key.startsWith('a/'),
  'v1/pods@a?&metadata.name=k1': ({ key }) => key === 'a/k1',
  'v1/pods@b?&metadata.name=k0': ({ key }) => key === 'b/k0',
  'v1/pods?app=web&': ({ thing }) => thing.labels?.app === 'web',
  'v1/pods@b?app=web&': ({ key, thing }) => key.startsWith('b/') && thing.labels?.app === 'web',
  'v1/pods?&spec.nodeName=n1': ({ thing }) => thing.node === 'n1',
  'v1/pods?&spec.nodeName!=n1': ({ thing }) => thing.node !== 'n1',
  'v1/configmaps@a': ({ key }) => key.startsWith('a/'),
}
const names = Object.keys(wishes)
const resourceOf = (name: string) => (name.startsWith('v1/pods') ? 'pods' : 'configmaps')

function compare(world: HubWorld, copy: EdgeCopy, version: number): void {
  const state = world.mirror.server.stateAt(resourceOf(copy.name), version)
  const wanted = [...state.values()].filter((held) => wishes[copy.name]?.(held))
  const spell = (all: Iterable<readonly [string, number]>) => [...all].map(([key, at]) => `${key}@${at}`).sort()
  assert.deepEqual(
    spell([...copy.objects].map(([key, held]) => [key, held.version] as const)),
    spell(wanted.map((held) => [held.key, held.version] as const)),
    `${copy.name} at ${version}`,
  )
}

async function live(seed: number): Promise<string[]> {
  const random = seeded(seed)
  await using world = await HubWorld.open()
  const { server } = world.mirror
  const some = <T>(of: readonly T[]): T => of[random(of.length)] as T
  const write = () => {
    const [resource, key] = [some(['pods', 'pods', 'configmaps']), `${some(['a', 'b'])}/k${random(4)}`]
    if (random(4) === 0) server.remove(resource, key)
    else {
      const labels = { app: some(['web', 'db']) }
      server.put(resource, key, { node: some(['n1', 'n2']), labels, value: 'v'.repeat(random(10) === 0 ? 20_000 : 40) })
    }
  }
  for (let at = 0; at < 6; at++) write()
  const edges = ['e0', 'e1', 'e2'].map((name) => {
    const edge = world.edge(name, ...new Set([some(names), some(names), some(names)]))
    edge.claims = (copy) => compare(world, copy, copy.version)
    return edge
  })
  const again = (edge: TestEdge) => {
    if (edge.line === undefined || edge.line.isOver) edge.connect()
    for (const copy of edge.copies) if (copy.refusal !== undefined) edge.resubscribe(copy)
  }
  const steps: readonly (() => void | Promise<void>)[] = [
    write,
    write,
    write,
    () => world.settle(),
    () => world.pass(random(4) === 0 ? 30_000 : 500),
    () => again(some(edges)),
    () => again(some(edges)),
    () => some(edges).line?.lose(),
    () => {
      const { line } = some(edges)
      if (line !== undefined) line.isHeldUp = true
    },
    () => some(edges).line?.release(),
    () => server.cutWatches(),
    () => {
      server.cutWatches()
      for (let at = random(4); at > 0; at--) write()
      server.compact()
    },
    () => server.bookmark(),
  ]
  for (let step = 0; step < stepsPerRun; step++) {
    await some(steps)()
    for (const edge of edges) edge.tick()
  }
  const isDone = () =>
    edges.every(({ copies, line }) => {
      if (line?.isOver !== false) return false
      return copies.every(({ name, version, objects, wish }) => {
        const wanted = [...server.stateAt(resourceOf(name), server.version).values()].filter((one) =>
          wishes[name]?.(one),
        )
        const isEqual = wanted.every(({ key, version: at }) => objects.get(key)?.version === at)
        return version > 0 && wish === 'resume' && isEqual && objects.size === wanted.length
      })
    })
  for (let second = 0; second < 400 && !isDone(); second++) {
    for (const edge of edges) {
      if (edge.line?.isHeldUp === true) edge.line.release()
      again(edge)
      edge.tick()
    }
    await world.pass(500)
  }
  for (const edge of edges) for (const copy of edge.copies) compare(world, copy, server.version)
  return edges.flatMap(({ copies }) => copies.flatMap(({ starts }) => starts))
}

test('[L1, L2] random lives: what edges claim is true, and in the end they have everything', async () => {
  const starts = new Set<string>()
  const lived = async (seed: number) => {
    for (const start of await live(seed)) starts.add(start)
  }
  await liveEach({ file: import.meta.filename, all, live: lived })
  // It was worth it: interests began in each way that a hub which is not put back has.
  if (runs >= 20)
    for (const start of ['snapshot', 'replay', 'compare']) assert.ok(starts.has(start), `none began by ${start}`)
})
