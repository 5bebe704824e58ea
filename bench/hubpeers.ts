/**
 * What does an edge cost a hub between its mirror and its sockets? Links are in memory and their edges say no more than they
 * have to; the mirror, its cache, views, sessions and drivers are the real ones, told by a cloud in this process.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { Warnings } from '../src/base/warnings.ts'
import { planFor } from '../src/cache/filter.ts'
import { makeItem } from '../src/cache/item.ts'
import { MirrorCopy } from '../src/cache/mirrorcopy.ts'
import { NodeRights } from '../src/hub/access/noderights.ts'
import { SetPolicies } from '../src/hub/access/policies.test-support.ts'
import { ProvenRights } from '../src/hub/access/provenrights.ts'
import { EdgeForwarding } from '../src/hub/forwarding/forwarding.ts'
import type { PeerSocket } from '../src/hub/peers/linkededge.ts'
import { HubPeers } from '../src/hub/peers/peers.ts'
import { HubSources } from '../src/hub/sources/sources.ts'
import { wantedOf } from '../src/hub/sources/wanted.ts'
import { builtinFacts } from '../src/kube/builtin.ts'
import { selectableFields } from '../src/kube/fields.ts'
import type { Resource } from '../src/kube/resource.ts'
import { encodeFrame, type LinkFrame } from '../src/link/frames/frames.ts'
import type { LinkHandlers } from '../src/link/socket/linksocket.ts'
import { resourceOfName } from '../src/mirror/interest.ts'
import { Interests } from '../src/mirror/interests.ts'
import type { Mirrored } from '../src/mirror/mirror.ts'
import { openMemory } from '../src/store/memory.ts'
import type { Collection, Followed, OpenFollow } from '../src/upstream/follow/follow.ts'
import { answersWell, Unreachable, type Upstream } from '../src/upstream/upstream.ts'
import type { Figure, Question } from './bench.ts'
import { makePods, podCount, stampKey } from './fixture.ts'

const edges = 500
const rounds = 20
const names = 30
const version = 1_300_000

const secret = Buffer.from('a secret of the hub')
const mirroredOf = (name: string): Mirrored => {
  const resource = builtinFacts().resources.find((one) => one.resource === name && one.version === 'v1') as Resource
  const fields = selectableFields(resource)
  return { resource, fields, plan: planFor([fields.paths]), mirrorable: true }
}
const resources = [
  ...['pods', 'configmaps', 'persistentvolumes', 'volumeattachments'],
  ...['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'],
]
const catalog = new Map(resources.map((name) => [name, mirroredOf(name)]))

/** Tells everybody who follows pods of a stamp, in one turn with others. */
class Cloud {
  readonly pods = makePods(podCount)
  #version = version
  #told: Followed[] = []
  #wake: () => void = () => undefined

  readonly follow: OpenFollow = (collection) => ({
    follow: (_from, signal) => this.#follow(collection, signal),
    identities: () => Promise.reject(new Unreachable('not here', false)),
  })

  stamp(at: number): Extract<Followed, { kind: 'changes' }>['changes'][number] {
    return { type: 'put', item: this.#item(at, ++this.#version) }
  }

  tell(changes: Extract<Followed, { kind: 'changes' }>['changes']): void {
    this.#told.push({ kind: 'changes', changes, plan: (catalog.get('pods') as Mirrored).plan })
    this.#wake()
  }

  #item(at: number, of: number) {
    const { namespace, name, object } = this.pods[at] as Cloud['pods'][number]
    const annotations = { [stampKey]: String(10n ** 19n + BigInt(of) * 12_345_678_901n) }
    const metadata = { ...object.metadata, namespace, name, uid: `uid-${at}`, resourceVersion: String(of), annotations }
    return makeItem(Buffer.from(JSON.stringify({ ...object, metadata })), of, (catalog.get('pods') as Mirrored).plan)
  }

  async *#follow({ scope, kind }: Collection, signal: AbortSignal): AsyncGenerator<Followed> {
    const isPods = scope.resource === 'pods'
    if (isPods) yield { kind: 'snapshot', items: this.pods.map((_, at) => this.#item(at, version - podCount + at)) }
    yield { kind: 'complete', version, listKind: `${kind}List`, askedAtMs: systemClock.steady() }
    yield { kind: 'live', heardAt: () => systemClock.steady() }
    while (!signal.aborted) {
      if (isPods) yield* this.#told.splice(0)
      await new Promise<void>((resolve) => {
        if (isPods) this.#wake = resolve
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }
}

const upstream: Upstream = {
  reachability: {
    ...{ state: 'reachable', why: answersWell, sinceMs: 0, heardAt: 0, refusesEdge: false, limitMs: 300 },
    ...{ suspect: () => undefined, probe: () => Promise.resolve(true), observe: () => () => undefined },
  },
  ask: () => Promise.reject(new Unreachable('not here', false)),
  connect: () => Promise.reject(new Unreachable('not here', false)),
  addresses: () => [],
  run: () => Promise.resolve(),
}

class Line implements PeerSocket {
  readonly peer: PeerSocket['peer']
  readonly bufferedBytes = 0
  frames = 0
  #handlers: LinkHandlers | undefined

  constructor(name: string) {
    const certificate = {
      serial: '',
      fingerprint: '',
      signer: 'hub' as const,
      authority: '',
      issuedAtMs: 0,
      vouchedAtMs: 0,
      endsAtMs: Date.now() + 1e10,
    }
    this.peer = { name, certificate, resumed: false, from: '' }
  }

  begin(handlers: LinkHandlers): void {
    this.#handlers = handlers
  }

  send(): boolean {
    this.frames++
    return true
  }

  close(_code: string, why: string): void {
    throw new Error(why)
  }

  cut(why: string): void {
    throw new Error(why)
  }

  say(bytes: Buffer): void {
    this.#handlers?.frame(bytes)
  }

  leave(): void {
    this.#handlers?.closed({ by: 'line', why: '' })
  }
}

export const hubpeers: Question = {
  name: 'hubpeers',
  ask: async () => {
    const cloud = new Cloud()
    const ending = new AbortController()
    const store = openMemory({ historyBytesMax: 1 << 20 })
    const [clock, log] = [systemClock, silentLog]
    const find = (_group: string, _version: string, resource: string) => catalog.get(resource)
    const confirm = () => Promise.resolve(false)
    const interests = await Interests.open({ store, upstream, follow: cloud.follow, clock, log, find, confirm })
    const { planOf, lostOf } = interests
    const windowBytesMax = 64 << 20
    const copy = await MirrorCopy.open({
      ...{ store, clock, log, planOf, lostOf, windowBytesMax },
      resourceOf: resourceOfName,
    })
    interests.attach(copy)
    const sources = new HubSources({
      interests,
      find,
      digestKey: secret,
      clock,
      newest: () => Promise.reject(new Error('not asked')),
    })
    const warnings = new Warnings({ clock, log, kinds: [] })
    const forwarding = new EdgeForwarding({ upstream, trustsEdges: false, clock, log, warnings })
    const nodes = new NodeRights({ sources, clock })
    const peers = new HubPeers({
      ...{ hub: 'hub', release: '1', cluster: 'c', epoch: 1, lost: 0, digestKey: secret, sources, clock, log },
      warnings,
      rights: new ProvenRights({
        nodes,
        callers: { judge: async () => 'no caller is here', left: () => undefined },
        trustsEdges: true,
        policies: new SetPolicies(),
      }),
      acceptFor: (edge) => forwarding.acceptFor(edge),
    })
    const { signal } = ending
    const running = [interests.run(signal), copy.run(signal), sources.run(signal), peers.run(signal)]
    try {
      return [await memoryFigure(peers), ...(await toldFigures(cloud, peers)), await judgedFigure(nodes)]
    } finally {
      ending.abort()
      await Promise.all(running)
    }
  },
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1))

async function connected(peers: HubPeers, wanted: (at: number) => readonly string[]): Promise<Line[]> {
  const lines = Array.from({ length: edges }, (_, at) => new Line(`node-${at}`))
  for (const [at, line] of lines.entries()) {
    peers.accept(line)
    const edge = { edge: line.peer.name, release: '1', cluster: 'c', epoch: 1 }
    const hello = { oldest: 1, newest: 1, ...edge, window: 2 ** 18, counts: 1 }
    const subscribed = wanted(at).map((name, index) => ({
      ...{ interest: index + 1, name, version, wish: 'resume' as const, partial: 0, after: '' },
    }))
    line.say(encodeFrame({ kind: 'hello', ...hello }))
    line.say(encodeFrame({ kind: 'subscribe', interests: subscribed, epoch: 1 }))
  }
  // Each is welcomed and accepted, and what it has is complete.
  while (lines.some(({ frames }) => frames < 3)) await pause()
  await pause()
  return lines
}

/** As an edge has them: its pods, some selectors that others have too, and many names that are its own. */
async function memoryFigure(peers: HubPeers): Promise<Figure> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const wanted = (at: number) => [
    `v1/pods?&spec.nodeName=node-${String(at % 100).padStart(3, '0')}`,
    ...Array.from({ length: 9 }, (_, index) => `v1/pods?app=service-${String(index).padStart(3, '0')}&`),
    ...Array.from({ length: names }, (_, index) => `v1/configmaps@team-00?&metadata.name=own-${at}-${index}`),
  ]
  const first = await connected(peers, () => ['v1/pods', 'v1/configmaps@team-00'])
  for (const line of first) line.leave()
  collect()
  const before = process.memoryUsage().heapUsed
  const lines = await connected(peers, wanted)
  collect()
  const bytes = (process.memoryUsage().heapUsed - before) / lines.length
  for (const line of lines) line.leave()
  const name = 'hub, memory of an edge with 40 interests, 30 of them names'
  return { name, unit: 'bytes', measured: { ake: bytes } }
}

async function toldFigures(cloud: Cloud, peers: HubPeers): Promise<Figure[]> {
  const lines = await connected(peers, () => ['v1/pods'])
  let [next, position] = [0, 0]
  const tell = async (events: number): Promise<number> => {
    const changes = Array.from({ length: events }, () => cloud.stamp(next++ % podCount))
    for (const line of lines) line.frames = 0
    position += events
    const acknowledge: LinkFrame = { kind: 'acknowledge', position, bulk: 0 }
    const began = process.cpuUsage()
    cloud.tell(changes)
    while (lines.some(({ frames }) => frames === 0)) await pause()
    for (const line of lines) line.say(encodeFrame(acknowledge))
    const { user, system } = process.cpuUsage(began)
    return (user + system) / lines.length / events
  }
  const least = async (events: number) => {
    let found = Number.POSITIVE_INFINITY
    for (let round = 0; round < rounds; round++) found = Math.min(found, await tell(events))
    return found
  }
  const figure = (name: string, ake: number, atMost: number): Figure => ({
    ...{ name: `hub, an event told to an edge, ${name}`, unit: 'µs CPU', measured: { ake }, atMost },
  })
  return [figure('alone', await least(1), 30), figure('of 50 in a batch', await least(50), 8)]
}

/** Of an edge that asks for its pods, and for a Secret that none of them names. */
async function judgedFigure(nodes: NodeRights): Promise<Figure> {
  const rights = new ProvenRights({
    nodes,
    callers: { judge: async () => 'no caller is here', left: () => undefined },
    trustsEdges: false,
    policies: new SetPolicies(),
  })
  nodes.start()
  const asked = Array.from({ length: edges }, (_, at) => {
    const name = `node-${String(at % 100).padStart(3, '0')}`
    const wanted = [`v1/pods?&spec.nodeName=${name}`, 'v1/secrets@team-00?&metadata.name=other'].map(wantedOf)
    return { edge: { name }, wanted: wanted.filter((one) => one !== undefined) }
  })
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    let given = 0
    const began = process.cpuUsage()
    for (const { edge, wanted } of asked)
      for (const one of wanted) if ((await rights.judge(edge, one)) === undefined) given++
    const { user, system } = process.cpuUsage(began)
    if (given !== edges) throw new Error(`${given} interests were given`)
    least = Math.min(least, (user + system) / edges / 2)
  }
  nodes.stop()
  return { name: 'hub, whether an edge may have an interest', unit: 'µs CPU', measured: { ake: least }, atMost: 50 }
}
