/**
 * Many edges in a process of their own, each with a real link over TLS that it makes again when it is lost, and copies in memory that
 * are whole by their digests: `node bench/hub/fleet.ts STATE PORT`, told by messages how many there are to be.
 */

import { connect } from 'node:net'
import { setImmediate as breathe } from 'node:timers/promises'
import { systemClock } from '../../src/base/clock.ts'
import { type Log, silentLog } from '../../src/base/log.ts'
import { edgePair } from '../../src/hub/state/certificates.ts'
import { FolderState } from '../../src/hub/state/folderstate.ts'
import { KeptState } from '../../src/hub/state/keptstate.ts'
import { credentialText, parseCredential } from '../../src/pki/credentialfile.ts'
import type { Dial } from '../../src/upstream/dial.ts'
import { EdgeLink } from '../../src/upstream/linked/edgelink.ts'
import { Hubs } from '../../src/upstream/linked/hubs.ts'
import { FleetCopy, fleetCounts } from './fleetcopy.ts'

/** Interests that are ConfigMaps by name, which no other edge has. */
export const ownNames = 30
export const ownNamespace = 'team-00'
export const ownName = (edge: number, index: number) => `own-${edge}-${index}`
/** The name of an edge, which is that of its node. */
export const fleetName = (edge: number) => `fleet-${edge}`
/** What every edge has, and what events are about. */
export const sharedLabel = 'app=service-000'

const shared = [
  ...[`v1/pods?${sharedLabel}&`, 'v1/services', 'v1/namespaces', 'discovery.k8s.io/v1/endpointslices'],
  ...['storage.k8s.io/v1/csidrivers', 'storage.k8s.io/v1/storageclasses', 'node.k8s.io/v1/runtimeclasses'],
  'scheduling.k8s.io/v1/priorityclasses',
]

export type FleetOrder = { readonly edges: number; readonly interests: 'forty' | 'none' }
export type FleetReport = typeof fleetCounts & {
  readonly edges: number
  readonly linked: number
  readonly ends: Readonly<Record<string, number>>
  /** Those whose interests are all synced over a link that lives. */
  readonly whole: number
}

/**
 * An address has 28,000 ports to dial one hub from, and one that was used is free again only a minute later: in a flood of thousands,
 * most of whom are sent away for some seconds, that is not enough.
 */
const sourceAddresses = 16
const dialFrom =
  (at: number): Dial =>
  (to, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect({ ...to, localAddress: `127.0.1.${1 + (at % sourceAddresses)}`, noDelay: true, signal })
      socket.on('error', reject)
      socket.once('connect', () => resolve(socket))
    })

/** Why links ended or could not be made, each as often as it happened. */
const ends = new Map<string, number>()
const note = (_event: string, fields?: { readonly why?: unknown }) => {
  const why = fields?.why
  if (typeof why === 'string') ends.set(why, (ends.get(why) ?? 0) + 1)
}
const endsLog: Log = { ...silentLog, info: note, warn: note }

class FleetEdge {
  readonly #copies: readonly FleetCopy[]
  readonly #link: EdgeLink

  constructor({ port, interests, credential, at }: FleetEdgeParts) {
    const [clock, log] = [systemClock, endsLog]
    this.#copies = interests.map((name) => new FleetCopy(name))
    const addresses = [new URL(`wss://127.0.0.1:${port}`)]
    const hubs = new Hubs({
      addresses,
      dial: dialFrom(at),
      credential: { current: credential },
      now: Date.now,
      clock,
      log,
    })
    this.#link = new EdgeLink({
      ...{ hubs, edge: fleetName(at), release: '1', clock, log, admit: () => Promise.resolve(undefined) },
      // Every hub of a run is of one cluster and epoch.
      known: () => ({ cluster: '', epoch: 0 }),
    })
    this.#link.observe(() => {
      const { current } = this.#link
      if (current !== undefined) for (const copy of this.#copies) copy.follow(current)
    })
    void this.#link.run(new AbortController().signal)
  }

  get isLinked(): boolean {
    return this.#link.current !== undefined
  }

  get isWhole(): boolean {
    return this.isLinked && this.#copies.every(({ isSynced }) => isSynced)
  }
}

type FleetEdgeParts = {
  readonly port: number
  readonly interests: readonly string[]
  readonly credential: ReturnType<typeof parseCredential>
  readonly at: number
}

function fortyOf(edge: number): string[] {
  const own = Array.from({ length: ownNames }, (_, index) => ownName(edge, index))
  const named = own.map((name) => `v1/configmaps@${ownNamespace}?&metadata.name=${name}`)
  const node = fleetName(edge)
  return [`v1/pods?&spec.nodeName=${node}`, `v1/nodes?&metadata.name=${node}`, ...shared, ...named]
}

if (import.meta.main && process.send !== undefined) {
  const [dir = '', port = '0'] = process.argv.slice(2)
  const kept = await KeptState.open({ store: new FolderState(dir), clock: systemClock, log: silentLog })
  const edges: FleetEdge[] = []
  const obey = async ({ edges: wanted, interests: which }: FleetOrder) => {
    for (let at = edges.length; at < wanted; at++) {
      const pair = edgePair(kept.current, fleetName(at), Date.now())
      const credential = parseCredential(credentialText({ ca: kept.current.ca.cert, pair, title: 'bench' }), 'bench')
      edges.push(new FleetEdge({ port: Number(port), at, credential, interests: which === 'none' ? [] : fortyOf(at) }))
      // A key takes milliseconds: those that have begun to shake hands must not wait for thousands of them.
      await breathe()
    }
  }
  const report = (): FleetReport => ({
    ...{ ...fleetCounts, edges: edges.length, ends: Object.fromEntries(ends) },
    ...{
      linked: edges.filter(({ isLinked }) => isLinked).length,
      whole: edges.filter(({ isWhole }) => isWhole).length,
    },
  })
  process.on('message', (order: FleetOrder | 'report') => {
    if (order !== 'report') void obey(order)
    process.send?.(report())
  })
  process.on('disconnect', () => process.exit())
}
