/**
 * Everything an edge has of one cluster, and what answers from it: the copy, who may read it, the documents, what is passed
 * on. Another cluster gets another one, so that nothing that was remembered can be carried over.
 */
import { openAccess } from '../access/open.ts'
import { systemClock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { MirrorCopy } from '../cache/mirrorcopy.ts'
import { CloudAccess } from '../endpoint/cloudaccess.ts'
import { Health } from '../endpoint/documents/health.ts'
import type { Measures } from '../endpoint/documents/measures.ts'
import { StatusPath } from '../endpoint/documents/status.ts'
import { FairUpstream } from '../endpoint/forward/fairupstream.ts'
import { Forwarder } from '../endpoint/forward/forwarder.ts'
import { ReadYourWrites } from '../endpoint/forward/readyourwrites.ts'
import { Tokens } from '../endpoint/forward/tokens.ts'
import { Front } from '../endpoint/request/mirror/front.ts'
import { MirrorAnswers } from '../endpoint/request/mirror/mirror.ts'
import { MirrorReads } from '../endpoint/request/mirror/reads.ts'
import { Endpoint } from '../endpoint/request/pipeline.ts'
import { ClientCredentials } from '../endpoint/sockets/clientcredentials.ts'
import { standardLimits } from '../endpoint/sockets/limits.ts'
import { Comparison } from '../mirror/comparison.ts'
import { CloudCatalog } from '../mirror/documents/catalog.ts'
import { CloudRelease } from '../mirror/documents/cloudrelease.ts'
import { CloudDocuments } from '../mirror/documents/documents.ts'
import { resourceOfName } from '../mirror/interest.ts'
import { Interests } from '../mirror/interests.ts'
import type { RecordChange, Store } from '../store/store.ts'
import type { DirectUpstream } from '../upstream/direct.ts'
import { followDirect } from '../upstream/follow/direct.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { ClusterStore } from './clusterstore.ts'
import type { EdgeConfig } from './config.ts'
import { confirmRefusal } from './confirm.ts'
import { damageOf } from './datafolder.ts'
import { Roles } from './roles.ts'
import { holdWanted } from './standing.ts'
import { type ClusterStatus, statusOf } from './statusdocument.ts'

export type ClusterParts = {
  readonly store: Store
  readonly config: EdgeConfig
  readonly upstream: DirectUpstream
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
  const { config, upstream, log, lost } = parts
  const clock = systemClock
  const store = new ClusterStore(parts.store)
  const limits = { objects: config.firstListMax, bytes: config.firstListBytes }
  const follow = followDirect({ upstream, limits, clock, confirm: () => upstream.confirm() })
  const catalog = new CloudCatalog()
  const documents = new CloudDocuments({ store, upstream, catalog, clock, log })
  const find = (group: string, version: string, resource: string) => catalog.find(group, version, resource)
  const confirm = confirmRefusal({ upstream, catalog })
  const interests = await Interests.open({
    ...{ store, upstream, follow, clock, log, find, confirm, lost },
    budget: { bytesMax: config.mirrorBytes },
  })
  const { planOf, lostOf } = interests
  const credentialVersion = (name: string) => upstream.credentialVersion(name)
  const [copy, asking] = await Promise.all([
    MirrorCopy.open({
      ...{ store, clock, log, planOf, lostOf, resourceOf: resourceOfName },
      // While the cloud is away nothing gets older: who slept through it resumes.
      aging: { ageMs: config.historyAge, counts: () => upstream.reachability.state === 'reachable' },
    }),
    openAccess({ upstream, records: store, clock, log, credentialVersion }),
    documents.load(),
  ])
  const { access, tokens: keeper, watches, changes, nowMs, run: runAccess } = asking
  interests.attach(copy)
  const release = new CloudRelease({ documents, reachability: upstream.reachability, clock })
  const comparison = new Comparison({ all: () => interests.all, reachability: upstream.reachability, clock, log })
  let roles: Roles | undefined

  return {
    access,
    copy,
    interests,
    comparison,

    /** From here on it answers. */
    serve({ measures, cluster, damage: before }: AroundCluster): Endpoint {
      holdWanted({ interests, catalog, documents, keeper, wanted: config.mirror, log })
      roles = new Roles({ interests, catalog, upstream, changes, clock })
      catalog.observe(() => interests.replan())
      measures.measure(copy)

      const credentials = new ClientCredentials((name) => upstream.certificateOf(name))
      const front = new Front({ interests, upstream, clock })
      const readYourWrites = new ReadYourWrites({ interests, upstream, clock })
      const passed = new FairUpstream({ upstream, access, limits: standardLimits })
      const asked = new CloudAccess({ access, isMapped: (certificate) => credentials.matches(certificate), nowMs })
      const judging = { access, authentication: asked, authorization: asked, catalog, clock }
      const tokens = new Tokens({ ...judging, upstream: passed, keeper, nowMs })
      const forwarder = new Forwarder({ ...judging, upstream: passed, interests, readYourWrites, tokens })
      const passing = { ...judging, upstream, forwarder }
      const reading = new MirrorReads({ ...passing, watches, front, readYourWrites, release })
      const unread = () =>
        interests.lost.map((name) => `what ${name} is was lost: it is read again when somebody asks for it`)
      const damage = () => [...before, ...unread(), ...damageOf(copy, store)]
      const health = new Health({
        checks: [
          { name: 'store', ready: true, run: () => (copy.healthy ? undefined : 'the disk refuses writes') },
          // Whatever is damaged here is fetched again: it is told, and no reason to send clients away.
          { name: 'data', ready: true, run: () => undefined, note: () => damage().join('; ') || 'whole' },
          { name: 'upstream', ready: true, run: () => undefined, note: () => sentenceOf(upstream) },
        ],
      })
      const status = new StatusPath(() =>
        statusOf({ upstream, cluster: cluster(), interests, copy, store, clock, damage: damage() }),
      )
      const answers = new MirrorAnswers({ ...passing, reading, own: [health, measures, status], mirrored: documents })
      return new Endpoint({ ...passing, answering: answers, beyond: answers, measures, log })
    },

    async run({ ended, drained }: Running): Promise<void> {
      await Promise.all([
        interests.run(drained),
        comparison.run(drained),
        roles?.run(drained),
        documents.run(drained),
        release.run(drained),
        runAccess(drained),
        copy.run(ended),
      ])
    },

    /** The newest version that a client may have of this cluster or one before it. */
    newest(): number {
      return Math.max(lost, ...[...copy.caches].map(([name, { version }]) => Math.max(version, lostOf(name))))
    },

    /** Drops all of it, on the disk and here; every watch ends with 410. Rejects where the disk refuses, and goes on. */
    async drop(known: RecordChange): Promise<void> {
      await store.drop(copy.caches.keys(), known)
      await Promise.all([...copy.caches.keys()].map((name) => copy.end(name, 'anew')))
    },
  }
}

function sentenceOf({ reachability: { state, why, sinceMs } }: Upstream): string {
  return `${state} since ${new Date(sinceMs).toISOString()}, ${why}`
}
