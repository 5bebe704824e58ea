/**
 * Everything that happens to an edge in the field, one trouble at a time: its line is cut in each way, its API server ends,
 * restarts and forgets its history, another cluster takes its place, it ends itself. Each leaves the line whole and everything running.
 */
import { randomUUID } from 'node:crypto'
import { until } from '../../src/base/until.test-support.ts'
import type { Mode } from '../link.ts'
import { type EdgeStatus, type Site, untilReachable } from '../site.ts'
import { disk, folders } from './disks.ts'
import { during, rest, type Trouble } from './trouble.ts'

/** A half-open or silent line is noticed by the pings of a quiet connection and by the probe: seconds, never minutes. */
const noticedMsMax = 20_000
/** An idle link asks every 30 s, to cost next to nothing: within 5 s only while something waits for the other side. */
const noticedBehindHubMsMax = 50_000

function cut(name: string, mode: Mode): Trouble {
  return {
    name: `the line: ${name}`,
    run: (site, random) =>
      during(site, mode, async () => {
        // Sometimes it is over before anybody notices, sometimes everybody must have noticed (a half-open line is the one
        // that others take for whole).
        if (random.below(3) === 0) await rest(site, 200 + random.below(1_500))
        else {
          if (mode.kind !== 'slow')
            await untilReachable(site, false, site.hubs.length === 0 ? noticedMsMax : noticedBehindHubMsMax)
          await rest(site, 500 + random.below(2_500))
        }
      }),
  }
}

function ended(how: 'kill' | 'orderly', offline: boolean): Trouble {
  const restartAll = async (site: Site) => {
    await Promise.all(site.edges().map((edge) => edge.restart(how)))
  }
  return {
    name: `ake edge ended by ${how === 'kill' ? 'kill -9' : 'SIGTERM'} ${offline ? 'while offline' : 'while online'}`,
    run: async (site, random) => {
      if (!offline) return await restartAll(site)
      const mode = random.of<Mode>([{ kind: 'refuse' }, { kind: 'blackhole' }, { kind: 'reset' }])
      await during(site, mode, async () => {
        await rest(site, random.below(3_000))
        await restartAll(site)
        await rest(site, random.below(3_000))
      })
    },
  }
}

const cuts: readonly Trouble[] = [
  cut('refused', { kind: 'refuse' }),
  cut('refused, connections destroyed', { kind: 'refuse', end: 'destroy' }),
  cut('reset', { kind: 'reset' }),
  cut('silent, forgotten', { kind: 'blackhole' }),
  cut('silent, resumed', { kind: 'blackhole', resume: true }),
  cut('half-open, nothing comes down', { kind: 'halfopen', lost: 'down' }),
  cut('half-open, nothing goes up', { kind: 'halfopen', lost: 'up' }),
  cut('half-open down, resumed', { kind: 'halfopen', lost: 'down', resume: true }),
  cut('half-open up, resumed', { kind: 'halfopen', lost: 'up', resume: true }),
  cut('slow', {
    kind: 'slow',
    up: { bytesPerSecond: 20_000, delayMs: 150 },
    down: { bytesPerSecond: 60_000, delayMs: 150 },
  }),
]

const ends: readonly Trouble[] = [
  ended('kill', false),
  ended('orderly', false),
  ended('kill', true),
  ended('orderly', true),
]

const cloud: readonly Trouble[] = [
  { name: 'the API server ended by kill -9', run: (site) => site.oracle.restart({ only: ['apiserver'] }) },
  {
    name: 'the API server ended in order',
    run: (site) => site.oracle.restart({ only: ['apiserver'], how: 'orderly' }),
  },
  {
    name: 'history expired under open watches',
    run: async (site) => {
      await site.oracle.expire()
    },
  },
  {
    name: 'history expired while the line is cut',
    run: (site, random) =>
      during(site, random.of<Mode>([{ kind: 'refuse' }, { kind: 'blackhole' }]), async () => {
        await site.oracle.expire()
        await rest(site, random.below(1_500))
      }),
  },
]

/** Every connection is made anew: over each the edge asks which cluster it leads to. */
async function redial(site: Site): Promise<void> {
  await site.link.set('reset')
  await site.link.set('up')
}

export function untilEdges(
  site: Site,
  what: string,
  holds: (cluster: EdgeStatus['cluster']) => boolean,
): Promise<unknown> {
  const look = async () =>
    (await Promise.all(site.edges().map((edge) => edge.status()))).every((one) => holds(one.cluster))
  return until(look, what, { withinMs: 2 * noticedMsMax, everyMs: 100, signal: site.signal })
}

const moment: Trouble = {
  name: 'another cluster answers for a moment',
  run: async (site) => {
    const known = await site.oracle.reidentify(randomUUID())
    await redial(site)
    await untilEdges(site, 'the other cluster is noticed', ({ other }) => other !== undefined)
    await site.oracle.reidentify(known)
    await untilReachable(site, true, noticedMsMax)
    await untilEdges(site, 'the known cluster is believed in', ({ uid }) => uid === known)
  },
}

/**
 * Its copy begins anew, and each client lists once. And once more, where its next watch went past an edge that did not know
 * the resources yet: it saw what the edge then came to know by a list.
 */
const otherCluster: Trouble = {
  name: 'another cluster',
  relists: 2,
  run: async (site) => {
    const next = randomUUID()
    await site.oracle.reidentify(next)
    await redial(site)
    await untilEdges(site, 'the other cluster is believed in', ({ uid }) => uid === next)
    await untilReachable(site, true, noticedMsMax)
  },
}

/** Hubs come back to their edges, which go to the other one meanwhile, where there is one. */
function hubEnded(how: 'kill' | 'orderly', which: 'one' | 'all'): Trouble {
  return {
    name: `${which === 'one' ? 'a hub' : 'all hubs'} ended by ${how === 'kill' ? 'kill -9' : 'SIGTERM'}`,
    run: async (site, random) => {
      const hubs = which === 'all' ? site.hubs : [random.of(site.hubs)]
      await Promise.all(hubs.map((hub) => hub.restart(how)))
    },
  }
}

/** The line leads to one of the hubs from here on, and what was connected is cut. */
const moved: Trouble = {
  name: 'edges move to another hub',
  run: async (site, random) => {
    const { port } = random.of(site.hubs)
    site.link.lead({ host: '127.0.0.1', port })
    await site.link.set('reset')
    await site.link.set('up')
    await rest(site, 1_000 + random.below(2_000))
    site.link.lead(...site.hubs.map((hub) => ({ host: '127.0.0.1', port: hub.port })))
  },
}

const hubs: readonly Trouble[] = [
  hubEnded('kill', 'one'),
  hubEnded('orderly', 'one'),
  hubEnded('kill', 'all'),
  hubEnded('orderly', 'all'),
  moved,
]

/** What no client notices: none lists again. */
export const unnoticed: readonly Trouble[] = [...cuts, ...ends, disk, ...folders, moment, ...cloud]

/** The same of edges behind hubs. Which cluster it is they are told by those, who see the API server and not the line. */
export const unnoticedBehindHubs: readonly Trouble[] = [...cuts, ...ends, disk, ...folders, ...hubs, ...cloud]

/** What a hub makes another thing of. */
export const hubTroubles: readonly Trouble[] = [...cuts, ...hubs, ...cloud]

export const troubles: readonly Trouble[] = [...unnoticed, otherCluster]

/** What a short run can do many of: those of the API server take half a minute each on a busy machine. */
export const quickTroubles: readonly Trouble[] = [...cuts, ...ends, disk, ...folders, moment, otherCluster]
