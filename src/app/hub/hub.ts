/**
 * `ake hub`: what its edges want of one API server, read once and told to each of them over its link. The composition root: only
 * wiring here. It has nothing of its own but its state: what it mirrors is read again at each start, so that it can end at any time.
 */
import { hostname } from 'node:os'
import { type Clock, sleep, systemClock } from '../../base/clock.ts'
import { Unavailable } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { Warnings } from '../../base/warnings.ts'
import { Measures } from '../../endpoint/documents/measures.ts'
import { StatusPath } from '../../endpoint/documents/status.ts'
import { ClusterAuthorities } from '../../hub/access/clusterauthorities.ts'
import { NodeRights } from '../../hub/access/noderights.ts'
import { OwnRights } from '../../hub/access/ownrights.ts'
import { ProvenRights } from '../../hub/access/provenrights.ts'
import { EdgeForwarding } from '../../hub/forwarding/forwarding.ts'
import { NodeImpersonation } from '../../hub/forwarding/impersonation.ts'
import { EdgeIdentities } from '../../hub/identity/identities.ts'
import { Joining } from '../../hub/joining/joining.ts'
import { HubPeers } from '../../hub/peers/peers.ts'
import { Policies } from '../../hub/policy/policies.ts'
import { standardHubLimits } from '../../hub/sockets/limits.ts'
import { HubListener } from '../../hub/sockets/listener.ts'
import { authoritiesOf } from '../../hub/state/authorities.ts'
import { hubPair } from '../../hub/state/certificates.ts'
import { KeptEpoch } from '../../hub/state/epochs.ts'
import { KeptState } from '../../hub/state/keptstate.ts'
import { ClusterGate } from '../../mirror/clustergate.ts'
import { type Interest, kindOfName } from '../../mirror/interest.ts'
import { nearest } from '../../pki/kubeconfig.ts'
import { openMemory } from '../../store/memory.ts'
import type { Store } from '../../store/store.ts'
import type { DirectUpstream } from '../../upstream/direct.ts'
import type { HubConfig } from '../config.ts'
import { linksHere } from '../openfiles.ts'
import { akeVersion, buildInfo } from '../version.ts'
import { openHubCallers } from './callers.ts'
import { forwardingLimitsOf, hubHosts } from './config.ts'
import { HubDocuments } from './documents.ts'
import { hubFigures, type OpenHub } from './figures.ts'
import { HubFleet } from './fleet.ts'
import { HubHealth } from './health.ts'
import { type HubMirror, openHubMirror } from './mirror.ts'
import { openPolicyStatus } from './policystatus.ts'
import { HubReadiness, newestVersion } from './readiness.ts'
import { hubStatusOf } from './status.ts'
import { openHubUpstream, stateStoreAt } from './upstream.ts'

type Running = { readonly log: Log; readonly signal: AbortSignal; ready(url: string): void }

/** What a hub is made of before it lets edges in. */
type Begun = {
  readonly config: HubConfig
  readonly store: Store
  readonly upstream: DirectUpstream
  readonly gate: ClusterGate
  readonly mirror: HubMirror
  readonly readiness: HubReadiness
  readonly clock: Clock
  readonly log: Log
}

/** History lies in the window of each cache: the store below needs none. */
const storeHistoryBytes = 1024 * 1024
/** Replicas and edges outlive a certificate that is signed anew this often. */
const signEveryMs = 24 * 3600 * 1000
/** For edges to hear that their link ends. */
const lastWordsMsMax = 2_000
const name = hostname()
const refusalKinds = ['certificate', 'link', 'interest', 'request', 'caller', 'joiner']

export async function hub(config: HubConfig, { log, signal, ready }: Running): Promise<void> {
  const clock = systemClock
  const store = openMemory({ historyBytesMax: storeHistoryBytes })
  const gate = await ClusterGate.open({ store, clock, log, spanMs: config.otherClusterAfter })
  const upstream = await openHubUpstream({ ...config, gate, log })
  let open: (OpenHub & { restored(): void }) | undefined
  const mirror = await openHubMirror({ store, config, upstream, log, onRestored: () => open?.restored() })
  const { copy, catalog, interests, comparison } = mirror
  const { reachability } = upstream
  const readiness = new HubReadiness({ gate, catalog, reachability, clock, log })
  const more = () => [buildInfo(), ...hubFigures({ open, comparison, reachability })]
  const measures = new Measures({ copy, catalog, store, kindOf: kindOfName, more })
  const status = new StatusPath(() =>
    hubStatusOf({
      ...{ hub: name, open, why: readiness.why, uid: gate.known?.uid ?? '', upstream, interests, copy },
      ...{ trustsEdges: config.trustEdges, historyBytesMax: config.history, nowMs: clock.now() },
    }),
  )
  const health = new HubHealth([readiness.health, measures, status])
  const { host, port } = await health.listen(config.healthListen)
  log.info('hub.health', { at: `${host}:${port}` })

  // Another cluster in the place of this one: nothing that is here counts any more, and a new process begins with nothing.
  const isOther = new AbortController()
  void gate.another().then(({ uid }) => isOther.abort(otherCluster(uid, gate.known?.uid)))
  const over = AbortSignal.any([signal, isOther.signal])
  const ending = new AbortController()
  const below = [upstream.run(ending.signal), mirror.run(ending.signal), health.run(ending.signal)]
  try {
    const begun: Begun = { config, store, upstream, gate, mirror, readiness, clock, log }
    const opened = await openEdges(begun, over)
    if (opened !== undefined) {
      open = opened
      await opened.serve(over, { ready, isAtOnce: isOther.signal })
    }
  } finally {
    ending.abort()
    await Promise.all(below)
  }
  if (isOther.signal.aborted) throw isOther.signal.reason
  log.info('hub.ended')
}

/** Undefined: it was told to end before it could be opened. */
async function openEdges(begun: Begun, signal: AbortSignal) {
  const { config, upstream, gate, mirror, readiness, clock, log } = begun
  const store = stateStoreAt(config.state, upstream)
  const kept = await readiness.had('state', () => KeptState.open({ store, clock, log }), signal)
  if (kept === undefined || !(await readiness.known(signal))) return undefined
  const epoch = await readiness.had('state', () => KeptEpoch.open({ store, clock, log }), signal)
  const version = await readiness.had('version', () => newestVersion(upstream), signal)
  if (epoch === undefined || version === undefined) return undefined
  await epoch.begin(version)

  const { digestSecret: digestKey } = kept.current
  const warnings = new Warnings({ clock, log, kinds: refusalKinds })
  const sources = mirror.sources(digestKey)
  const nodes = new NodeRights({ sources, clock })
  const policies = new Policies({ sources, clock, log })
  const trustsEdges = config.trustEdges
  const impersonation = new NodeImpersonation({ upstream, clock, log })
  await impersonation.look()
  const limits = forwardingLimitsOf(config)
  const documents = new HubDocuments({ documents: mirror.documents, nodes })
  const { interests, catalog } = mirror
  const clusterAuthorities = new ClusterAuthorities({ sources, clock, log })
  const callers = await openHubCallers({
    ...{ upstream, interests, catalog, sources, records: begun.store, clock, log, warnings },
    speaking: {
      authorities: () => clusterAuthorities.current,
      speaksFor: (edge, caller) => policies.rulesOf(edge).speaksFor(caller),
      isConstrained: () => impersonation.isConstrained,
      allowsLegacy: config.legacyImpersonation,
    },
  })
  const forwarding = new EdgeForwarding({
    ...{
      upstream,
      trustsEdges,
      policies,
      impersonation,
      spoken: callers.spoken,
      reviewed: callers.reviewed,
      known: callers.known,
      documents,
      isAggregated: (group, version) => catalog.isAggregated(group, version),
      clock,
      log,
      warnings,
      limits,
    },
  })
  const { number, lost } = epoch.current
  const isNamespaced = ({ group, version, resource }: Interest) =>
    catalog.find(group, version, resource)?.resource.namespaced ?? true
  const rights = new ProvenRights({ nodes, callers: callers.proofs, trustsEdges, policies, isNamespaced })
  const ownRights = new OwnRights({ rights, clock })
  const fleet = new HubFleet({
    ...{ hub: name, upstream, sources, policies, clock, log, warnings, service: config.service },
    ...{ state: () => kept.current, clusterAuthorities },
  })
  const identities = new EdgeIdentities({
    ...{ state: () => kept.current, clusterAuthorities: () => clusterAuthorities.current },
    ...{ revoked: fleet.hooks.revoked, clock, log },
  })
  const peers = new HubPeers({
    ...{ hub: name, release: akeVersion, cluster: gate.known?.uid ?? '', epoch: number, lost, digestKey },
    signs: () => mirror.documents.signs,
    ...{ trustsEdges, sources, clock, log, warnings, rights, policies, ...fleet.hooks },
    acceptFor: (edge) => {
      const rest = callers.rules.acceptFor(edge, forwarding.acceptFor(edge))
      return identities.acceptFor(edge, ownRights.acceptFor(edge, callers.proofs.acceptFor(edge, rest)))
    },
  })
  fleet.attach(peers)
  const policyStatus = openPolicyStatus({
    ...{ hub: name, state: config.state, upstream, policies, peers, fleet, clock, log },
  })
  const serving = () => hubPair(kept.current, hubHosts(config), clock.now())
  const joining = new Joining({
    ...{ upstream, policies, clock, log, warnings },
    isLinked: (node) => peers.has(node) || fleet.isLinkedElsewhere(node),
    authorities: () => authoritiesOf(kept.current).map(({ pem }) => pem),
    clusterAuthorities: () => clusterAuthorities.current.map(String),
  })
  const listener = new HubListener({
    ...{ addresses: config.listen, state: kept.current, serving: serving(), clock, log },
    limits: { linksMax: Math.min(standardHubLimits.linksMax, linksHere()) },
    ...fleet.hooks,
    accepted: (link) => peers.accept(link),
    plain: (asked) => joining.answer(asked),
  })
  policies.observe((nodes) => void peers.policed(nodes))
  catalog.observe(() => policies.hurry())
  mirror.documents.observeSigns(() => peers.signed())
  kept.observe(() => {
    listener.setState(kept.current, serving())
    identities.changed()
    void peers.judgeCertificates()
  })
  clusterAuthorities.observe(() => {
    listener.setClusterAuthorities(clusterAuthorities.current)
    identities.changed()
    void peers.judgeCertificates()
  })
  epoch.observe((next, noticed) => {
    if (noticed === 'elsewhere') mirror.interests.doubt()
    sources.doubted()
    peers.lost(next.number, next.lost)
  })

  return {
    ...{
      listener,
      peers,
      sources,
      forwarding,
      epoch,
      callers,
      fleet,
      identities,
      joining,
      policies,
      policyStatus,
      warnings,
    },
    authorities: () => authoritiesOf(kept.current),

    /** The mirror has found that the cluster was put back. */
    restored(): void {
      sources.doubted()
      void epoch.raise(mirror.newest())
    },

    /** Until the signal; then edges are asked to move, unless there is no time for that. */
    async serve(signal: AbortSignal, { ready, isAtOnce }: Pick<Running, 'ready'> & { readonly isAtOnce: AbortSignal }) {
      const ending = new AbortController()
      nodes.start()
      mirror.followDefinitions(sources, ending.signal)
      const parts = [sources, policies, policyStatus, peers, callers, kept, impersonation, clusterAuthorities, fleet]
      const below = parts.map((one) => one.run(ending.signal))
      below.push(epoch.run(() => mirror.newest(), ending.signal))
      below.push(signAnew(() => listener.setServing(serving()), clock, ending.signal))
      try {
        // Edges that come before it can tell whose certificate was revoked, and who may have signed it, are sent away.
        await Promise.all([policies.first(), clusterAuthorities.first()])
        const { host, port } = nearest(await listener.listen())
        const url = `wss://${host.includes(':') ? `[${host}]` : host}:${port}`
        readiness.opened()
        log.info('hub.ready', { url, cluster: gate.known?.uid ?? '', epoch: epoch.current.number })
        ready(url)
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        readiness.ends()
        if (!isAtOnce.aborted) await drained({ listener, peers, withinMs: config.drain, clock, log })
      } finally {
        // One that does not answer the end of its link is not waited for.
        await Promise.race([listener.close('this hub ends'), sleep(clock, lastWordsMsMax)])
        nodes.stop()
        ending.abort()
        await Promise.all(below)
      }
    },
  }
}

async function drained(parts: {
  readonly listener: HubListener
  readonly peers: HubPeers
  readonly withinMs: number
  readonly clock: Clock
  readonly log: Log
}): Promise<void> {
  const { listener, peers, withinMs, clock, log } = parts
  log.info('hub.drains', { edges: peers.size, withinMs })
  listener.drain()
  const moved = new AbortController()
  const all = peers.drain(withinMs, 'this hub ends, others are there').then(() => moved.abort())
  await Promise.race([all, sleep(clock, withinMs, moved.signal)])
  log.info('hub.drained', { left: peers.size })
}

async function signAnew(sign: () => void, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(clock, signEveryMs, signal)
    if (!signal.aborted) sign()
  }
}

function otherCluster(uid: string, known = ''): Unavailable {
  return new Unavailable(
    `another cluster (${uid}) answers in the place of ${known}, for which this hub was started: it ends, and begins anew with that one when it is started again. Check --server and --kubeconfig if that was not meant`,
  )
}
