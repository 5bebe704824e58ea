/**
 * What does an edge follow over a whole link? Hub and edge are in this process, with a real socket and TLS between them: updates of pods
 * from the hub's session to the step that a reflector takes, one at a time and as many as go through. The hub is the tests' model.
 */

import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { chanceOf } from '../src/base/seeded.test-support.ts'
import { HubListener } from '../src/hub/sockets/listener.ts'
import { edgePair, hubPair } from '../src/hub/state/certificates.ts'
import { makeState } from '../src/hub/state/state.ts'
import { parseFieldSelector } from '../src/kube/fieldselector.ts'
import { noFields } from '../src/kube/object.ts'
import { parseLabelSelector } from '../src/kube/selector.ts'
import { credentialText, parseCredential } from '../src/pki/credentialfile.ts'
import { dialTcp } from '../src/upstream/dial.ts'
import type { Followed } from '../src/upstream/follow/follow.ts'
import { EdgeLink } from '../src/upstream/linked/edgelink.ts'
import { followLinked } from '../src/upstream/linked/followlinked.ts'
import { Hubs } from '../src/upstream/linked/hubs.ts'
import { LinkedUpstream } from '../src/upstream/linked/linkedupstream.ts'
import { ModelHub } from '../src/upstream/linked/modelhub.test-support.ts'
import type { Figure, Question } from './bench.ts'
import { makePods, type Pod, stampKey, uuid } from './fixture.ts'

const pods = 1_000
const interest = 'v1/pods'
const alone = 200
const together = 20_000
const batch = 100
const bytesMax = 1 << 30

const scope = {
  ...{ group: '', version: 'v1', resource: 'pods', namespace: '' },
  ...{ labels: parseLabelSelector(''), fields: parseFieldSelector('') },
}

export const linkedfollow: Question = {
  name: 'linkedfollow',
  ask: async ({ say }) => {
    const clock = systemClock
    const state = makeState(clock.now())
    const hub = new ModelHub({ clock, interest })
    const source = new Source(hub)
    const listener = new HubListener({
      ...{ addresses: [{ host: '127.0.0.1', port: 0 }], state, serving: hubPair(state, ['127.0.0.1'], clock.now()) },
      ...{ clock, log: silentLog, accepted: (link) => void hub.accept(link) },
    })
    const [at] = await listener.listen()
    const pair = edgePair(state, 'node-1', clock.now())
    const current = parseCredential(credentialText({ ca: state.ca.cert, pair, title: 'bench' }), 'bench')
    const credential = {
      ...{ current, user: 'system:node:node-1', complaints: [], life: { use: 'edge' } as const },
      ...{ observe: () => () => {}, run: () => Promise.resolve() },
    }
    const whoever = { known: () => ({ cluster: '', epoch: 0 }), admit: () => Promise.resolve(undefined) }
    const addresses = [new URL(`wss://127.0.0.1:${at?.port}`)]
    const hubs = new Hubs({ addresses, dial: dialTcp(), credential, now: Date.now, clock, log: silentLog })
    const link = new EdgeLink({ hubs, edge: 'node-1', release: '1', ...whoever, clock, log: silentLog })
    const upstream = new LinkedUpstream({ link, addresses, credential, userAgent: 'ake', clock, log: silentLog })
    const ending = new AbortController()
    const running = upstream.run(ending.signal)
    await new Promise<void>((resolve) => {
      const deaf = link.observe(() => {
        deaf()
        resolve()
      })
    })
    const epochs = { of: () => undefined, reached: () => {} }
    const open = followLinked({
      epochs,
      link,
      upstream,
      nameOf: () => interest,
      limits: { objects: pods, bytes: bytesMax },
      clock,
    })
    const { follow } = open({ scope, custom: false, kind: 'Pod', plan: () => noFields })
    const began = performance.now()
    const steps = follow({ held: undefined, start: 'anew', check: false }, ending.signal)[Symbol.asyncIterator]()
    while ((await steps.next()).value?.kind !== 'live');
    const firstMs = performance.now() - began
    const latencyMs = await oneByOne(source, steps)
    const perSecond = await asMany(source, steps)
    say(`  first ${firstMs.toFixed(0)} ms, one ${latencyMs.toFixed(2)} ms, ${perSecond.toFixed(0)} updates/s`)
    ending.abort()
    await running
    await listener.close('the measurement is over')
    const name = (what: string) => `an edge behind a hub, ${what}`
    return [
      { name: name(`first sync of ${pods} pods`), unit: 'ms', measured: { ake: firstMs } },
      { name: name('an update from hub to step, median'), unit: 'ms', measured: { ake: latencyMs }, atMost: 5 },
      { name: name('updates followed, both ends on one core'), unit: '/s', measured: { ake: perSecond } },
    ] satisfies Figure[]
  },
}

type StampedPod = Pod & { readonly uid: string }

/** Pods that are stamped at the hub, one after the other. */
class Source {
  readonly #hub: ModelHub
  readonly #pods: readonly StampedPod[]
  #version = 1_000_000
  #next = 0

  constructor(hub: ModelHub) {
    this.#hub = hub
    const random = chanceOf(5)
    this.#pods = makePods(pods).map((pod) => ({ ...pod, uid: uuid(random) }))
    for (let at = 0; at < pods; at++) this.stamp()
    hub.forget()
  }

  stamp(): void {
    const { namespace, name, object, uid } = this.#pods[this.#next++ % pods] as StampedPod
    const version = ++this.#version
    const annotations = { [stampKey]: String(10n ** 19n + BigInt(version) * 12_345_678_901n) }
    const metadata = { ...object.metadata, uid, resourceVersion: String(version), annotations }
    const key = `${namespace}/${name}`
    this.#hub.change(key, { key, uid, version, bytes: Buffer.from(JSON.stringify({ ...object, metadata })) }, version)
    // The model keeps everything that is not forgotten.
    if (version % pods === 0) this.#hub.forget()
  }
}

async function oneByOne(source: Source, steps: AsyncIterator<Followed>): Promise<number> {
  const times: number[] = []
  for (let at = 0; at < alone; at++) {
    const began = performance.now()
    source.stamp()
    await steps.next()
    times.push(performance.now() - began)
  }
  return times.sort((a, b) => a - b)[alone / 2] ?? 0
}

/** A batch after the other, each as soon as the last one is there. */
async function asMany(source: Source, steps: AsyncIterator<Followed>): Promise<number> {
  const began = performance.now()
  for (let told = 0; told < together; told += batch) {
    for (let at = 0; at < batch; at++) source.stamp()
    for (let left = batch; left > 0; ) {
      const { value } = await steps.next()
      if (value?.kind === 'changes') left -= value.changes.filter(({ type }: { type: string }) => type === 'put').length
    }
  }
  return (1000 * together) / (performance.now() - began)
}
