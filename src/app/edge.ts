/** `ake edge`: the endpoint over a durable mirror of a real API server. The composition root: only wiring here. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openAccess } from '../access/open.ts'
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { gauge, seriesOf } from '../base/metrics.ts'
import { MirrorCopy } from '../cache/mirrorcopy.ts'
import { CloudAccess } from '../endpoint/cloudaccess.ts'
import { Health } from '../endpoint/documents/health.ts'
import { Measures } from '../endpoint/documents/measures.ts'
import { StatusDocument } from '../endpoint/documents/status.ts'
import { CloudRelease } from '../endpoint/forward/cloudrelease.ts'
import { FairUpstream, tokenCallers } from '../endpoint/forward/fairupstream.ts'
import { Forwarder } from '../endpoint/forward/forwarder.ts'
import { Offline } from '../endpoint/forward/offline.ts'
import { ReadYourWrites } from '../endpoint/forward/readyourwrites.ts'
import { Tokens } from '../endpoint/forward/tokens.ts'
import { EdgeAnswers } from '../endpoint/request/edge.ts'
import { EdgeReading } from '../endpoint/request/edgeread.ts'
import { Front } from '../endpoint/request/front.ts'
import { Endpoint } from '../endpoint/request/pipeline.ts'
import { ClientCredentials } from '../endpoint/sockets/clientcredentials.ts'
import { standardLimits } from '../endpoint/sockets/limits.ts'
import { Server } from '../endpoint/sockets/server.ts'
import { Catalog } from '../mirror/documents/catalog.ts'
import { CloudDocuments } from '../mirror/documents/documents.ts'
import { Interests } from '../mirror/interests.ts'
import { serverUrl, writeKubeconfig } from '../pki/kubeconfig.ts'
import { openPki } from '../pki/pki.ts'
import type { Store } from '../store/store.ts'
import { dialTcp } from '../upstream/dial.ts'
import { DirectUpstream } from '../upstream/direct.ts'
import { followFiles } from '../upstream/files.ts'
import { followDirect } from '../upstream/follow/direct.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { EdgeConfig } from './config.ts'
import { confirmRefusal } from './confirm.ts'
import { damageOf, openOrSetAside } from './datafolder.ts'
import { endInOrder } from './ending.ts'
import { lockFolder } from './lockfile.ts'
import { connectionsHere } from './openfiles.ts'
import { Roles } from './roles.ts'
import { holdWanted } from './standing.ts'
import { statusOf } from './statusdocument.ts'
import { akeVersion } from './version.ts'

/** How often the file of --client-ca is looked at. */
const lookEveryMs = 5_000

type Running = { readonly log: Log; readonly signal: AbortSignal; ready(url: string): void }

export async function edge(config: EdgeConfig, { log, signal, ready }: Running): Promise<void> {
  const clock = systemClock
  const clientCa = await readClientCa(config.clientCa)
  const upstream = await openUpstream(config, log)
  const unlock = await lockFolder(config.data)
  let opened: Store | undefined
  try {
    const found = await openOrSetAside({ ...config, log }, (opening) => openAll(opening, { config, upstream, log }))
    const { store } = found
    opened = store
    const { catalog, documents, interests, pki, copy, asking } = found.opened
    const { access, tokens: keeper, watches, changes, nowMs, run: runAccess } = asking
    interests.attach(copy)
    holdWanted({ interests, catalog, documents, keeper, wanted: config.mirror, log })
    const roles = new Roles({ interests, catalog, upstream, changes, clock })
    catalog.observe(() => interests.replan())

    const { host } = config.listen
    const credentials = new ClientCredentials((name) => upstream.certificateOf(name))
    const measures = new Measures({ copy, store, more: () => figuresOf(upstream, interests) })
    const front = new Front({ interests, upstream, clock })
    const readYourWrites = new ReadYourWrites({ interests, upstream, clock })
    const passed = new FairUpstream({ upstream, access, limits: standardLimits })
    const tokens = new Tokens({ upstream: passed, access, keeper, nowMs, clock })
    const offline = new Offline({ access, catalog, interests, tokens, upstream })
    const forwarder = new Forwarder({ upstream: passed, access, catalog, readYourWrites, offline, tokens, clock, log })
    const release = new CloudRelease({ documents, reachability: upstream.reachability, clock })
    const asked = new CloudAccess({ access, isMapped: (certificate) => credentials.matches(certificate), nowMs })
    const parts = { authentication: asked, authorization: asked, catalog, upstream, forwarder, clock }
    const reading = new EdgeReading({ ...parts, watches, front, readYourWrites, release })
    const aside = found.setAside === undefined ? [] : [`what could not be used is in ${found.setAside}`]
    const lost = () =>
      interests.lost.map((name) => `what ${name} is was lost: it is read again when somebody asks for it`)
    const damage = () => [...aside, ...lost(), ...damageOf(copy, store)]
    const health = new Health({
      checks: [
        { name: 'store', ready: true, run: () => (copy.healthy ? undefined : 'the disk refuses writes') },
        // Whatever is damaged here is fetched again: it is told, and no reason to send clients away.
        { name: 'data', ready: true, run: () => undefined, note: () => damage().join('; ') || 'whole' },
        { name: 'upstream', ready: true, run: () => undefined, note: () => sentenceOf(upstream) },
      ],
    })
    const status = new StatusDocument(() => statusOf({ upstream, interests, copy, store, clock, damage: damage() }))
    const answers = new EdgeAnswers({ ...parts, reading, own: [health, measures, status], mirrored: documents })
    const endpoint = new Endpoint({ ...parts, answering: answers, beyond: answers, measures, log })
    const server = new Server({
      handle: (request) => endpoint.handle(request),
      upgrade: (request) => endpoint.upgrade(request),
      whose: tokenCallers(access),
      address: config.listen,
      tls: { ...pki.serving, clientCa: pki.ca, ...(clientCa === undefined ? {} : { callersCa: clientCa }) },
      traffic: measures.traffic,
      log,
      limits: { connectionsMax: connectionsHere() },
    })
    const port = await server.listen()
    const url = serverUrl(host, port)
    await writeKubeconfig(join(config.data, 'admin.kubeconfig'), url, pki)
    log.info('edge.ready', { url, interests: interests.size })
    ready(url)
    // What was passed on before the signal gets its answer, and is held until the copy has it: both need what is below.
    const drained = new AbortController()
    await Promise.all([
      upstream.run(drained.signal),
      interests.run(drained.signal),
      roles.run(drained.signal),
      documents.run(drained.signal),
      release.run(drained.signal),
      runAccess(drained.signal),
      copy.run(signal),
      endInOrder(signal, server, () => drained.abort()),
      followClientCa(config.clientCa, server, { log, signal }),
    ])
    log.info('edge.ended')
  } finally {
    await opened?.close()
    unlock()
  }
}

/** Everything that is read from the store before anybody is served. */
async function openAll(store: Store, parts: { config: EdgeConfig; upstream: DirectUpstream; log: Log }) {
  const { config, upstream, log } = parts
  const clock = systemClock
  const limits = { objects: config.firstListMax, bytes: config.firstListBytes }
  const follow = followDirect({ upstream, limits, clock })
  const catalog = new Catalog()
  const documents = new CloudDocuments({ store, upstream, catalog, clock, log })
  const find = (group: string, version: string, resource: string) => catalog.find(group, version, resource)
  const confirm = confirmRefusal({ upstream, catalog })
  const [interests, pki] = await Promise.all([
    Interests.open({ store, upstream, follow, clock, log, find, confirm }),
    openPki({ folder: join(config.data, 'pki'), host: config.listen.host, now: clock.now() }),
  ])
  const { planOf, lostOf } = interests
  const credentialVersion = (name: string) => upstream.credentialVersion(name)
  const [copy, asking] = await Promise.all([
    MirrorCopy.open({
      ...{ store, clock, log, planOf, lostOf },
      // While the cloud is away nothing gets older: who slept through it resumes.
      aging: { ageMs: config.historyAge, counts: () => upstream.reachability.state === 'reachable' },
    }),
    openAccess({ upstream, records: store, clock, log, credentialVersion }),
    documents.load(),
  ])
  return { catalog, documents, interests, pki, copy, asking }
}

async function openUpstream(config: EdgeConfig, log: Log): Promise<DirectUpstream> {
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

function sentenceOf({ reachability: { state, why, sinceMs } }: Upstream): string {
  return `${state} since ${new Date(sinceMs).toISOString()}, ${why}`
}

function figuresOf({ reachability }: Upstream, interests: Interests): string[] {
  const states = (['reachable', 'suspect', 'unreachable'] as const).map(
    (state) => [seriesOf({ state }), reachability.state === state ? 1 : 0] as const,
  )
  const kinds = new Map<string, number>()
  for (const { state } of interests.all) kinds.set(state.kind, (kinds.get(state.kind) ?? 0) + 1)
  return [
    gauge('ake_upstream_state', 'Whether the API server can be reached.', states),
    gauge('ake_upstream_limit_seconds', 'How long a read may wait for it.', [['', reachability.limitMs / 1000]]),
    gauge(
      'ake_interests',
      'Interests by what their reflectors do.',
      [...kinds].map(([state, count]) => [seriesOf({ state }), count] as const),
    ),
  ]
}
