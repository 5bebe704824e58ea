/** `ake edge`: the endpoint over a durable mirror of a real API server. The composition root: only wiring here. */
import { readFile } from 'node:fs/promises'
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { Measures } from '../endpoint/documents/measures.ts'
import { tokenCallers } from '../endpoint/forward/fairupstream.ts'
import { Server } from '../endpoint/sockets/server.ts'
import type { InCluster } from '../endpoint/views/views.ts'
import type { Candidate } from '../mirror/cluster.ts'
import { ClusterGate } from '../mirror/clustergate.ts'
import { kindOfName } from '../mirror/interest.ts'
import { servingHosts } from '../pki/pki.ts'
import type { Store } from '../store/store.ts'
import { followFiles } from '../upstream/files.ts'
import type { Gate } from '../upstream/upstream.ts'
import type { CloudLine } from './cloudline.ts'
import { type ClusterMirror, openMirror } from './clustermirror.ts'
import type { EdgeConfig } from './config.ts'
import { openOrSetAside } from './datafolder.ts'
import { readKeys } from './encryptionkey.ts'
import { endInOrder } from './ending.ts'
import { Expiry, expiryFigures } from './expiry.ts'
import { edgeFigures } from './figures.ts'
import { inClusterOf } from './incluster.ts'
import { lockFolder } from './lockfile.ts'
import { Mirrors } from './mirrors.ts'
import { Misconfigured } from './misconfigured.ts'
import { connectionsHere } from './openfiles.ts'
import { Outage } from './outage.ts'
import { Serving } from './serving.ts'
import { type ClusterStatus, sinceMsOf } from './statusdocument.ts'
import { buildInfo } from './version.ts'
import { nodeOfWay, wayOf } from './way.ts'

/** How often the file of --client-ca is looked at. */
const lookEveryMs = 5_000

type Running = { readonly log: Log; readonly signal: AbortSignal; ready(url: string): void }

export async function edge(given: EdgeConfig, { log, signal, ready }: Running): Promise<void> {
  const clock = systemClock
  const clientCa = await readClientCa(given.clientCa)
  const keys = await readKeys(given.encryptionKey, { environment: process.env, log })
  let gate: ClusterGate | undefined
  const admission: Gate = {
    admit: (arrival) => (gate as ClusterGate).admit(arrival),
    look: (arrival, withinMs) => (gate as ClusterGate).look(arrival, withinMs),
  }
  const line = await openLine(given, { gate: admission, cluster: () => gate?.known?.uid ?? '', log })
  const { upstream } = line
  const config = { ...given, node: nodeOfWay(given.node, line.node) }
  const unlock = await lockFolder(config.data)
  let opened: Store | undefined
  try {
    const found = await openOrSetAside({ ...config, keys, log }, async (store) => {
      const known = await ClusterGate.open({ store, clock, log, spanMs: config.otherClusterAfter })
      gate = known
      return { known, mirror: await openMirror({ store, config, line, log, lost: known.lost }) }
    })
    const { store } = found
    opened = store
    const { known } = found.opened
    const { copy, catalog } = found.opened.mirror
    let current = (): ClusterMirror => found.opened.mirror
    const hosts = () =>
      servingHosts(
        config.listen.map(({ host }) => host),
        namesOf(config, current().serviceAddresses),
      )
    const serving = await Serving.open({ data: config.data, hosts, clock, log })
    const { pki } = serving
    const credentials = () => [...upstream.credentials(), { use: 'serving', endsAtMs: serving.endsAtMs } as const]
    const more = () => [
      buildInfo(),
      ...edgeFigures({ upstream, ...mirrors.current, gate: known }),
      ...mirrors.current.figures(),
      ...expiryFigures(credentials(), clock.now()),
    ]
    const measures = new Measures({ copy, catalog, store, kindOf: kindOfName, more })
    const damage = found.setAside === undefined ? [] : [`what could not be used is in ${found.setAside}`]
    const misconfigured = new Misconfigured({ log })
    misconfigured.tell('--client-ca', unheard(config))
    // Free ports are known once it listens.
    let listening = config.listen
    const inCluster = () => inClusterOf({ config, authority: pki.ca, listening })
    const around = { measures, cluster: () => clusterStatus(known), damage, credentials, misconfigured, inCluster }
    const mirrors = new Mirrors({ store, config, line, log, gate: known, around }, found.opened.mirror)
    current = () => mirrors.current

    const server = new Server({
      handle: (request) => mirrors.handle(request),
      upgrade: (request) => mirrors.upgrade(request),
      whose: tokenCallers({
        held: (identity) => mirrors.current.access.held(identity),
        caller: (identity) => mirrors.current.access.caller(identity),
      }),
      compress: config.compress,
      addresses: config.listen,
      tls: { ...pki.serving, clientCa: pki.ca, ...(clientCa === undefined ? {} : { callersCa: clientCa }) },
      traffic: measures.traffic,
      log,
      limits: { connectionsMax: connectionsHere() },
    })
    listening = await server.listen()
    mirrors.current.look()
    tellInCluster(config, inCluster(), log)
    const url = await serving.announce(listening)
    log.info('edge.ready', { url, interests: mirrors.current.interests.size })
    ready(url)
    const outage = new Outage({
      reachability: upstream.reachability,
      interests: () => mirrors.current.interests,
      refused: () => measures.unavailable,
      sinceMs: () => sinceMsOf(upstream.reachability, mirrors.current.contact),
      clock,
      log,
    })
    // What was passed on before the signal gets its answer, and is held until the copy has it: both need what is below.
    const drained = new AbortController()

    await Promise.all([
      upstream.run(drained.signal),
      mirrors.run({ signal, drained: drained.signal }),
      endInOrder(signal, server, () => drained.abort()),
      followClientCa(config.clientCa, server, { log, signal }),
      serving.run(server, signal),
      outage.run(signal),
      new Expiry({ credentials, clock, log }).run(signal),
    ])
    log.info('edge.ended')
  } finally {
    await opened?.close()
    unlock()
  }
}

async function openLine(
  config: EdgeConfig,
  parts: { gate: Gate; cluster: () => string; log: Log },
): Promise<CloudLine> {
  const way = wayOf(config)
  // Each is a hundred modules that the other way does not need.
  if ('hub' in way) return await (await import('./linkedline.ts')).openLinkedLine(way, parts)
  return await (await import('./directline.ts')).openDirectLine(config, way, parts)
}

/** How pods of this node find it, and why not where that was not said. */
function tellInCluster({ node, inCluster }: EdgeConfig, { here }: InCluster, log: Log): void {
  if (node === undefined || inCluster !== 'service') return
  if (here === undefined) log.info('inCluster.off', { why: 'it listens on loopback alone, which pods do not reach' })
  else log.info('inCluster.on', { at: here.map(({ host, port }) => `${host}:${port}`).join() })
}

/** By what else it is reached than where it listens: the node's name, and the service by which pods find an API server. */
function namesOf({ node }: EdgeConfig, serviceAddresses: readonly string[]): string[] {
  return [...(node === undefined ? [] : [node]), ...serviceAddresses]
}

/** Credentials of callers whose certificates cannot count. */
function unheard({ clientCredential, clientCa }: EdgeConfig): string | undefined {
  if (clientCredential.length === 0 || clientCa !== undefined) return undefined
  return `--client-credential has no effect without --client-ca: give the authorities of its callers' certificates`
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
