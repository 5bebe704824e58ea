/**
 * How much later does an event come to a client of an edge behind a hub than to one that watches the API server itself? The same
 * events are watched on both ways by one process; all the others are processes of their own, on one machine.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bench, Figure, Question } from '../bench.ts'
import { at, differences, openWatch, scopes, untilArrived } from '../edge/watch.ts'
import { makePods, podCount } from '../fixture.ts'
import { writeSteadily } from '../writer.ts'
import { newestVersion, startHubSite, untilCurrent } from './site.ts'

const rates = [5, 20, 100]
const sendForMs = 8_000
const everything = scopes[1]

export const hublatency: Question = {
  name: 'hublatency',
  ask: async ({ targets, say }: Bench) => {
    const real = (await targets('kube-apiserver'))[0]
    if (real === undefined) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-hublatency-'))
    const site = await startHubSite({ dir, at: real })
    try {
      const edge = await site.edge('edge-1', ['--mirror', 'pods'])
      await untilCurrent(edge, await newestVersion(real))
      const direct = await openWatch(real, everything)
      const through = await openWatch(edge.ake, everything)
      const pods = makePods(podCount)
      const send = (perSecond: number) => writeSteadily({ at: real, pods, perSecond, forMs: sendForMs })
      // Compiles what they run.
      await untilArrived([direct, through], await send(rates.at(-1)!))
      const figures: Figure[] = []
      for (const perSecond of rates) {
        for (const { late } of [direct, through]) late.splice(0)
        await untilArrived([direct, through], await send(perSecond))
        const sorted = (all: readonly number[]) => [...all].sort((one, other) => one - other)
        const [own, theirs] = [sorted(through.late), sorted(direct.late)]
        const added = differences(direct.late, through.late)
        say(
          `  ${perSecond} events/s: p50 ${at(own, 0.5).toFixed(2)} ms, direct ${at(theirs, 0.5).toFixed(2)}; ` +
            `later by ${at(added, 0.5).toFixed(2)} ms, p99 ${at(added, 0.99).toFixed(2)}`,
        )
        const name = `hub, from a write to a client of an edge, ${perSecond} events/s`
        const median = { ake: at(own, 0.5), 'plain watch': at(theirs, 0.5) }
        figures.push(
          { name: `${name}, p50`, unit: 'ms', measured: median },
          { name: `${name}, p50`, unit: 'ms later', measured: { ake: at(added, 0.5) }, atMost: 5 },
          { name: `${name}, p99`, unit: 'ms later', measured: { ake: at(added, 0.99) } },
        )
      }
      direct.close()
      through.close()
      return figures
    } finally {
      await site.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}
