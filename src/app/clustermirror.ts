/**
 * Everything an edge has of one cluster, and what answers from it: the copy, which callers may read it, the documents, what is passed
 * on. Another cluster gets another one, so that nothing that was remembered can be carried over.
 */
import type { Access } from '../access/access.ts'
import type { KnownRules } from '../access/knownrules.ts'
import { openAccess } from '../access/open.ts'
import { systemClock } from '../base/clock.ts'
import { reasonOf } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { MirrorCopy } from '../cache/mirrorcopy.ts'
import { CloudAccess } from '../endpoint/cloudaccess.ts'
import { Health } from '../endpoint/documents/health.ts'
import type { Measures } from '../endpoint/documents/measures.ts'
import { StatusPath } from '../endpoint/documents/status.ts'
import { FairUpstream } from '../endpoint/forward/fairupstream.ts'
import { Forwarder } from '../endpoint/forward/forwarder.ts'
import { ReadYourWrites } from '../endpoint/forward/readyourwrites.ts'
import { RefusedWrites } from '../endpoint/forward/refusedwrites.ts'
import { Tokens } from '../endpoint/forward/tokens.ts'
import { Front } from '../endpoint/request/mirror/front.ts'
import { MirrorAnswers } from '../endpoint/request/mirror/mirror.ts'
import { MirrorReads } from '../endpoint/request/mirror/reads.ts'
import { Endpoint } from '../endpoint/request/pipeline.ts'
import { ClientCredentials } from '../endpoint/sockets/clientcredentials.ts'
import { standardLimits } from '../endpoint/sockets/limits.ts'
import { type InCluster, Views } from '../endpoint/views/views.ts'
import { Comparison } from '../mirror/comparison.ts'
import { Contact } from '../mirror/contact.ts'
import { CloudCatalog } from '../mirror/documents/catalog.ts'
import { CloudRelease } from '../mirror/documents/cloudrelease.ts'
import { CloudDocuments } from '../mirror/documents/documents.ts'
import { resourceOfName } from '../mirror/interest.ts'
import { Interests } from '../mirror/interests.ts'
import type { RecordChange, Store } from '../store/store.ts'
import type { CredentialLife } from '../upstream/credential.ts'
import { MirroredObjects } from './boundobjects.ts'
import type { CloudLine } from './cloudline.ts'
import { ClusterStore } from './clusterstore.ts'
import type { EdgeConfig } from './config.ts'
import { damageOf } from './datafolder.ts'
import { unlimited } from './edgeterms.ts'
import { classesOf } from './incluster.ts'
import { KubeletRights } from './kubeletrights.ts'
import { KubernetesService } from './kubernetesservice.ts'
import { tellTargets } from './mirrortargets.ts'
import type { Misconfigured } from './misconfigured.ts'
import { NodeNeeds } from './node.ts'
import { OfflineLimits } from './offlinelimits.ts'
import { OwnNode } from './ownnode.ts'
import { Roles, roleInterests } from './roles.ts'
import { holdWanted, releaseUnwanted } from './standing.ts'
import { type ClusterStatus, statusOf } from './statusdocument.ts'
import { freeBytesAt, Survey } from './survey.ts'
import { upstreamCheck } from './upstreamcheck.ts'

export type ClusterParts = {
  readonly store: Store
  readonly config: EdgeConfig
  readonly line: CloudLine
  readonly log: Log
  /** The newest version that clients may have of a cluster before this one. */
  readonly lost: number
}

/** What outlives a cluster. */
export type AroundCluster = {
  readonly measures: Measures
  readonly cluster: () => ClusterStatus
  /** What is wrong with the folder besides, a sentence each. */
  readonly damage: readonly string[]
  readonly misconfigured: Misconfigured
  readonly credentials: () => readonly CredentialLife[]
  /** How pods find this edge now. */
  readonly inCluster: () => InCluster
}

type Running = {
  /** Watches end in order. */
  readonly ended: AbortSignal
  /** Nothing is waited for any longer. */
  readonly drained: AbortSignal
}

export type ClusterMirror = Awaited<ReturnType<typeof openMirror>>

/** Reads what is stored before any client is served. */
export async function openMirror(parts: ClusterParts) {
  const { config, line, log, lost } = parts
  const { upstream } = line
  const clock = systemClock
  const store = new ClusterStore(parts.store)
  const limits = { objects: config.firstListMax, bytes: config.firstListBytes }
  const proven = (name: string) => interests.named(name)?.proven()
  const policed = () => interests.hurry()
  const { follow, proofs, terms = unlimited } = await line.follow({ store, limits, log, proven, policed })
  const catalog = new CloudCatalog()
  const isAhead = config.node !== undefined
  const documents = new CloudDocuments({ store, upstream, catalog, clock, log, isAhead })
  const find = (group: string, version: string, resource: string) => catalog.find(group, version, resource)
  const confirm = line.confirms(catalog)
  const interests = await Interests.open({
    ...{ store, upstream, follow, clock, log, find, confirm, lost },
    budget: { bytesMax: config.mirrorBytes },
    spreadMs: line.spreadMs,
  })
  const { planOf, lostOf } = interests
  const credentialVersion = (name: string) => upstream.credentialVersion(name)
  let offline: OfflineLimits | undefined
  let known: KnownRules | undefined
  const callers = line.callers?.({
    told: (...told) => known?.told(...told),
    stands: async (...news) => await known?.stands(...news),
  })
  const objects = new MirroredObjects({ interests, reachability: upstream.reachability, clock })
  const [copy, asking, storedViews] = await Promise.all([
    MirrorCopy.open({
      ...{ store, clock, log, planOf, lostOf, resourceOf: resourceOfName },
      // While the cloud is away nothing gets older: a client that slept through it resumes.
      aging: { ageMs: config.historyAge, counts: () => upstream.reachability.state === 'reachable' },
    }),
    openAccess({
      ...{ upstream, records: store, clock, log, credentialVersion, objects },
      opaqueMsMax: () => Math.min(config.tokenOfflineAge, terms.tokenAgeMs ?? Number.POSITIVE_INFINITY),
      takesTokens: () => offline?.takesTokens ?? true,
      audiences: config.apiAudience,
      seen: (identity, caller) => callers?.seen(identity, caller),
    }),
    store.records('view'),
    documents.load(),
  ])
  const { access, accounts, tokens: keeper, watches, changes, evaluation, nowMs, whoami, run: runAccess } = asking
  known = asking.rules
  if (accounts !== undefined) objects.observe(accounts)
  line.trustTime(nowMs)
  const contact = await Contact.open({ store, interests, reachability: upstream.reachability, clock, nowMs })
  const limited = new OfflineLimits({ terms, contact, reachability: upstream.reachability, nowMs })
  offline = limited
  interests.attach(copy)
  const release = new CloudRelease({ documents, reachability: upstream.reachability, clock })
  const comparison = new Comparison({
    ...{ all: () => interests.all, reachability: upstream.reachability, clock, log },
    bytesPerDayMax: line.comparedBytesPerDay,
  })
  const refusedWrites = new RefusedWrites({ clock, reachability: upstream.reachability, catalog })
  const service = new KubernetesService(interests)
  const judgeNode = (node: string) => {
    const { reachability } = upstream
    const changed = () => void evaluation.revision++
    evaluation.judgeNodesBy(new OwnNode({ interests, catalog, release, reachability, node, clock, changed }))
  }
  let roles: Roles | undefined
  let needs: NodeNeeds | undefined
  let rights: KubeletRights | undefined
  let survey: Survey | undefined
  let views: Views | undefined
  const newest = () => Math.max(lost, ...[...copy.caches].map(([name, { version }]) => Math.max(version, lostOf(name))))

  return {
    access,
    copy,
    catalog,
    interests,
    comparison,
    contact,

    /** From here on it answers. */
    serve(around: AroundCluster): Endpoint {
      const { measures, cluster, damage: before, credentials: lives, misconfigured, inCluster } = around
      const { tell } = misconfigured
      holdWanted({ interests, catalog, documents, keeper, wanted: config.mirror, log })
      tellTargets({ catalog, wanted: config.mirror, tell })
      roles = new Roles({ interests, catalog, upstream, changes, evaluation, clock, mayRead: line.mayRead })
      needs = new NodeNeeds({ interests, catalog, node: config.node, clock, log })
      if (config.node !== undefined) judgeNode(config.node)
      const others = () => [...roleInterests, ...(needs?.names ?? [])]
      releaseUnwanted({ interests, catalog, wanted: config.mirror, others })
      rights = kubeletRights({ needs, access, config, line })
      catalog.observe(() => interests.replan())
      measures.show({ copy, catalog })

      const credentials = new ClientCredentials({
        find: (name) => upstream.certificateOf(name),
        told: (name, standing, why) => {
          const what = standing === 'named' ? 'read what they may and write nothing' : 'count as anonymous'
          tell(`certificate ${name}`, why && `callers with the certificate of "${name}" ${what}: ${why}`)
        },
      })
      const front = new Front({ interests, upstream, clock, contact, proofs })
      const readYourWrites = new ReadYourWrites({ interests, upstream, clock })
      const passed = new FairUpstream({ upstream, access, limits: standardLimits })
      const asked = new CloudAccess({
        ...{ access, nowMs, reachability: upstream.reachability },
        standingOf: (certificate) => credentials.standingOf(certificate),
      })
      const judging = { access, authentication: asked, authorization: asked, catalog, clock }
      const tokens = new Tokens({ ...judging, upstream: passed, keeper, nowMs })
      const forwarder = new Forwarder({
        ...judging,
        upstream: passed,
        interests,
        readYourWrites,
        refusedWrites,
        reviews: { access, clock, log, ...(callers && { heard: (subject) => callers.reviewed(subject) }) },
        tokens,
      })
      const passing = { ...judging, upstream, forwarder }
      const write = (records: readonly RecordChange[]) =>
        void store
          .commit({ changes: [], records, synced: false })
          .catch((error: unknown) => log.warn('view.unwritten', { why: reasonOf(error) }))
      const stored = { stored: storedViews, records: { write }, newest }
      views = new Views({ ...classesOf(config), shown: inCluster, ...stored, clock })
      const reading = new MirrorReads({ ...passing, watches, front, readYourWrites, release, views })
      const unread = () =>
        interests.lost.map((name) => `what ${name} is was lost: it is read again when somebody asks for it`)
      const damage = () => [...before, ...unread(), ...damageOf(copy, store)]
      const wrong = () => [...upstream.complaints, ...misconfigured.all]
      const surveying = new Survey({
        ...{ interests, catalog, needs, keeper, upstream, node: config.node, targets: config.mirror, clock, nowMs },
        credentials: lives,
        whoami: line.subject === undefined ? whoami : () => Promise.resolve(line.subject),
        misconfigured: wrong,
        disk: () => ({ isHealthy: copy.healthy, damage: damage() }),
        freeBytes: () => freeBytesAt(config.data),
      })
      survey = surveying
      const health = new Health({
        checks: [
          { name: 'store', ready: true, run: () => (copy.healthy ? undefined : 'the disk refuses writes') },
          // Whatever is damaged here is fetched again: it is told, and no reason to send clients away.
          { name: 'data', ready: true, run: () => undefined, note: () => damage().join('; ') || 'whole' },
          upstreamCheck(upstream.reachability, contact),
        ],
      })
      const status = new StatusPath(() => {
        const parts = { upstream, interests, copy, store, contact, refusedWrites }
        const told = { cluster: cluster(), credentials: lives(), damage: damage(), misconfigured: wrong() }
        return { ...statusOf({ ...parts, ...told }), survival: surveying.survival() }
      })
      const answers = new MirrorAnswers({
        ...{ ...passing, reading, own: [health, measures, status], mirrored: documents },
        unserved: () => limited.unserved,
      })
      return new Endpoint({ ...passing, answering: answers, beyond: answers, measures, log })
    },

    async run({ ended, drained }: Running): Promise<void> {
      const deaf = upstream.onRenewed(() => {
        interests.hurry()
        documents.refresh()
        void survey?.ask()
      })
      await Promise.all([
        interests.run(drained),
        proofs?.run(drained),
        comparison.run(drained),
        contact.run(drained),
        roles?.run(drained),
        needs?.run(drained),
        rights?.run(drained),
        callers?.run(drained),
        survey?.run(drained),
        documents.run(drained),
        release.run(drained),
        views?.run(drained),
        runAccess(drained),
        copy.run(ended),
      ])
      deaf()
    },

    figures(): string[] {
      return [
        ...refusedWrites.figures(),
        ...evaluation.figures(),
        ...(accounts?.figures() ?? []),
        ...(survey?.figures() ?? []),
      ]
    },

    /** The addresses of the service by which pods find an API server, as far as they are known. */
    get serviceAddresses(): readonly string[] {
      return service.addresses
    },

    /** The newest version that a client may have of this cluster or one before it. */
    newest,

    /** Whether pods are to find it in another way than before. */
    look(): void {
      views?.look()
    },

    /** Drops all of it, on the disk and here; every watch ends with 410. Rejects where the disk refuses, and goes on. */
    async drop(known: RecordChange): Promise<void> {
      await store.drop(copy.caches.keys(), known)
      await Promise.all([...copy.caches.keys()].map((name) => copy.end(name, 'anew')))
    },
  }
}

/** Where the edge may speak for it. */
function kubeletRights(parts: {
  needs: NodeNeeds
  access: Access
  config: EdgeConfig
  line: CloudLine
}): KubeletRights | undefined {
  const { needs, access, config, line } = parts
  const { node, clientCredential } = config
  if (node === undefined) return undefined
  if (line.node !== node && !clientCredential.some(({ name }) => name === `system:node:${node}`)) return undefined
  return new KubeletRights({ needs, access, node, reachability: line.upstream.reachability, clock: systemClock })
}
