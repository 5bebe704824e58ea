/**
 * What does the session of a link cost a hub for each edge, and what does it send? Hub and edge are the real state machines, in
 * this process, with frames encoded and decoded; there is no socket, so that a frame's bytes are without those of WebSocket and TLS, about
 * 26 for each message.
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { constants, gzipSync } from 'node:zlib'
import { chanceOf } from '../src/base/seeded.test-support.ts'
import { DigestTree } from '../src/link/digest/digest.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../src/link/frames/frames.ts'
import { EdgeSession } from '../src/link/session/edge.ts'
import { HubSession } from '../src/link/session/hub.ts'
import {
  digestEntry,
  type EdgeEffect,
  type HubEffect,
  type InterestView,
  type LinkEvent,
  type LinkObject,
} from '../src/link/session/session.ts'
import { SharedChanges } from '../src/link/session/sharedchanges.ts'
import type { Figure, Question } from './bench.ts'
import { makePods, podCount, stampKey, uuid } from './fixture.ts'

const secret = Buffer.from('a secret of the hub')
const messageBytes = 26
const edgesTold = 500
const interestsHeld = 40
const rounds = 20

/** One interest with all pods, and its history. */
class Pods implements InterestView {
  readonly source = 1
  readonly floor: number
  readonly digest = new DigestTree(secret)
  version = 1_300_000
  readonly #pods = new Map<string, LinkObject>()
  readonly #history: LinkEvent[] = []
  readonly #trees = new Map<string, object>()

  constructor() {
    const random = chanceOf(5)
    for (const [at, { namespace, name, object }] of makePods(podCount).entries()) {
      const uid = uuid(random)
      const tree = { ...object, metadata: { ...object.metadata, uid } }
      this.#trees.set(`${namespace}/${name}`, tree)
      this.#put(`${namespace}/${name}`, tree, 1_200_000 + at)
    }
    this.floor = this.version
  }

  get keys(): readonly string[] {
    return [...this.#pods.keys()]
  }

  get objects(): readonly LinkObject[] {
    return [...this.#pods.values()]
  }

  get(key: string): LinkObject | undefined {
    return this.#pods.get(key)
  }

  *behind(after: string): Generator<LinkObject> {
    for (const key of this.keys.toSorted()) if (key > after) yield this.#pods.get(key) as LinkObject
  }

  since(version: number): readonly LinkEvent[] {
    return this.#history.filter((event) => event.version > version)
  }

  near(): LinkObject | undefined {
    return undefined
  }

  /** As a controller writes a stamp. */
  stamp(key: string): LinkEvent {
    const previous = this.#pods.get(key)
    const tree = this.#trees.get(key) as { metadata: object }
    this.version++
    const annotations = { [stampKey]: String(10n ** 19n + BigInt(this.version) * 12_345_678_901n) }
    const item = this.#put(key, { ...tree, metadata: { ...tree.metadata, annotations } }, this.version)
    const event = { key, version: this.version, item, previous }
    this.#history.push(event)
    return event
  }

  #put(key: string, tree: { metadata: object }, version: number): LinkObject {
    const metadata = { ...tree.metadata, resourceVersion: String(version) }
    const { uid } = tree.metadata as { uid: string }
    const item = { key, uid, version, bytes: Buffer.from(JSON.stringify({ ...tree, metadata })) }
    this.#pods.set(key, item)
    this.digest.put(digestEntry(item))
    return item
  }
}

function newHub(changes: SharedChanges): HubSession {
  return new HubSession({
    ...{ hub: 'hub', release: '1', cluster: 'c', epoch: 1, lost: 0, digestKey: secret, now: 0 },
    ...{ changes, admit: () => undefined },
  })
}

/** An edge whose copy takes no time, and the line to its hub: what passed on it. */
class Edge {
  readonly hub: HubSession
  bytes = 0
  messages = 0
  readonly #view: InterestView
  readonly #session: EdgeSession
  readonly #held: Map<string, LinkObject>
  #staged: LinkObject[] = []
  readonly #toEdge: LinkFrame[] = []
  readonly #toHub: LinkFrame[] = []

  constructor(view: InterestView, changes: SharedChanges, copy: { version: number; held: Map<string, LinkObject> }) {
    this.#view = view
    this.#held = copy.held
    this.hub = newHub(changes)
    this.#session = new EdgeSession({
      ...{ edge: 'node-1', release: '1', cluster: 'c', epoch: 1, keepaliveMs: 30_000, now: 0 },
      held: (_, key) => copy.held.get(key)?.bytes,
    })
    this.#session.subscribe('v1/pods', { epoch: 1, version: copy.version, wish: 'resume' })
    this.settle()
  }

  settle(): void {
    for (let before = -1; before !== this.messages; ) {
      before = this.messages
      this.#hubDoes(this.hub.tick(0))
      this.#edgeDoes(this.#session.tick(0))
      for (const frame of this.#toEdge.splice(0)) this.#edgeDoes(this.#session.receive(frame, 0))
      for (const frame of this.#toHub.splice(0)) this.#hubDoes(this.hub.receive(frame, 0))
    }
  }

  #pass(frame: LinkFrame): LinkFrame {
    const encoded = encodeFrame(frame)
    this.bytes += encoded.length + messageBytes
    this.messages++
    return decodeFrame(encoded) as LinkFrame
  }

  #hubDoes(effects: readonly HubEffect[]): void {
    for (const effect of effects) {
      if (effect.effect === 'send') this.#toEdge.push(this.#pass(effect.frame))
      else if (effect.effect === 'open') this.hub.opened(effect.interest, this.#view)
      else if (effect.effect === 'close') throw new Error(effect.sentence)
    }
  }

  #edgeDoes(effects: readonly EdgeEffect[]): void {
    for (const effect of effects) {
      if (effect.effect === 'send') this.#toHub.push(this.#pass(effect.frame))
      else if (effect.effect === 'commit') {
        for (const change of effect.changes)
          if (change.type === 'put') this.#held.set(change.key, { ...change, uid: '' })
        this.#session.committed(effect.position)
      } else if (effect.effect === 'stage')
        for (const change of effect.changes) {
          if (change.type === 'put') this.#staged.push({ ...change, uid: '' })
        }
      else if (effect.effect === 'whole') {
        for (const item of this.#staged) this.#held.set(item.key, item)
        this.#staged = []
      } else if (effect.effect === 'compare') this.#session.walk(effect.interest, effect.comparison, this.#tree())
      else if (effect.effect === 'close' || effect.effect === 'astray') throw new Error(effect.sentence)
    }
  }

  #tree(): DigestTree {
    const tree = new DigestTree(secret)
    for (const [key, item] of this.#held) tree.put(digestEntry({ ...item, key }))
    return tree
  }
}

export const session: Question = {
  name: 'session',
  ask: () => Promise.resolve([...lineFigures(), ...toldFigures(), memoryFigure()]),
}

function lineFigures(): Figure[] {
  const pods = new Pods()
  const changes = new SharedChanges()
  const held = new Map<string, LinkObject>()
  const first = new Edge(pods, changes, { version: 0, held })
  if (held.size !== podCount) throw new Error(`${held.size} objects came`)
  const list = gzipSync(`[${pods.objects.map(({ bytes }) => bytes).join()}]`, { level: constants.Z_BEST_SPEED })
  const firstBytes = first.bytes
  first.hub.event(1, pods.stamp(pods.keys[7] as string))
  const before = first.bytes
  first.settle()
  const update = first.bytes - before
  const version = pods.version
  const stamped = (count: number) => {
    for (let at = 0; at < count; at++) pods.stamp(pods.keys[at * 100] as string)
  }
  const known = new Map(pods.objects.map((item) => [item.key, item]))
  const nothing = new Edge(pods, changes, { version, held: new Map(known) }).bytes
  stamped(podCount / 100)
  const replayed = new Edge(pods, changes, { version, held: new Map(known) }).bytes
  const compared = new Edge(pods, changes, { version: version - 1_000, held: new Map(known) }).bytes
  const bytes = (name: string, ake: number, rest: object = {}): Figure => ({
    ...{ name: `session, ${name}`, unit: 'bytes', measured: { ake, ...rest } },
  })
  return [
    { ...bytes('an update of a pod, both ways', update), atMost: 200 },
    { ...bytes('first sync of 5,000 pods', firstBytes, { gzip: list.length }), atMost: 0.8 * list.length },
    { ...bytes('reconnected, nothing changed', nothing), atMost: 4_000 },
    { ...bytes('reconnected, 1 % of 5,000 pods changed, by replay', replayed), atMost: 10_000 },
    { ...bytes('reconnected, 1 % of 5,000 pods changed, by digests', compared), atMost: 60_000 },
  ]
}

/** Many edges are told of the same events, one at a time and fifty at a time. */
function toldFigures(): Figure[] {
  const pods = new Pods()
  const changes = new SharedChanges()
  const hubs = Array.from({ length: edgesTold }, () => liveHub(pods, changes, 1))
  const keys = pods.keys
  let next = 0
  let position = 0
  const tell = (events: number): number => {
    const told = Array.from({ length: events }, () => pods.stamp(keys[next++ % keys.length] as string))
    position += events
    const began = process.cpuUsage()
    for (const hub of hubs) {
      for (const event of told) hub.event(1, event)
      for (const effect of hub.tick(0)) if (effect.effect === 'send') encodeFrame(effect.frame)
      hub.receive({ kind: 'acknowledge', position, bulk: 0 }, 0)
    }
    const { user, system } = process.cpuUsage(began)
    return (user + system) / hubs.length / events
  }
  const least = (events: number) => Math.min(...Array.from({ length: rounds }, () => tell(events)))
  const figure = (name: string, ake: number, atMost: number): Figure => ({
    ...{ name: `session, an event told to an edge, ${name}`, unit: 'µs CPU', measured: { ake }, atMost },
  })
  return [figure('alone', least(1), 30), figure('of 50 in a batch', least(50), 8)]
}

/** A session that has everything, so that it is told what comes. */
function liveHub(view: InterestView, changes: SharedChanges, interests: number): HubSession {
  const hub = newHub(changes)
  hub.receive(
    {
      ...{ kind: 'hello', oldest: 1, newest: 1, edge: 'e', release: '1', cluster: 'c' },
      epoch: 1,
      window: 2 ** 18,
      counts: 1,
    },
    0,
  )
  const entries = Array.from({ length: interests }, (_, at) => ({
    ...{ interest: at + 1, name: `v1/configmaps@namespace-${at}/name`, version: view.version },
    ...{ wish: 'resume' as const, partial: 0, after: '' },
  }))
  for (const effect of hub.receive({ kind: 'subscribe', interests: entries, epoch: 1 }, 0))
    if (effect.effect === 'open') hub.opened(effect.interest, view)
  hub.tick(0)
  return hub
}

function memoryFigure(): Figure {
  const pods = new Pods()
  const changes = new SharedChanges()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const hubs = Array.from({ length: edgesTold }, () => liveHub(pods, changes, interestsHeld))
  collect()
  const bytes = (process.memoryUsage().heapUsed - before) / hubs.length
  return {
    ...{ name: 'session, memory of an edge with 40 interests at the hub', unit: 'bytes', measured: { ake: bytes } },
    atMost: 40_000,
  }
}
