/** A hub and its edges over one mirror: what reaches whom, in which form, and how links end. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { planFields } from '../../kube/object.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { HubWorld, type TestEdge } from './hub.test-support.ts'
import { peerLimits } from './limits.ts'

const reasonOf = (edge: TestEdge) => edge.ended?.reason
const big = hash('sha512', 'anything').repeat(30)

test('[L1] edges hold what their interests select, from a first sync on and with every change', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  for (const at of [1, 2, 3]) server.put('pods', `a/p${at}`, { node: `n${at % 2}`, value: 'old' })
  server.put('pods', 'b/q', { node: 'n1', value: 'old' })
  const own = world.edge('n1', 'v1/pods?&spec.nodeName=n1', 'v1/pods@a', 'v1/pods@b?&metadata.name=q')
  const all = world.edge('n0', 'v1/pods')
  own.connect()
  all.connect()
  await world.until(() => own.copies.every(({ version }) => version > 0) && all.copy().version > 0)
  assert.deepEqual(
    own.copies.map(({ names }) => names),
    [['a/p1', 'a/p3', 'b/q'], ['a/p1', 'a/p2', 'a/p3'], ['b/q']],
  )
  assert.deepEqual(all.copy().names, ['a/p1', 'a/p2', 'a/p3', 'b/q'])

  server.put('pods', 'a/p1', { node: 'n1', value: 'new' })
  server.put('pods', 'a/p3', { node: 'n0', value: 'moved' })
  server.remove('pods', 'a/p2')
  server.put('pods', 'b/q', { node: 'n1', value: 'newer' })
  await world.settle()
  assert.deepEqual(
    own.copies.map(({ names }) => names),
    [['a/p1', 'b/q'], ['a/p1', 'a/p3'], ['b/q']],
  )
  assert.equal(own.copy().value('a/p1'), 'new')
  assert.equal(own.copies[2]?.value('b/q'), 'newer')
  assert.deepEqual(all.copy().names, ['a/p1', 'a/p3', 'b/q'])
  // One list and one watch for all of it.
  assert.equal(server.watches.size, 1)
})

test('[L5] an event reaches the edges it concerns, an update as a delta, and marks reach the others once a minute', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p1', { node: 'n1', value: big })
  server.put('pods', 'a/p2', { node: 'n2', value: big })
  const [one, two] = [world.edge('n1', 'v1/pods?&spec.nodeName=n1'), world.edge('n2', 'v1/pods?&spec.nodeName=n2')]
  one.connect()
  two.connect()
  await world.until(() => one.copy().version > 0 && two.copy().version > 0)
  one.received.length = two.received.length = 0
  const version = server.put('pods', 'a/p1', { node: 'n1', value: `${big}y` })
  await world.settle()
  assert.equal(one.copy().value('a/p1'), `${big}y`)
  const [events] = one.received.filter((frame) => frame.kind === 'events')
  assert.ok((events?.events[0]?.change.length ?? big.length) < 200)
  assert.deepEqual(two.received, [])
  await world.pass(61_000)
  assert.equal(two.copy().version, version)
})

test('[L5] an edge that was away is sent what changed meanwhile, and a hub that just began compares', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  for (let at = 0; at < 40; at++) server.put('pods', `a/p${at}`, { value: big })
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  edge.line?.lose()
  server.put('pods', 'a/p7', { value: 'new' })
  server.remove('pods', 'a/p8')
  await world.settle()
  edge.connect()
  await world.settle()
  assert.deepEqual(edge.copy().starts, ['snapshot', 'replay'])
  assert.equal(edge.copy().value('a/p7'), 'new')
  assert.equal(edge.copy().names.length, 39)

  await using other = await HubWorld.open()
  for (let at = 0; at < 40; at++) if (at !== 8) other.mirror.server.put('pods', `a/p${at}`, { value: big })
  const moved = other.edge('n1', 'v1/pods')
  Object.assign(moved.copy(), { version: 10, objects: edge.copy().objects })
  moved.connect()
  await other.until(() => moved.copy().wish === 'resume' && moved.copy().version > 10)
  assert.deepEqual(moved.copy().starts, ['compare'])
  assert.equal(moved.copy().value('a/p7'), big)
})

test('[L2] an edge that takes nothing is conflated within its limit and delays no other', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p', { value: 'first' })
  const [slow, quick] = [world.edge('n1', 'v1/pods'), world.edge('n2', 'v1/pods')]
  slow.connect()
  quick.connect()
  await world.until(() => slow.copy().version > 0 && quick.copy().version > 0)
  const line = slow.line
  assert.ok(line !== undefined)
  line.isHeldUp = true
  for (let round = 0; round < 160; round++) {
    server.put('pods', `a/p${round % 40}`, { value: `${round} ${hash('sha512', `${round}`).repeat(30)}` })
    await world.pass(5)
  }
  await world.pass(20)
  assert.equal(quick.copy().names.length, 41)
  assert.ok(line.bufferedMost < 512 * 1024, `${line.bufferedMost} bytes`)
  const [figures] = world.peers.figures()
  assert.ok((figures?.heldBytes ?? 0) < 600 * 1024)
  assert.equal(slow.copy().names.length, 1)
  line.release()
  await world.settle()
  await world.until(() => slow.copy().names.length === 41)
  for (let at = 0; at < 40; at++) assert.equal(slow.copy().value(`a/p${at}`), quick.copy().value(`a/p${at}`))
})

test('[L1] a difference that the hub found by a list is compared by edges that are there and by those that come', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  for (const name of ['a/p1', 'a/p2', 'a/p3']) server.put('pods', name, { value: 'old' })
  const [here, away] = [world.edge('n1', 'v1/pods'), world.edge('n2', 'v1/pods')]
  here.connect()
  away.connect()
  await world.until(() => here.copy().version > 0 && away.copy().version > 0)
  away.line?.lose()
  server.reachability.set('unreachable')
  for (const watch of server.watches) watch.body.fail(new Unreachable('cut', true))
  await world.pass(1_000)
  server.remove('pods', 'a/p1')
  server.put('pods', 'a/p4', { value: 'new' })
  server.compact()
  server.reachability.set('reachable')
  await world.until(() => here.copy().names.join() === 'a/p2,a/p3,a/p4')
  away.connect()
  await world.until(() => away.copy().names.join() === 'a/p2,a/p3,a/p4')
  for (const edge of [here, away]) assert.deepEqual(edge.copy().starts, ['snapshot', 'compare'])
})

test('[L8] what cannot be had is refused to those who asked, with a reason, and to nobody else', async () => {
  await using world = await HubWorld.open()
  const { server, unknown } = world.mirror
  unknown.add('leases')
  server.fault = ({ resource }) => (resource === 'secrets' ? { kind: 'status', code: 403 } : undefined)
  server.put('pods', 'a/p')
  const names = [
    'v1/pods',
    'v1/secrets@a',
    'coordination.k8s.io/v1/leases',
    'v1/events',
    'v1/pods?&spec.color=red',
    'pods',
    'v1/nodes@a',
  ]
  const edge = world.edge('n1', ...names)
  const other = world.edge('n2', 'v1/pods')
  edge.connect()
  other.connect()
  await world.until(() => edge.copies.every(({ version, refusal }) => version > 0 || refusal !== undefined))
  await world.until(() => other.copy().version > 0)
  const reasons = edge.copies.map(({ refusal }) => refusal?.reason)
  assert.deepEqual(reasons, [undefined, 'forbidden', 'unknown', 'other', 'other', 'unknown', 'other'])
  assert.match(edge.copies[1]?.refusal?.sentence ?? '', /does not let the hub read v1\/secrets@a/)
  assert.equal(edge.ended, undefined)
  // As soon as the hub may, who asks again has it.
  server.fault = () => undefined
  server.put('secrets', 'a/s')
  await world.pass(60_000)
  const secrets = edge.copies[1]
  assert.ok(secrets !== undefined)
  edge.resubscribe(secrets)
  await world.until(() => secrets.version > 0)
  assert.deepEqual(secrets.names, ['a/s'])
})

test('what an edge may not have, when it asks and later, is in the log, each once', async () => {
  let allowed = ['v1/pods']
  const rights = () => ({
    judge: async (_: object, { name }: { readonly name: string }) =>
      allowed.includes(name) ? undefined : { reason: 'forbidden' as const, retryAfterMs: 0, sentence: 'not this one' },
    left: () => undefined,
  })
  await using world = await HubWorld.open({ rights })
  const edge = world.edge('n1', 'v1/pods', 'v1/secrets@a', 'v1/configmaps@a', 'pods')
  edge.connect()
  await world.until(() => edge.copies.every(({ version, refusal }) => version > 0 || refusal !== undefined))
  const told = () =>
    world.lines
      .filter((line) => line.includes(' warn edge.refused '))
      .map((line) => line.split(' ').slice(3, 6).join(' '))
  const first = ['v1/secrets@a', 'v1/configmaps@a', 'pods']
  assert.deepEqual(told().sort(), first.map((name) => `edge=n1 from=10.0.0.1 interest=${name}`).sort())
  for (const copy of edge.copies.slice(1)) edge.resubscribe(copy)
  await world.settle()
  assert.equal(told().length, 3)
  allowed = []
  await world.pass(60_000)
  assert.ok(told().includes('edge=n1 from=10.0.0.1 interest=v1/pods'))
})

test('policies that change a thousand times have an edge judged a few times, and by the last of them', async () => {
  let version = 0
  let judged = 0
  const seen: number[] = []
  const rights = () => ({
    judge: async (_: object, { name }: { readonly name: string }) => {
      judged++
      const at = version
      await new Promise(setImmediate)
      if (name === 'v1/pods') seen.push(at)
      return undefined
    },
    left: () => undefined,
  })
  const policies = { isKnown: true, rulesOf: () => ({ trusts: false, offline: {}, version: version }) }
  await using world = await HubWorld.open({ rights, policies })
  const edge = world.edge('n1', 'v1/pods', 'v1/configmaps@a', 'v1/services')
  edge.connect()
  await world.until(() => edge.copies.every((copy) => copy.version > 0))
  judged = 0
  for (let at = 0; at < 1_000; at++) {
    version++
    void world.peers.policed()
  }
  await world.settle()
  await world.until(() => seen.at(-1) === 1_000)
  assert.ok(judged < 50, String(judged))
})

test('a source is followed while an edge wants it and some minutes longer, Secrets by namespace', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('secrets', 'a/s')
  server.put('secrets', 'b/t')
  const edge = world.edge('n1', 'v1/secrets@a?&metadata.name=s', 'v1/secrets@a?&metadata.name=none')
  edge.connect()
  await world.until(() => edge.copies.every(({ version }) => version > 0))
  const asked = server.requests.filter(({ what }) => what === 'list' || what === 'watch')
  assert.deepEqual([...new Set(asked.map(({ path }) => path))], ['/api/v1/namespaces/a/secrets'])
  assert.deepEqual(world.sources.figures(), [{ name: 'v1/secrets@a', readers: 2, views: 2 }])
  edge.line?.lose()
  await world.pass(120_000)
  assert.deepEqual(world.sources.figures(), [{ name: 'v1/secrets@a', readers: 0, views: 0 }])
  assert.equal(server.watches.size, 1)
  await world.pass(240_000)
  assert.deepEqual(world.sources.figures(), [])
  assert.equal(server.watches.size, 0)
})

test('[L7] a cluster that was put back: readers ask again, and after the new epoch all is compared', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  for (const name of ['a/p1', 'a/p2']) server.put('pods', name, { value: 'old' })
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  const before = server.version
  server.put('pods', 'a/p3', { value: 'lost' })
  await world.settle()
  const lost = edge.copy().version
  server.reachability.set('unreachable')
  for (const watch of server.watches) watch.body.fail(new Unreachable('cut', true))
  await world.pass(1_000)
  server.restore(before)
  server.reachability.set('reachable')
  await world.until(() => edge.copy().refusal !== undefined)
  assert.equal(edge.copy().refusal?.reason, 'busy')
  // Until the hub says that it was put back, the edge waits and keeps what it has.
  await world.until(() => world.mirror.mirrored({})?.readable !== undefined)
  edge.resubscribe(edge.copy())
  await world.settle()
  assert.equal(edge.copy().starts.at(-1), 'wait')
  assert.deepEqual(edge.copy().names, ['a/p1', 'a/p2', 'a/p3'])
  world.peers.lost(2, lost)
  await world.until(() => edge.copy().names.length === 2 && edge.copy().version > 0)
  assert.equal(edge.epoch, 2)
})

test('[L7] nobody is told of what may be of a lost past before it was compared, also while the API server is away', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p1', { value: 'old' })
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  server.reachability.set('unreachable')
  for (const watch of server.watches) watch.body.fail(new Unreachable('cut', true))
  world.mirror.interests.doubt()
  world.sources.doubted()
  await world.settle()
  assert.match(edge.copy().refusal?.sentence ?? '', /cluster was put back/)
  edge.resubscribe(edge.copy())
  await world.settle()
  assert.equal(edge.copy().refusal?.reason, 'busy')
  assert.deepEqual(edge.copy().starts, ['snapshot'])
  server.reachability.set('reachable')
  await world.until(() => world.mirror.mirrored({})?.readable !== undefined)
  edge.resubscribe(edge.copy())
  await world.until(() => edge.copy().refusal === undefined)
  assert.equal(edge.copy().starts.length, 2)
})

test('what the hub itself may not read any more leaves its mirror, and is given to edges again once it may', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p1')
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  world.mirror.confirms = true
  server.fault = ({ resource }) => (resource === 'pods' ? { kind: 'status', code: 403 } : undefined)
  server.cutWatches()
  // It asks again and again, as edges do.
  for (let minute = 0; minute < 20; minute++) {
    await world.pass(60_000)
    edge.resubscribe(edge.copy())
  }
  await world.settle()
  assert.equal(edge.copy().refusal?.reason, 'forbidden')
  assert.equal(world.mirror.copy.caches.has('v1/pods'), false)
  server.put('pods', 'a/p2')
  server.fault = () => undefined
  await world.pass(60_000)
  edge.resubscribe(edge.copy())
  await world.until(() => edge.copy().names.length === 2)
})

test('[L8] the certificate says who an edge is, and of two links of one name the newer certificate stays', async () => {
  await using world = await HubWorld.open()
  const at = world.mirror.server.clock.now() + 1e9
  const liar = world.edge('n1', 'v1/pods')
  liar.hello = 'n2'
  liar.connect()
  await world.settle()
  assert.equal(liar.ended?.reason, 'identity')
  const [first, second, third, old] = [0, 1, 2, 3].map(() => world.edge('n1', 'v1/pods'))
  first?.connect({ issuedAtMs: at })
  await world.settle()
  second?.connect({ issuedAtMs: at })
  await world.settle()
  assert.equal(first?.ended?.reason, 'replaced')
  assert.match(first?.ended?.sentence ?? '', /same certificate/)
  third?.connect({ issuedAtMs: at + 1, endsAtMs: at })
  await world.settle()
  assert.equal(world.peers.size, 2, 'what the older was asked may be answered')
  await world.pass(peerLimits.handOverMsMax)
  assert.match(second?.ended?.sentence ?? '', /newer certificate/)
  old?.connect({ issuedAtMs: at })
  await world.settle()
  assert.equal(old?.ended?.reason, 'replaced')
  assert.equal(third?.ended, undefined)
  assert.equal(world.peers.size, 1)
  assert.ok(world.lines.some((line) => line.includes('warn edge.left') && line.includes('reason=replaced')))
})

test('[L8] a link that a newer certificate at another replica replaces goes on until its edge has moved, one that the same replaces ends at once', async () => {
  await using world = await HubWorld.open()
  for (const isHandOver of [true, false]) {
    const edge = world.edge('n1', 'v1/pods')
    const { peer } = edge.connect({ issuedAtMs: 1 })
    await world.settle()
    world.peers.replace(peer, { sentence: 'another has come', isHandOver })
    await world.settle()
    assert.equal(world.peers.has('n1'), false, 'it counts as gone')
    if (isHandOver) {
      await world.pass(peerLimits.handOverMsMax - 100)
      assert.equal(reasonOf(edge), undefined, 'what it was asked may be answered')
      await world.pass(100)
    }
    assert.equal(reasonOf(edge), 'replaced')
    assert.equal(world.peers.size, 0)
  }
})

test('[L8] at one hub a newer certificate hands over whatever address it comes from, as behind a balancer', async () => {
  await using world = await HubWorld.open()
  const [before, after] = [world.edge('n1', 'v1/pods'), world.edge('n1', 'v1/pods')]
  before.connect({ issuedAtMs: 1 })
  await world.settle()
  after.connect({ issuedAtMs: 2, from: '10.0.0.2' })
  await world.settle()
  assert.equal(reasonOf(before), undefined)
  await world.pass(peerLimits.handOverMsMax)
  assert.equal(reasonOf(before), 'replaced')
})

test('[L23] a Node that is deleted, or revoked, while its edge moves from one link to the next ends both, and no other', async () => {
  let revoked = false
  const hooks = { revoked: ({ name }: { name: string }) => (revoked && name === 'n1' ? 'it was revoked' : undefined) }
  for (const way of ['other', 'identity']) {
    await using world = await HubWorld.open({ hooks })
    const [before, after, other] = [
      world.edge('n1', 'v1/pods'),
      world.edge('n1', 'v1/pods'),
      world.edge('n2', 'v1/pods'),
    ]
    before.connect({ issuedAtMs: 1 })
    other.connect()
    await world.settle()
    after.connect({ issuedAtMs: 2 })
    await world.settle()
    assert.equal(world.peers.size, 3, 'both are there')
    revoked = way === 'identity'
    if (revoked) await world.peers.judgeCertificates()
    else world.peers.end('n1', 'its Node is gone')
    await world.settle()
    assert.deepEqual([before, after, other].map(reasonOf), [way, way, undefined])
    assert.equal(world.peers.size, 1)
  }
})

test('[L23] what was revoked ends the link that there is, at once, and refuses the next one, also between its handshake and its hello', async () => {
  const revoked = new Set<string>()
  const told: string[] = []
  await using world = await HubWorld.open({
    hooks: {
      revoked: ({ name }) => (revoked.has(name) ? `"${name}" was revoked` : undefined),
      refused: ({ name }) => void told.push(name),
    },
  })
  world.mirror.server.put('pods', 'a/p')
  const [stolen, other] = [world.edge('n1', 'v1/pods'), world.edge('n2', 'v1/pods')]
  stolen.connect()
  other.connect()
  await world.until(() => stolen.copy().version > 0 && other.copy().version > 0)
  revoked.add('n1')
  await world.peers.judgeCertificates()
  await world.settle()
  assert.deepEqual([stolen.ended?.reason, stolen.ended?.sentence], ['identity', '"n1" was revoked'])
  assert.equal(other.ended, undefined)
  assert.deepEqual(told, ['n1'])
  stolen.connect()
  await world.settle()
  assert.equal(reasonOf(stolen), 'identity')
  revoked.clear()
  stolen.connect()
  await world.settle()
  assert.equal(reasonOf(stolen), undefined)
  world.peers.end('n1', 'its Node is gone')
  await world.settle()
  assert.equal(reasonOf(stolen), 'other')
  stolen.connect()
  await world.settle()
  assert.equal(reasonOf(stolen), undefined)
})

test('a link ends when its certificate does, also when the clock was set meanwhile', async () => {
  await using world = await HubWorld.open()
  const { clock } = world.mirror.server
  const [soon, later] = [world.edge('n1'), world.edge('n2')]
  soon.connect({ endsAtMs: clock.now() + 10_000 })
  later.connect({ endsAtMs: clock.now() + 3_600_000 })
  await world.pass(9_000)
  assert.equal(reasonOf(soon), undefined)
  await world.pass(2_000)
  assert.equal(reasonOf(soon), 'identity')
  clock.jump(3_600_000)
  for (let at = 0; at < 60 && later.ended === undefined; at++) {
    await world.pass(1_000)
    later.tick()
  }
  assert.equal(later.ended?.reason, 'identity')
})

test('[L3] an edge that is silent while something waits for it is cut', async () => {
  await using world = await HubWorld.open()
  world.mirror.server.put('pods', 'a/p', { value: 'old' })
  const edge = world.edge('n1', 'v1/pods')
  const line = edge.connect()
  await world.until(() => edge.copy().version > 0)
  line.isHeldUp = true
  world.mirror.server.put('pods', 'a/p', { value: 'new' })
  await world.pass(4_000)
  assert.equal(world.peers.size, 1)
  await world.pass(2_000)
  assert.equal(line.closed?.code, 'cut')
  assert.equal(world.peers.size, 0)
})

test('[L8] bytes that are no frame close their link and no other', async () => {
  await using world = await HubWorld.open()
  const [bad, good] = [world.edge('n1', 'v1/pods'), world.edge('n2', 'v1/pods')]
  const line = bad.connect()
  good.connect()
  await world.until(() => good.copy().version > 0)
  line.handlers?.frame(Buffer.from([0x3f, 1, 2]))
  await world.settle()
  assert.equal(line.closed?.code, 'fault')
  assert.equal(bad.ended?.reason, 'frame')
  assert.equal(world.peers.size, 1)
  assert.equal(good.line?.closed, undefined)
})

test('[L8] a mistake of the hub with one edge ends its link, is told, and stops neither others nor the mirror', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p', { value: 'old' })
  const [unlucky, other] = [world.edge('n1', 'v1/pods'), world.edge('n2', 'v1/pods')]
  const line = unlucky.connect()
  other.connect()
  await world.until(() => unlucky.copy().version > 0 && other.copy().version > 0)
  const send = line.send.bind(line)
  let isFirst = true
  line.send = (frame) => {
    if (!isFirst) return send(frame)
    isFirst = false
    throw new TypeError('a mistake')
  }
  server.put('pods', 'a/p', { value: 'new' })
  await world.settle()
  assert.equal(other.copy().value('a/p'), 'new')
  assert.equal(line.closed?.code, 'broken')
  assert.equal(world.peers.size, 1)
  assert.ok(world.lines.some((text) => text.includes('error edge.broke') && text.includes('a mistake')))
})

test('other fields that become selectable change nothing for the views that are there', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p1', { node: 'n1' })
  const edge = world.edge('n1', 'v1/pods?&spec.nodeName=n1')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  const cache = world.mirror.mirrored({})?.cache
  cache?.replan(planFields(['spec.schedulerName', ...cache.plan.paths]))
  server.put('pods', 'a/p2', { node: 'n1' })
  server.put('pods', 'a/p3', { node: 'n2' })
  server.put('pods', 'a/p1', { node: 'n2' })
  await world.settle()
  assert.deepEqual(edge.copy().names, ['a/p2'])
  edge.line?.lose()
  edge.connect()
  await world.settle()
  assert.deepEqual(edge.copy().starts, ['snapshot', 'replay'])
})

test('a link that ended before it began is not kept', async () => {
  await using world = await HubWorld.open()
  const { clock } = world.mirror.server
  const certificate = {
    serial: '',
    fingerprint: '',
    signer: 'hub' as const,
    authority: '',
    issuedAtMs: 0,
    vouchedAtMs: 0,
    endsAtMs: clock.now() + 1e9,
  }
  const timers = clock.pending()
  world.peers.accept({
    ...{ peer: { name: 'n1', certificate, resumed: false, from: '' }, bufferedBytes: 0 },
    begin: ({ closed }) => closed({ by: 'line', why: 'connection closed' }),
    ...{ send: () => false, close: () => undefined, cut: () => undefined },
  })
  assert.equal(world.peers.size, 0)
  assert.equal(clock.pending(), timers)
})

test('what an edge is told and tells is counted, for it and for all', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p1', { value: 'one' })
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  server.put('pods', 'a/p1', { value: 'two' })
  await world.until(() => edge.copy().value('a/p1') === 'two')
  const [figures] = world.peers.figures()
  const { sentBytes, receivedBytes, events } = figures as NonNullable<typeof figures>
  assert.equal(events, 1)
  assert.ok(sentBytes > 100 && receivedBytes > 20, `${sentBytes} ${receivedBytes}`)
  assert.deepEqual(world.peers.traffic, { sentBytes, receivedBytes, events })
  assert.deepEqual([figures?.release, figures?.behind], ['1', 0])
  edge.line?.lose()
  assert.equal(world.peers.traffic.events, 1)
})

test('a drained hub asks its edges to move one after the other, and takes none', async () => {
  await using world = await HubWorld.open()
  const edges = ['n1', 'n2', 'n3', 'n4'].map((name) => world.edge(name, 'v1/pods'))
  for (const edge of edges) edge.connect()
  await world.until(() => edges.every((edge) => edge.copy().version > 0))
  let isDone = false
  const drained = world.peers.drain(20_000, 'the hub is replaced').then(() => {
    isDone = true
  })
  await world.pass(1_000)
  assert.deepEqual(
    edges.map(({ moves }) => moves !== undefined),
    [true, false, false, false],
  )
  await world.pass(8_000)
  assert.ok(edges.every(({ moves }) => moves !== undefined))
  const late = world.edge('n5', 'v1/pods')
  late.connect()
  await world.settle()
  assert.deepEqual(
    [late.ended?.reason, late.ended?.retryAfterMs],
    ['busy', 1_000],
    'another hub may be at that address by then',
  )
  edges[0]?.line?.lose()
  for (let at = 0; at < 12; at++) {
    await world.pass(1_000)
    for (const edge of edges) edge.tick()
  }
  await drained
  assert.ok(isDone)
  assert.equal(edges[1]?.line?.closed?.code, 'away')
})

test('[L16] streams go both ways beside events, and break off with their link', async () => {
  const bodies: string[] = []
  await using world = await HubWorld.open({
    accept:
      (edge) =>
      ({ stream, purpose }) => {
        stream.on('data', (bytes: Buffer) => void bodies.push(`${edge.name} ${purpose} ${bytes}`))
        stream.on('error', () => bodies.push('broken'))
        stream.write('x'.repeat(60_000))
      },
  })
  const edge = world.edge('n1', 'v1/pods')
  const line = edge.connect()
  await world.until(() => edge.copy().version > 0)
  const stream = edge.streams?.open({ purpose: 'request' })
  let read = 0
  stream?.on('data', (bytes: Buffer) => {
    read += bytes.length
  })
  stream?.on('error', () => undefined)
  stream?.write('hello')
  for (let at = 0; at < 20 && read < 60_000; at++) await world.pass(100)
  assert.deepEqual(bodies, ['n1 request hello'])
  assert.equal(read, 60_000)
  line.lose()
  await world.settle()
  assert.deepEqual(bodies, ['n1 request hello', 'broken'])
})
