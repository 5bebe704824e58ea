/** What an edge is told again in the bytes that it has is not written again: what it replaced would take its history along. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, stepping } from '../../mirror/client.test-support.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'

/** An edge that was started again, with a client that stands before the last change of `a/kept`, which is read from the disk now. */
async function open(between: (linked: LinkedWorld) => void) {
  const linked = new LinkedWorld()
  linked.put('a/kept', 'first')
  await settle(20)
  const { server, follow } = linked
  const world = await MirrorWorld.open({ server, follow })
  world.begin({}, { standing: true })
  const client = new Client(world, { namespace: 'a' })
  await stepping(world, [client], () => client.idle && client.isRight())
  client.cut()
  const kept = linked.put('a/kept', 'last')
  await world.until(() => world.mirrored({})?.cache?.version === kept)
  world.crash()
  between(linked)
  linked.forget()
  const { frames } = linked.hub.ends.at(-1) ?? assert.fail('there is a link')
  const before = frames.length
  await world.start()
  /** What the edge has asked of its hub since. */
  const asked = () => frames.slice(before).map(({ kind }) => kind)
  return { linked, world, client, kept, asked, [Symbol.asyncDispose]: () => world.stop() }
}

test('[L1] where more differs than digests tell, a client that was away resumes with what did not differ', async () => {
  await using it = await open((linked) => {
    for (let at = 0; at < 1_100; at++) linked.put(`b/${at}`, 'meanwhile')
  })
  const { world, client, asked } = it
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.ok(asked().includes('compare'), 'it was compared')
  assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[L1] what is put back, during a comparison, to what the edge has of it keeps its history: a client that was away resumes', async () => {
  await using it = await open((linked) => void linked.put('a/kept', 'lost'))
  const { linked, world, client, kept, asked } = it
  for (let turn = 0; turn < 10_000 && !asked().includes('compare'); turn++) {
    if (turn % 10 === 0) linked.server.clock.advance(10)
    await settle(1)
  }
  assert.ok(asked().includes('compare'), 'it is being compared')
  linked.restoreBumped(kept)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired], [1, []])
})
