/** What a hub mirrors for its edges, in memory: a restart reads it again from the API server, which is next door. */
import { systemClock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { MirrorCopy } from '../../cache/mirrorcopy.ts'
import { FollowedObjects } from '../../hub/access/followed.ts'
import { HubSources } from '../../hub/sources/sources.ts'
import type { Scope } from '../../kube/scope.ts'
import { Comparison } from '../../mirror/comparison.ts'
import { CloudCatalog } from '../../mirror/documents/catalog.ts'
import { CloudDocuments } from '../../mirror/documents/documents.ts'
import { resourceOfName } from '../../mirror/interest.ts'
import { Interests } from '../../mirror/interests.ts'
import type { Store } from '../../store/store.ts'
import type { DirectUpstream } from '../../upstream/direct.ts'
import { followDirect } from '../../upstream/follow/direct.ts'
import { Source } from '../../upstream/follow/source.ts'
import type { HubConfig } from '../config.ts'
import { confirmRefusal } from '../confirm.ts'

type Parts = {
  readonly store: Store
  readonly config: Pick<HubConfig, 'mirrorBytes' | 'history'>
  readonly upstream: DirectUpstream
  readonly log: Log
  /** The cluster was put back to an earlier state, and everything is doubted. */
  readonly onRestored: () => void
}

/** Of one resource: edges together want more than one of them may. Its bytes are bounded by all that is mirrored. */
const objectsMax = 1_000_000

const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const services = { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' }

export type HubMirror = Awaited<ReturnType<typeof openHubMirror>>

export async function openHubMirror({ store, config, upstream, log, onRestored }: Parts) {
  const clock = systemClock
  const limits = { objects: objectsMax, bytes: config.mirrorBytes }
  const follow = followDirect({ upstream, limits, clock, confirm: () => upstream.confirm() })
  const catalog = new CloudCatalog()
  const documents = new CloudDocuments({ store, upstream, catalog, clock, log, isForEdges: true })
  const find = (group: string, version: string, resource: string) => catalog.find(group, version, resource)
  const confirm = confirmRefusal({ upstream, catalog })
  const interests = await Interests.open({
    ...{ store, upstream, follow, clock, log, find, confirm, onRestored },
    budget: { bytesMax: config.mirrorBytes },
  })
  const { planOf, lostOf } = interests
  const copy = await MirrorCopy.open({
    ...{ store, clock, log, planOf, lostOf, resourceOf: resourceOfName },
    windowBytesMax: config.history,
  })
  interests.attach(copy)
  catalog.observe(() => interests.replan())
  // Whether it is still the same cluster comes first: another one's versions say nothing.
  const newest = async (scope: Scope, signal: AbortSignal) => {
    await upstream.confirm()
    const { version } = await new Source({ upstream, scope, clock }).page({ objects: 1 }, signal)
    return version
  }
  const { reachability } = upstream
  const comparison = new Comparison({ all: () => interests.all, reachability, clock, log })

  return {
    interests,
    copy,
    catalog,
    documents,
    comparison,

    /** What edges have views of. */
    sources: (digestKey: Buffer) => new HubSources({ interests, find, digestKey, clock, newest }),

    /** Which resources there are is known as soon as a definition says so, and what their lists are called. */
    followDefinitions(sources: HubSources, signal: AbortSignal): void {
      const followed = (
        of: typeof definitions,
        apply: (name: string, bytes: Buffer | undefined) => void,
      ): FollowedObjects => {
        const take = (name: string, bytes: Buffer | undefined) => {
          apply(name, bytes)
          documents.refresh()
        }
        const put = ({ key, bytes }: { readonly key: string; readonly bytes: Buffer }) => take(key, bytes)
        // What is gone when it begins anew is gone from discovery too, which is what counts.
        return new FollowedObjects({
          ...{ sources, of, clock, put, remove: (key) => take(key, undefined) },
          ...{ clear: () => undefined, told: () => undefined },
        })
      }
      const all = [
        followed(definitions, (name, bytes) => catalog.applyDefinition(name, bytes)),
        followed(services, (name, bytes) => catalog.applyApiService(name, bytes)),
      ]
      for (const one of all) one.start()
      const stop = () => {
        for (const one of all) one.stop()
      }
      signal.addEventListener('abort', stop, { once: true })
    },

    /** How far the cluster is, as far as this hub has seen. Other groups may be counted by servers of their own. */
    newest(): number {
      const core = [...copy.caches].filter(([name]) => name.startsWith('v1/'))
      return Math.max(0, ...core.map(([, { version }]) => version))
    },

    async run(signal: AbortSignal): Promise<void> {
      const deaf = upstream.onRenewed(() => {
        interests.hurry()
        documents.refresh()
      })
      await Promise.all([interests.run(signal), comparison.run(signal), documents.run(signal), copy.run(signal)])
      deaf()
    },
  }
}
