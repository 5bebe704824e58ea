/** What an edge behind a hub costs its line, counted there: TLS and WebSocket included, TCP and IP not. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Findings } from '../findings.ts'
import type { Stats } from '../link.ts'
import type { NodeName } from './objects.ts'
import type { HubbedWorld } from './world.ts'

/** As long as nothing more has come, what was begun is done. */
const quietMs = 4_000
const lookEveryMs = 250
const idleMs = 60_000

export async function countFirstStart(world: HubbedWorld, findings: Findings, name: NodeName): Promise<void> {
  const link = world.links[name]
  link.resetStats()
  await world.start(name)
  await world.untilCloudIs(name, 'reachable')
  await untilQuiet(() => link.stats())
  findings.note(`first start of ${name}, documents and what its node needs: ${shown(link.stats())}`)
}

/** Nobody asks for anything meanwhile. */
export async function countIdle(world: HubbedWorld, findings: Findings, name: NodeName): Promise<void> {
  const link = world.links[name]
  await untilQuiet(() => link.stats())
  const before = link.stats()
  await pause(idleMs, undefined, { signal: world.context.signal })
  findings.note(`an idle minute of ${name}: ${shown(less(link.stats(), before))}`)
}

/** The connection breaks and is made again, and nothing has changed. */
export async function countReconnect(world: HubbedWorld, findings: Findings, name: NodeName): Promise<void> {
  const link = world.links[name]
  await untilQuiet(() => link.stats())
  link.resetStats()
  await link.set('reset')
  await world.untilCloudIs(name, 'unreachable')
  await link.set('up')
  await world.untilCloudIs(name, 'reachable')
  await untilQuiet(() => link.stats())
  const { connections } = link.stats()
  findings.note(`a reconnection of ${name} without a change (${connections} connections): ${shown(link.stats())}`)
}

async function untilQuiet(look: () => Stats): Promise<void> {
  let [last, sinceMs] = [0, performance.now()]
  while (performance.now() - sinceMs < quietMs) {
    await pause(lookEveryMs)
    const { bytesUp, bytesDown } = look()
    // An idle link is asked now and then.
    if (bytesUp + bytesDown <= last + 200) continue
    last = bytesUp + bytesDown
    sinceMs = performance.now()
  }
}

function less(now: Stats, before: Stats): Pick<Stats, 'bytesUp' | 'bytesDown'> {
  return { bytesUp: now.bytesUp - before.bytesUp, bytesDown: now.bytesDown - before.bytesDown }
}

function shown({ bytesUp, bytesDown }: Pick<Stats, 'bytesUp' | 'bytesDown'>): string {
  return `${bytesUp} bytes up, ${bytesDown} down`
}
