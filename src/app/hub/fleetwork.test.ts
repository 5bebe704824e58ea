/** What a change in the cluster makes a hub with many links look at, counted. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { HubPeers } from '../../hub/peers/peers.ts'
import { Policies } from '../../hub/policy/policies.ts'
import type { SourceReader } from '../../hub/sources/view.ts'
import type { HubState } from '../../hub/state/state.ts'
import { encodeFrame } from '../../link/frames/frames.ts'
import type { InterestView, LinkObject } from '../../link/session/session.ts'
import type { LinkHandlers } from '../../link/socket/linksocket.ts'
import type { Interest } from '../../mirror/interest.ts'
import { settle } from '../../mirror/world.test-support.ts'
import { HubFleet } from './fleet.ts'

const links = 1_000

/** Names of which something was asked. */
class Asked {
  rules: string[] = []
  revoked: string[] = []

  forget(): void {
    this.rules = []
    this.revoked = []
  }
}

/** A hub's policies, fleet and links, over sources in memory. */
class Fleet {
  readonly asked = new Asked()
  readonly closed: string[] = []
  readonly #readers = new Map<string, SourceReader[]>()
  readonly #objects = new Map<string, LinkObject[]>()
  readonly #ending = new AbortController()
  #version = 0

  async open(): Promise<void> {
    const clock = fakeClock()
    const warnings = { warn: () => undefined }
    const sources = {
      open: ({ resource }: Interest, reader: SourceReader) => {
        this.#readers.getOrInsertComputed(resource, () => []).push(reader)
        const all = this.#objects.get(resource) ?? []
        const view = { behind: () => all, get: (key: string) => all.find((one) => one.key === key) }
        queueMicrotask(() => reader.opened(view as unknown as InterestView))
        return undefined
      },
    }
    const policies = new Policies({ sources, clock, log: silentLog })
    const { asked } = this
    const counted = {
      ...{ observe: policies.observe.bind(policies), why: '', isKnown: true },
      rulesOf: (name: string) => {
        asked.rules.push(name)
        return policies.rulesOf(name)
      },
      revokedSince: (name: string) => {
        asked.revoked.push(name)
        return policies.revokedSince(name)
      },
    }
    const fleet = new HubFleet({
      ...{ hub: 'h', upstream: { ask: () => Promise.reject(new Error('no Events here')) }, sources, clock },
      ...{ policies: counted, log: silentLog, warnings, service: undefined },
      ...{ state: () => ({}) as HubState, clusterAuthorities: { retirementOf: () => undefined, unread: undefined } },
    })
    const peers = new HubPeers({
      ...{ hub: 'h', release: '1', cluster: 'c', epoch: 1, lost: 0, digestKey: Buffer.alloc(32) },
      sources: { ...sources, versions: () => new Map(), heardAt: () => 0, present: async () => undefined },
      rights: { judge: () => Promise.resolve(undefined), left: () => undefined },
      ...{ policies: counted, ...fleet.hooks, clock, log: silentLog, warnings },
      acceptFor: () => () => undefined,
    })
    fleet.attach(peers)
    policies.observe((nodes) => void peers.policed(nodes))
    void policies.run(this.#ending.signal)
    await settle(20)
    for (let at = 0; at < links; at++) this.#link(peers, `n${at}`)
    await settle(20)
    assert.equal([...peers.names()].length, links)
    asked.forget()
  }

  #link(peers: HubPeers, name: string): void {
    const certificate = { serial: '1', fingerprint: 'aa', signer: 'cluster', authority: '' } as const
    const times = { issuedAtMs: 0, vouchedAtMs: 0, endsAtMs: Number.MAX_SAFE_INTEGER }
    let handlers: LinkHandlers | undefined
    peers.accept({
      peer: { name, certificate: { ...certificate, ...times }, resumed: false, from: '10.0.0.1' },
      begin: (given) => {
        handlers = given
      },
      send: () => true,
      close: () => void this.closed.push(name),
      cut: () => undefined,
      bufferedBytes: 0,
    })
    const hello = {
      oldest: 1,
      newest: 1,
      edge: name,
      release: '1',
      cluster: '',
      epoch: 0,
      counts: 1,
      window: 2 ** 18,
    } as const
    handlers?.frame(encodeFrame({ kind: 'hello', ...hello }))
  }

  async put(resource: string, name: string, object: object): Promise<void> {
    const version = ++this.#version
    const bytes = Buffer.from(JSON.stringify({ metadata: { name }, ...object }))
    const item = { key: name, uid: name, version, bytes }
    for (const reader of this.#readers.get(resource) ?? [])
      reader.event({ key: name, version, item, previous: undefined })
    await settle(6)
  }

  [Symbol.dispose](): void {
    this.#ending.abort()
  }
}

test('a Node that appears or is relabelled costs a look at its own link, a policy one at each, and links of revoked names end', async () => {
  using fleet = new Fleet()
  await fleet.open()
  const { asked } = fleet
  const node = (name: string, site: string) =>
    fleet.put('nodes', name, { metadata: { name, labels: { 'node-restriction.kubernetes.io/site': site } } })
  await node('n7', 'a')
  await node('n7', 'b')
  await node('elsewhere', 'b')
  assert.deepEqual([asked.rules, asked.revoked], [['n7', 'n7'], []])
  asked.forget()
  await fleet.put('edgepolicies', 'p', {
    spec: { revoked: [{ name: 'n8', since: '2026-01-01T00:00:00Z' }, { name: 'n9' }] },
  })
  // A moment at a time.
  await until(() => new Set(asked.revoked).size === links && asked.rules.length >= links - 2)
  assert.ok(asked.revoked.length <= links + 10 && asked.rules.length <= links, String(asked.revoked.length))
  assert.deepEqual(fleet.closed, ['n8', 'n9'])
})
