/** A hub dies and another takes its edges over: nobody lists again, writes go on. */
import type { Findings } from '../findings.ts'
import { creatorOf } from '../rights/objects.ts'
import { HeldWatch, seconds, untilFed } from './callers.ts'
import { checkWhoami } from './kubelet.ts'
import { nodes, shop, shopSlices, slice } from './objects.ts'
import type { HubbedWorld } from './world.ts'

const configMaps = `/api/v1/namespaces/${shop}/configmaps`
/** From the death of a hub to a write that goes through another, on a busy machine. */
const writesMsMax = 20_000

export async function checkTakeover(world: HubbedWorld, findings: Findings): Promise<void> {
  for (const name of nodes) await untilFed(world, name)
  const watches = await Promise.all(nodes.map((name) => HeldWatch.open(world, name)))
  const before = await Promise.all(nodes.map((name) => world.kept(name, 'endpointslices')))
  const startedMs = performance.now()
  await world.hubs[0].end('kill')
  // As a load balancer does once it notices.
  for (const link of Object.values(world.links)) link.lead({ host: '127.0.0.1', port: world.hubs[1].port })
  await world.until('a write goes through the other hub', () => isWritten(world), writesMsMax)
  findings.note(`a write went through the other hub ${seconds(startedMs)} s after the first one died`)
  await checkWhoami(world.at('edge-1', 'kubelet edge-1'), findings, 'edge-1')
  await creatorOf(world.oracle)(shopSlices, slice('after-the-hub'))
  for (const [at, name] of nodes.entries()) {
    const watch = watches[at] as HeldWatch
    await world.until(`${name} is fed by the other hub`, async () => watch.events.includes('ADDED after-the-hub'))
    findings.equal(watch.events, ['ADDED after-the-hub'], `${name}: what a watch tells over both hubs`)
    findings.equal(watch.isOver, false, `${name}: the watch goes on`)
    await world.untilState(name, 'endpointslices', 'synced')
    const [was, is] = [before[at]?.resourceVersion ?? 0, (await world.kept(name, 'endpointslices'))?.resourceVersion]
    findings.check(is !== undefined && is > was, `${name}: versions go on`, [was, is])
    watch.close()
  }
  findings.note(`both edges were fed by the other hub ${seconds(startedMs)} s after the first one died`)
}

/** A new name each time: one that seemed to fail may have been written. */
async function isWritten(world: HubbedWorld): Promise<boolean> {
  const metadata = { generateName: 'taken-over-' }
  const told = await world.at('edge-1', 'keeper').ask(configMaps, { method: 'POST', body: { metadata } })
  return told.status === 201
}
