/** Selectors that an edge invents: what they cost the hub is that edge's own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { HubWorld } from './hub.test-support.ts'
import { peerLimits } from './limits.ts'
import { LinkSelections, LookingBudgets } from './selections.ts'

const invented = (count: number, from = 0) => Array.from({ length: count }, (_, at) => `v1/services?x!=v${from + at}&`)

async function openWorld(services: number): Promise<HubWorld> {
  const world = await HubWorld.open()
  for (let at = 0; at < services; at++) world.mirror.server.put('services', `a/s${at}`, { labels: { app: `a${at}` } })
  return world
}

/** Views of services that are there, beside the whole. */
function viewsIn(world: HubWorld): number {
  return (world.sources.figures().find(({ name }) => name === 'v1/services')?.views ?? 1) - 1
}

/** Comes, asks for all of that at once, and takes nothing of what it is sent. No time passes. */
async function asking(world: HubWorld, name: string, interests: readonly string[]) {
  const edge = world.edge(name)
  const line = edge.connect()
  await world.settle()
  edge.session = undefined
  line.isHeldUp = true
  const wanted = { version: 0, wish: 'resume', partial: 0, after: '' } as const
  const asked = interests.map((one, at) => ({ ...wanted, interest: at + 1, name: one }))
  edge.send({ kind: 'subscribe', interests: asked, epoch: 1 })
  await world.settle()
  return line
}

test('[L8] selectors without end: the hub looks at so many objects for an edge, over all its links, and others go on being fed', async () => {
  const services = 2_000
  await using world = await openWorld(services)
  const { server } = world.mirror
  const other = world.edge('n2', 'v1/services')
  other.connect()
  await world.until(() => other.copy().names.length === services)
  const atOnce = Math.ceil(peerLimits.lookingMax / (services + Math.ceil(services / peerLimits.lookedPerUnit)))
  assert.ok(atOnce < 30)
  const line = await asking(world, 'n1', invented(60))
  assert.equal(viewsIn(world), atOnce)
  server.put('services', 'a/s0', { value: 'new' })
  await world.settle()
  line.lose()
  // Neither another link nor other selectors earn anything anew.
  const next = await asking(world, 'n1', invented(60, 100))
  assert.equal(viewsIn(world), atOnce)
  next.lose()
  // Another edge has an allowance of its own, and what it has had made is free.
  const neighbour = await asking(world, 'n3', ['v1/services?!y&'])
  assert.equal(viewsIn(world), atOnce + 1)
  neighbour.lose()
  const again = world.edge('n1', 'v1/services?!y&', ...invented(1, 200))
  again.connect()
  await world.until(() => again.copies[1]?.refusal !== undefined)
  const { reason, retryAfterMs = 0 } = again.copies[1]?.refusal ?? {}
  assert.equal(reason, 'busy')
  assert.ok(retryAfterMs > 0 && retryAfterMs <= 2 * services)
  await world.until(() => again.copy().names.length === services)
  assert.equal(other.copy().value('a/s0'), 'new')
  await world.pass(retryAfterMs)
  again.resubscribe(again.copies[1] as (typeof again.copies)[number])
  await world.until(() => again.copies[1]?.names.length === services)
})

test('[L8] a link has so many interests with selectors, and is told why it has no more; names and namespaces are not among them', async () => {
  await using world = await openWorld(3)
  const { selectionsMax } = peerLimits
  const plain = Array.from({ length: 100 }, (_, at) => [`v1/services@n${at}`, `v1/services@a?&metadata.name=s${at}`])
  const edge = world.edge('n1', ...plain.flat(), ...invented(selectionsMax + 6))
  edge.connect()
  await world.until(() => edge.copies.every(({ version, refusal }) => version > 0 || refusal !== undefined))
  const refused = edge.copies.filter((copy) => copy.refusal !== undefined)
  assert.equal(refused.length, 6)
  for (const { refusal } of refused)
    assert.match(`${refusal?.reason}: ${refusal?.sentence}`, /^limit: this edge has 64 /)
  assert.equal(world.lines.filter((line) => line.includes('edge.refused')).length, 6)
  // One that the edge lets go of makes room.
  const last = refused[0] as (typeof refused)[number]
  edge.session?.unsubscribe(edge.copies.find(({ name }) => name === invented(1)[0])?.number as number)
  edge.resubscribe(last)
  await world.until(() => last.names.length === 3)
  // What no edge has any more, and holds little, is gone within seconds: an edge could invent names without end.
  edge.line?.lose()
  await world.pass(6_000)
  assert.equal(viewsIn(world), -1)
})

test('what selectors of an edge mean is counted as long as no other edge has the same', () => {
  const limits = { ...peerLimits, selectedObjectsMax: 100 }
  const selections = new LinkSelections('n1', new LookingBudgets(fakeClock(), limits))
  const view = (objects: number) => ({ isMade: true, readers: 1, objects })
  const [own, shared] = [view(60), view(60)]
  assert.equal(selections.enter(own), undefined)
  assert.equal(selections.enter(shared), undefined)
  assert.equal(selections.enter(view(0))?.reason, 'limit')
  assert.equal(selections.enter(own), undefined, 'the same once more')
  shared.readers++
  assert.equal(selections.enter(view(0)), undefined)
})
