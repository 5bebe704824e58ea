/** Of which edges Events of their Nodes tell, and as what. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import type { EdgePeer } from '../../hub/sockets/edgepeer.ts'
import type { SourceReader } from '../../hub/sources/view.ts'
import { makeState } from '../../hub/state/state.ts'
import type { InterestView, LinkObject } from '../../link/session/session.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../upstream/upstream.ts'
import { HubFleet } from './fleet.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const startMs = Date.UTC(2026, 0, 10)

function open() {
  const clock = fakeClock(startMs)
  const made: { readonly reason: string; readonly message: string; readonly involvedObject: { uid: string } }[] = []
  const lines: string[] = []
  const revoked = new Map<string, { readonly sinceMs: number; readonly by: string }>()
  let reader: SourceReader | undefined
  const ask = ({ body }: UpstreamRequest): Promise<UpstreamResponse> => {
    made.push(JSON.parse((body as Buffer).toString()) as (typeof made)[number])
    return Promise.resolve({ status: 201, headers: {}, body: (async function* () {})(), heardAt: () => 0 })
  }
  const openSource = (_: Interest, one: SourceReader) => {
    reader = one
    return undefined
  }
  const state = makeState(startMs)
  const fleet = new HubFleet({
    ...{ hub: 'h1', upstream: { ask }, sources: { open: openSource }, clock, log: silentLog, service: undefined },
    policies: { isKnown: true, why: '', revokedSince: (name) => revoked.get(name), observe: () => () => undefined },
    ...{ state: () => state, clusterAuthorities: { retirementOf: () => undefined, unread: undefined } },
    warnings: { warn: (event, _, fields) => void lines.push(`${event} ${JSON.stringify(fields)}`) },
  })
  const ending = new AbortController()
  const running = fleet.run(ending.signal)
  return {
    ...{ fleet, clock, revoked, lines },
    /** The Nodes of the cluster, by name, with when they were made. */
    async nodes(all: Readonly<Record<string, number>>) {
      const objects = Object.entries(all).map(([name, ms]): LinkObject => {
        const metadata = { name, uid: `u-${name}`, creationTimestamp: new Date(ms).toISOString() }
        return { key: name, uid: metadata.uid, version: 1, bytes: Buffer.from(JSON.stringify({ metadata })) }
      })
      const get = (key: string) => objects.find((one) => one.key === key)
      reader?.opened({ behind: () => objects, get } as unknown as InterestView)
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    },
    /** What was told since it was last asked. */
    async told() {
      for (let at = 0; at < 20; at++) {
        clock.advance(200)
        for (let turn = 0; turn < 10; turn++) await Promise.resolve()
      }
      return made.splice(0).map(({ reason, message, involvedObject }) => `${reason} ${involvedObject.uid}: ${message}`)
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await running
    },
  }
}

function edge(name: string, issuedAtMs: number): EdgePeer {
  const times = { issuedAtMs, vouchedAtMs: issuedAtMs, endsAtMs: startMs + 300 * dayMs }
  const certificate = { serial: '7', fingerprint: `of ${name}`, signer: 'cluster', authority: '', ...times } as const
  return { name, certificate, resumed: true, from: '192.0.2.1' }
}

test('an edge whose Node is new, or not there yet, has joined, however old its certificate is', async () => {
  await using world = open()
  const { fleet } = world
  await world.nodes({ made: startMs - hourMs / 2, old: startMs - dayMs })
  fleet.hooks.came(edge('none', startMs - 2 * dayMs))
  fleet.hooks.came(edge('made', startMs - 2 * dayMs))
  fleet.hooks.came(edge('old', startMs - 2 * dayMs))
  assert.deepEqual(await world.told(), [
    'EdgeJoined none: the edge came, and has no Node yet, from 192.0.2.1; its certificate ends on 2026-11-06T00:00:00.000Z',
    'EdgeJoined u-made: the edge came, and its Node is new, from 192.0.2.1; its certificate ends on 2026-11-06T00:00:00.000Z',
  ])
  fleet.hooks.came(edge('old', startMs - 60_000))
  assert.match((await world.told()).join(), /^EdgeRenewed u-old: the edge came, with a new certificate, from/)
})

test('edges that come to a hub before it has read the Nodes are told of by what these say then', async () => {
  await using world = open()
  const { fleet } = world
  fleet.hooks.came(edge('none', startMs - 2 * dayMs))
  fleet.hooks.came(edge('old', startMs - 2 * dayMs))
  assert.deepEqual(await world.told(), [])
  await world.nodes({ old: startMs - dayMs })
  assert.deepEqual(
    (await world.told()).map((one) => one.split(':')[0]),
    ['EdgeJoined none'],
  )
})

test('one that was revoked and tries is told of as revoked, any other that is refused as refused; both are in the log', async () => {
  await using world = open()
  const { fleet, revoked, lines } = world
  await world.nodes({ n1: startMs - dayMs })
  const n1 = edge('n1', startMs - dayMs)
  assert.equal(fleet.hooks.revoked(n1), undefined)
  revoked.set('n1', { sinceMs: startMs, by: 'policy/lost' })
  const why = fleet.hooks.revoked(n1) ?? ''
  assert.match(why, /was revoked \(policy\/lost\): join again/)
  assert.deepEqual(await world.told(), [], 'nobody has tried')
  fleet.hooks.refused(n1, why)
  fleet.hooks.refused(edge('n2', startMs), 'its authority was retired')
  fleet.hooks.unusable({ name: 'n3', from: '192.0.2.3' }, 'the certificate has expired')
  assert.deepEqual(await world.told(), [
    `EdgeRevoked u-n1: ${why}, from 192.0.2.1`,
    'EdgeRefused n2: its authority was retired (it came from 192.0.2.1)',
    'EdgeRefused n3: the certificate has expired (it came from 192.0.2.3)',
  ])
  assert.match(lines[0] ?? '', /^edge\.revoked .*"edge":"n1".*"serial":"7".*"resumed":true/)
  assert.match(lines[1] ?? '', /^edge\.refused .*"edge":"n2"/)
  assert.equal(lines.length, 3)
})
