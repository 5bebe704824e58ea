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
import type { Candidate } from '../mirror/cluster.ts'
import { ClusterGate } from '../mirror/clustergate.ts'
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
import { Mirrors } from './mirrors.ts'
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
    look: (arrival, withinMs) => (gate as ClusterGate).look(arrival, withinMs),
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
    const pki = await openPki({ folder: join(config.data, 'pki'), host: config.listen.host, now: clock.now() })
    const { copy } = found.opened.mirror
    const measures = new Measures({ copy, store, more: () => figuresOf(upstream, mirrors.current, known) })
    const damage = found.setAside === undefined ? [] : [`what could not be used is in ${found.setAside}`]
    const around = { measures, cluster: () => clusterStatus(known), damage }
    const mirrors = new Mirrors({ store, config, upstream, log, gate: known, around }, found.opened.mirror)

    const { host } = config.listen
    const server = new Server({
      handle: (request) => mirrors.handle(request),
      upgrade: (request) => mirrors.upgrade(request),
      whose: tokenCallers({
        held: (identity) => mirrors.current.access.held(identity),
        caller: (identity) => mirrors.current.access.caller(identity),
      }),
      compress: config.compress,
      address: config.listen,
      tls: { ...pki.serving, clientCa: pki.ca, ...(clientCa === undefined ? {} : { callersCa: clientCa }) },
      traffic: measures.traffic,
      log,
      limits: { connectionsMax: connectionsHere() },
    })
    const port = await server.listen()
    const url = serverUrl(host, port)
    await writeKubeconfig(join(config.data, 'admin.kubeconfig'), url, pki)
    log.info('edge.ready', { url, interests: mirrors.current.interests.size })
    ready(url)
    // What was passed on before the signal gets its answer, and is held until the copy has it: both need what is below.
    const drained = new AbortController()

    await Promise.all([
      upstream.run(drained.signal),
      mirrors.run({ signal, drained: drained.signal }),
      endInOrder(signal, server, () => drained.abort()),
      followClientCa(config.clientCa, server, { log, signal }),
    ])
    log.info('edge.ended')
  } finally {
    await opened?.close()
    unlock()
  }
}

async function openUpstream(config: EdgeConfig, gate: Gate, log: Log): Promise<DirectUpstream> {
  try {
    return await DirectUpstream.open({
      dial: dialTcp(),
      servers: config.server,
      kubeconfig: config.kubeconfig,
      certificates: config.clientCredential,
      environment: process.env,
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

function figuresOf({ reachability }: Upstream, { interests, comparison }: ClusterMirror, gate: ClusterGate): string[] {
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
    gauge('ake_mirror_silent_differences_total', 'Objects found to differ from the API server without a sign of it.', [
      ['', comparison.found],
    ]),
    gauge(
      'ake_interests',
      'Interests by what their reflectors do.',
      [...kinds].map(([state, count]) => [seriesOf({ state }), count] as const),
    ),
    ...interests.budget.figures(),
  ]
}
