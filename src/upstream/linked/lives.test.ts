/** Random lives of a mirror over a link: whatever happened, it ends with what the cluster has. AKE_SEED repeats a run that failed. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveEach } from '../../base/lives.test-support.ts'
import { seeded } from '../../base/seeded.test-support.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'

async function live(seed: number): Promise<void> {
  const random = seeded(seed)
  const world = new LinkedWorld()
  const { server, hub } = world
  await settle(20)
  const mirror = await MirrorWorld.open({ server, follow: world.follow, compares: random(2) === 0 })
  const held = () => {
    const { cloud } = mirror.copy.caches.get('v1/pods') ?? {}
    return [...(cloud?.all() ?? [])].map(({ bytes }) => bytes.toString()).sort()
  }
  const versions: number[] = []
  mirror.begin({}, { standing: true })
  for (let step = 0; step < 60; step++) {
    const what = random(40)
    const key = `${'abc'[random(3)]}/${random(8)}`
    if (what < 20) versions.push(world.put(key, `${step} ${'x'.repeat(random(20) === 0 ? 30_000 : 10)}`))
    else if (what < 26) world.remove(key)
    else if (what < 29) world.cut()
    else if (what < 31) world.forget()
    else if (what < 33) hub.progress()
    else if (what === 33 && versions.length > 5) world.restore(versions.splice(-random(5) - 1)[0] as number)
    else if (what === 34) await mirror.reopen()
    else if (what === 35) hub.drain(2_000)
    else if (what === 36 && versions.length > 5) world.restoreUnseen(versions.splice(-random(5) - 1)[0] as number)
    else await mirror.pass(random(3_000))
    if (random(3) === 0) await settle(random(10))
  }
  // Two pasts that both stand at one version differ without a sign until the cluster moves on, as clusters do.
  do world.put('a/0', 'the last')
  while (server.version <= (mirror.copy.caches.get('v1/pods')?.version ?? 0))
  const equal = () => JSON.stringify(held()) === JSON.stringify([...server.listed('pods').values()].sort())
  await mirror.until(equal).catch(() => assert.fail('the copy is not what the cluster has'))
  assert.equal(mirror.comparison.found, 0, 'differences without a sign')
  await mirror.stop()
}

test('[L1, L7] random lives of a mirror over a link end with what the cluster has', () =>
  liveEach({ file: import.meta.filename, all: 200, live }))
