/** `ake edge`: the endpoint over a durable mirror of a real API server. The composition root: only wiring here. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { gauge, seriesOf } from '../base/metrics.ts'
import { Measures } from '../endpoint/documents/measures.ts'
import { tokenCallers } from '../endpoint/forward/fairupstream.ts'
import { Server } from '../endpoint/sockets/server.ts'
import type { Candidate, Cluster } from '../mirror/cluster.ts'
import { ClusterGate } from '../mirror/clustergate.ts'
import type { Interests } from '../mirror/interests.ts'
import { serverUrl, writeKubeconfig } from '../pki/kubeconfig.ts'
import { openPki } from '../pki/pki.ts'
import type { Store } from '../store/store.ts'
import { dialTcp } from '../upstream/dial.ts'
import { DirectUpstream } from '../upstream/direct.ts'
import { followFiles } from '../upstream/files.ts'
import type { Gate, Upstream } from '../upstream/upstream.ts'
import { type ClusterMirror, openMirror } from './clustermirror.ts'
import type { EdgeConfig } from './config.ts'
import { openOrSetAside } from './datafolder.ts'
import { endInOrder } from './ending.ts'
import { lockFolder } from './lockfile.ts'
import { connectionsHere } from './openfiles.ts'
import type { ClusterStatus } from './statusdocument.ts'
import { akeVersion } from './version.ts'

/** How often the file of --client-ca is looked at. */
const lookEveryMs = 5_000

type Running = { readonly log: Log; readonly signal: AbortSignal; ready(url: string): void }

export async function edge(config: EdgeConfig, { log, signal, ready }: Running): Promise<void> {
  const clock = systemClock
  const clientCa = await readClientCa(config.clientCa)
  let gate: ClusterGate | undefined
  const admission: Gate = {
    admit: (arrival) => (gate as ClusterGate).admit(arrival),
    look: (arrival) => (gate as ClusterGate).look(arrival),
  }
  const upstream = await openUpstream(config, admission, log)
  const unlock = await lockFolder(config.data)
  let opened: Store | undefined
  try {
    const found = await openOrSetAside({ ...config, log }, async (store) => {
      const known = await ClusterGate.open({ store, clock, log, spanMs: config.otherClusterAfter })
      gate = known
      return { known, mirror: await openMirror({ store, config, upstream, log, lost: known.lost }) }
    })
    const { store } = found
    opened = store
    const { known } = found.opened
    let { mirror } = found.opened
    const pki = await openPki({ folder: join(config.data, 'pki'), host: config.listen.host, now: clock.now() })
    const measures = new Measures({
      copy: mirror.copy,
      store,
      more: () => figuresOf(upstream, mirror.interests, known),
    })
    const damage = found.setAside === undefined ? [] : [`what could not be used is in ${found.setAside}`]
    const around = { measures, cluster: () => clusterStatus(known), damage }
    let endpoint = mirror.serve(around)

    const { host } = config.listen
    const server = new Server({
      handle: (request) => endpoint.handle(request),
      upgrade: (request) => endpoint.upgrade(request),
      whose: tokenCallers({
        held: (identity) => mirror.access.held(identity),
        caller: (identity) => mirror.access.caller(identity),
      }),
      address: config.listen,
      tls: { ...pki.serving, clientCa: pki.ca, ...(clientCa === undefined ? {} : { callersCa: clientCa }) },
      traffic: measures.traffic,
      log,
      limits: { connectionsMax: connectionsHere() },
    })
    const port = await server.listen()
    const url = serverUrl(host, port)
    await writeKubeconfig(join(config.data, 'admin.kubeconfig'), url, pki)
    log.info('edge.ready', { url, interests: mirror.interests.size })
    ready(url)
    // What was passed on before the signal gets its answer, and is held until the copy has it: both need what is below.
    const drained = new AbortController()

    /** One mirror after the other: each as long as its cluster is the one that is believed in. */
    const runMirrors = async () => {
      const ending: Promise<void>[] = []
      for (let over = new AbortController(); ; over = new AbortController()) {
        const signals = {
          ended: AbortSignal.any([signal, over.signal]),
          drained: AbortSignal.any([drained.signal, over.signal]),
        }
        const running = mirror.run(signals)
        ending.push(running)
        const next = await nextCluster(known, mirror, running, log)
        if (next === undefined) break
        over.abort()
        mirror = await openMirror({ store, config, upstream, log, lost: next.lost })
        endpoint = mirror.serve(around)
        known.adopted(next.cluster, next.lost)
      }
      await Promise.all(ending)
    }
    await Promise.all([
      upstream.run(drained.signal),
      runMirrors(),
      endInOrder(signal, server, () => drained.abort()),
      followClientCa(config.clientCa, server, { log, signal }),
    ])
    log.info('edge.ended')
  } finally {
    await opened?.close()
    unlock()
  }
}

/** Waits until another cluster is believed in and what is of the old one is dropped; undefined: the mirror has ended first. */
async function nextCluster(
  gate: ClusterGate,
  mirror: ClusterMirror,
  running: Promise<void>,
  log: Log,
): Promise<{ cluster: Cluster; lost: number } | undefined> {
  for (;;) {
    const cluster = await Promise.race([gate.another(), running])
    if (cluster === undefined) return undefined
    const lost = mirror.newest()
    const from = gate.known?.uid ?? ''
    try {
      await mirror.drop(gate.recordOf(cluster, lost))
      log.warn('cluster.changed', { from, to: cluster.uid, lost })
      return { cluster, lost }
    } catch (error) {
      // A disk that refuses: the old copy is served on, as while the cloud is away.
      log.error('cluster.unchanged', { from, to: cluster.uid, why: reasonOf(error) })
      gate.declined()
    }
  }
}

async function openUpstream(config: EdgeConfig, gate: Gate, log: Log): Promise<DirectUpstream> {
  try {
    return await DirectUpstream.open({
      dial: dialTcp(),
      servers: config.server,
      kubeconfig: config.kubeconfig,
      certificates: config.clientCredential,
      probeEveryMs: config.probeEvery,
      userAgent: `ake/${akeVersion} (edge)`,
      clock: systemClock,
      log,
      gate,
    })
  } catch (error) {
    throw new UsageError(`${reasonOf(error)}: check --kubeconfig and --server`)
  }
}

async function readClientCa(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`cannot read ${path} (${reasonOf(error)}): check --client-ca`)
  }
}

/** The file is read again when it changes; one that cannot be used leaves the last one in force. */
async function followClientCa(
  path: string | undefined,
  server: Server,
  { log, signal }: { log: Log; signal: AbortSignal },
): Promise<void> {
  if (path === undefined) return
  const changed = async () => {
    try {
      server.setCallersCa(await readFile(path, 'utf8'))
    } catch (error) {
      log.warn('edge.clientCa', { path, why: reasonOf(error) })
    }
  }
  await followFiles({ paths: () => [path], everyMs: lookEveryMs, clock: systemClock, changed }, signal)
}

function clusterStatus({ known, candidate, changes }: ClusterGate): ClusterStatus {
  return {
    ...(known === undefined || known.uid === '' ? {} : { uid: known.uid }),
    ...(candidate === undefined ? {} : { other: otherText(candidate) }),
    changes,
  }
}

function otherText({ uid, at }: Candidate): string {
  return `another cluster (${uid === '' ? 'of unknown uid' : uid}) answers at ${at.join(', ')}: nothing is taken from it`
}

function figuresOf({ reachability }: Upstream, interests: Interests, gate: ClusterGate): string[] {
  const states = (['reachable', 'suspect', 'unreachable'] as const).map(
    (state) => [seriesOf({ state }), reachability.state === state ? 1 : 0] as const,
  )
  const kinds = new Map<string, number>()
  for (const { state } of interests.all) kinds.set(state.kind, (kinds.get(state.kind) ?? 0) + 1)
  return [
    gauge('ake_upstream_state', 'Whether the API server can be reached.', states),
    gauge('ake_upstream_limit_seconds', 'How long a read may wait for it.', [['', reachability.limitMs / 1000]]),
    gauge('ake_cluster_changes_total', 'Copies begun anew for another cluster since the start.', [['', gate.changes]]),
    gauge('ake_cluster_other', 'Whether another cluster answers in place of the mirrored one.', [
      ['', gate.candidate === undefined ? 0 : 1],
    ]),
    gauge(
      'ake_interests',
      'Interests by what their reflectors do.',
      [...kinds].map(([state, count]) => [seriesOf({ state }), count] as const),
    ),
  ]
}
