/**
 * Everything that a hub follows, begun when an edge first wants it and ended when none has for some minutes. Edges want parts: their
 * pods, a few names. Followed is the whole resource, once for all of them; of Secrets and ConfigMaps only the namespaces that are wanted, so that
 * a hub holds no Secret that none of its edges may have.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import { isBuiltinGroup } from '../../kube/builtin.ts'
import { StatusError } from '../../kube/status.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import { type Interest, interestOf, resourceName } from '../../mirror/interest.ts'
import type { Interests } from '../../mirror/interests.ts'
import type { Mirrored } from '../../mirror/mirror.ts'
import type { MirroredInterest } from '../../mirror/mirrored.ts'
import { HubSource } from './source.ts'
import type { SourceReader } from './view.ts'

/** A hub whose edges all went away for a moment does not list everything again. */
const unusedMsMax = 5 * 60_000
const lookEveryMs = 5_000
/** Each is a watch at the API server: hundreds of namespaces with edges, and every resource besides. */
const sourcesMax = 5_000
/** A definition may come, and an edge is not told when. */
const unknownRetryMs = 30_000

type Parts = {
  readonly interests: Pick<Interests, 'begin' | 'end' | 'onResource'>
  readonly find: (group: string, version: string, resource: string) => KnownMirrored | undefined
  readonly digestKey: Buffer
  /** How far the API server is with something, by a linearizable read. */
  readonly newest: (of: Interest, signal: AbortSignal) => Promise<number>
  readonly clock: Clock
}

/** What an interest is a part of. */
export type OpenedSource = Pick<HubSource, 'leave'>

export class HubSources {
  readonly #parts: Parts
  /** By the name of what is followed. */
  readonly #sources = new Map<string, HubSource>()
  readonly #byNumber = new Map<number, HubSource>()
  readonly #observed = new Set<string>()
  #numbers = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** For people: what is followed, for how many subscriptions, in how many views. */
  figures(): readonly { readonly name: string; readonly readers: number; readonly views: number }[] {
    return [...this.#sources].map(([name, { readers, views }]) => ({ name, readers, views }))
  }

  /** How far a source is, by its number: what edges are told as progress. */
  versions(): ReadonlyMap<number, number> {
    return new Map([...this.#sources.values()].map(({ number, version }) => [number, version]))
  }

  /** When the API server last gave a sign of life over the watch of a source, by the steady clock. */
  heardAt(number: number): number {
    return this.#byNumber.get(number)?.mirrored.heardAt ?? Number.NEGATIVE_INFINITY
  }

  /** How far the API server itself is with a source, by a read that begins after this call; undefined where it does not tell. */
  async present(number: number): Promise<number | undefined> {
    return await this.#byNumber.get(number)?.present.ask()
  }

  /** Answers the source to tell when it is let go; undefined where it was refused. The reader is told whether it can be had, now or later. */
  open(wanted: Interest, reader: SourceReader): OpenedSource | undefined {
    const source = this.#sourceOf(wanted)
    if (!(source instanceof HubSource)) {
      reader.refused(source)
      return undefined
    }
    source.join(wanted, reader)
    return source
  }

  /** The cluster was put back: no reader is told of anything that was not compared since. */
  doubted(): void {
    for (const source of this.#sources.values()) source.doubted()
  }

  /** Ends what no edge wants any more. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    while (!signal.aborted) {
      await sleep(clock, lookEveryMs, signal)
      if (!signal.aborted) await this.#look()
    }
    for (const source of this.#sources.values()) source.stop(ending)
    this.#sources.clear()
    this.#byNumber.clear()
  }

  async #look(): Promise<void> {
    const { clock, interests } = this.#parts
    for (const [name, source] of this.#sources) {
      source.look()
      if (source.readers > 0 || clock.steady() - source.unusedSince < unusedMsMax) continue
      this.#sources.delete(name)
      this.#byNumber.delete(source.number)
      source.stop(ending)
      await interests.end(source.mirrored, 'no edge has wanted it for minutes')
    }
  }

  #sourceOf(wanted: Interest): HubSource | SessionRefusal {
    const { find, digestKey, clock } = this.#parts
    const { group, version, resource } = wanted
    const known = find(group, version, resource)
    if (known === undefined) return { ...unknown, sentence: `there is no ${resourceName(group, version, resource)}` }
    if (!known.mirrorable) return unkept(known)
    const misfit = misfitOf(wanted, known)
    if (misfit !== undefined) return { ...unmirrored, sentence: misfit }
    const scope = followedFor(wanted)
    const present = this.#sources.get(scope.name)
    if (present !== undefined) return present
    if (this.#sources.size >= sourcesMax)
      return { reason: 'limit', retryAfterMs: unknownRetryMs, sentence: `the hub follows ${sourcesMax} things already` }
    const mirrored = this.#begin(scope, known)
    if (mirrored === undefined)
      return { ...unknown, reason: 'forbidden', sentence: `the hub may not read ${scope.name}` }
    const knownNow = () => find(group, version, resource) ?? known
    const newest = (signal: AbortSignal) => this.#parts.newest(scope, signal)
    const source = new HubSource({ number: ++this.#numbers, known: knownNow, mirrored, digestKey, clock, newest })
    this.#sources.set(scope.name, source)
    this.#byNumber.set(source.number, source)
    return source
  }

  /** It stays as long as this room wants it, whatever the mirror would do with what no caller asks for. */
  #begin(scope: Interest, known: Mirrored): MirroredInterest | undefined {
    const { interests } = this.#parts
    const resource = resourceName(scope.group, scope.version, scope.resource)
    if (!this.#observed.has(resource)) {
      this.#observed.add(resource)
      // A copy that began anew: a cluster that was put back.
      interests.onResource(resource, (cache) => this.#sources.get(cache.interest)?.replaced())
    }
    return interests.begin(scope, known, { standing: true })
  }
}

const ending: SessionRefusal = {
  reason: 'busy',
  retryAfterMs: 1_000,
  sentence: 'the hub does not follow it any longer',
}
const unknown = { reason: 'unknown', retryAfterMs: unknownRetryMs } as const
const unmirrored = { reason: 'other', retryAfterMs: 10 * unknownRetryMs } as const

/** Until the hub has read its definition, or that another server answers for it, it may be what is kept: that is a moment after a start. */
const undefinedRetryMs = 2_000

/** As far as it is known whose it is. */
type KnownMirrored = Mirrored & { readonly defined?: boolean; readonly aggregated?: boolean }

function unkept({ resource, defined, aggregated }: KnownMirrored): SessionRefusal {
  const sentence = `${resource.resource} are passed on and not kept: ask for them`
  if (defined === true || aggregated === true || isBuiltinGroup(resource.group)) return { ...unmirrored, sentence }
  return { reason: 'busy', retryAfterMs: undefinedRetryMs, sentence }
}

/** What lies in namespaces and is secret, or may be many times larger than what edges want of it. */
const byNamespace: ReadonlySet<string> = new Set(['v1/secrets', 'v1/configmaps'])

function followedFor({ group, version, resource, namespace }: Interest): Interest {
  const isWhole = !byNamespace.has(resourceName(group, version, resource))
  return interestOf({ group, version, resource, namespace: isWhole ? '' : namespace })
}

/** Why no view can be made of it: a namespace of what has none, a field that cannot be selected by. */
function misfitOf({ namespace, fields: wishes, resource: name }: Interest, { resource, fields }: Mirrored) {
  if (namespace !== '' && !resource.namespaced) return `${name} are in no namespace`
  try {
    fields.resolve(wishes)
    return undefined
  } catch (error) {
    if (error instanceof StatusError) return error.message
    throw error
  }
}
