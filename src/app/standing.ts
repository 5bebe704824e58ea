/**
 * What an edge keeps whether it is asked for or not: the definitions and API services that say what exists, and what its
 * options name. A resource that does not exist yet is waited for.
 */
import type { TokenKeeper } from '../access/tokens.ts'
import type { Log } from '../base/log.ts'
import type { Cache } from '../cache/cache.ts'
import type { Event } from '../cache/event.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import type { CloudDocuments } from '../mirror/documents/documents.ts'
import { interestOf, resourceName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { MirrorTarget } from './optionkinds.ts'

type Parts = {
  readonly interests: Interests
  readonly catalog: CloudCatalog
  readonly documents: CloudDocuments
  readonly keeper: TokenKeeper
  readonly wanted: readonly MirrorTarget[]
  readonly log: Log
}

const everywhere = { version: 'v1', namespace: '' }
const definitions = { ...everywhere, group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' }
const services = { ...everywhere, group: 'apiregistration.k8s.io', resource: 'apiservices' }
const own = [definitions, services]

export function holdWanted(parts: Parts): void {
  const { interests, catalog, documents } = parts
  interests.onResource(nameOf(definitions), (cache) => {
    follow(cache, documents, (name, bytes) => catalog.applyDefinition(name, bytes))
  })
  interests.onResource(nameOf(services), (cache) => {
    follow(cache, documents, (name, bytes) => catalog.applyApiService(name, bytes))
  })
  const bound = [
    ['Pod', 'pods'] as const,
    ['Secret', 'secrets'] as const,
    ['ServiceAccount', 'serviceaccounts'] as const,
  ]
  for (const [kind, resource] of bound) {
    interests.onResource(`v1/${resource}`, (cache) =>
      cache.observe((event) => forgetTokens(parts, kind, resource, event)),
    )
  }
  const hold = () => {
    for (const one of own) {
      const known = catalog.find(one.group, one.version, one.resource)
      if (known !== undefined) interests.begin(interestOf(one), known, { standing: true })
    }
    for (const { known, ...one } of namedBy(catalog, parts.wanted)) {
      interests.begin(interestOf(one), known, { standing: true })
    }
  }
  hold()
  catalog.observe(hold)
}

type StandingOrders = Pick<Parts, 'interests' | 'catalog' | 'wanted'> & {
  /** Names of what stands for another reason than an option. */
  readonly others: () => readonly string[]
}

/** What an option of an earlier start named and none does now is from here on like any that clients ask for. */
export function releaseUnwanted({ interests, catalog, wanted, others }: StandingOrders): void {
  const release = () => {
    // Before discovery was read whole it is not known what the options name.
    if (!catalog.complete) return
    stop()
    const held = new Set([...own, ...namedBy(catalog, wanted)].map((one) => interestOf(one).name).concat(others()))
    for (const mirrored of interests.all) {
      const { interest, record } = mirrored
      // An option gives no selector.
      if (record.standing && interest.fields.empty && !held.has(interest.name)) interests.release(mirrored)
    }
  }
  const stop = catalog.observe(release)
  release()
}

function namedBy(catalog: CloudCatalog, wanted: readonly MirrorTarget[]) {
  return wanted.flatMap(({ resource, namespace }) =>
    catalog.resolveName(resource).map((known) => ({ ...known.resource, namespace, known })),
  )
}

function nameOf({ group, version, resource }: typeof definitions): string {
  return resourceName(group, version, resource)
}

function follow(
  cache: Cache,
  documents: CloudDocuments,
  apply: (name: string, bytes: Buffer | undefined) => void,
): void {
  for (const item of cache.all()) apply(item.name, item.bytes)
  cache.observe((event) => {
    apply(event.key, event.item?.bytes)
    documents.refresh()
  })
}

/** The bound object or the account itself is gone, and its token is not given again. One that only left a selector still exists. */
function forgetTokens({ interests, keeper }: Parts, kind: string, resource: string, event: Event): void {
  const { item, previous, key } = event
  if (previous === undefined || !keeper.mayDrop(kind, previous.namespace, previous.name)) return
  if (item?.uid === previous.uid) return
  const elsewhere = interests.holding(interestOf({ group: '', version: 'v1', resource, namespace: '' }), key)
  if (elsewhere?.readable?.get(key)?.uid === previous.uid) return
  const { namespace, name, uid } = previous
  if (kind === 'ServiceAccount') keeper.dropAccount(namespace, name, uid)
  else keeper.dropBound(kind, namespace, name, uid)
}
