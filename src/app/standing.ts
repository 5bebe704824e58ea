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
import type { MirrorTarget } from './options.ts'

type Parts = {
  readonly interests: Interests
  readonly catalog: CloudCatalog
  readonly documents: CloudDocuments
  readonly keeper: TokenKeeper
  readonly wanted: readonly MirrorTarget[]
  readonly log: Log
}

const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const services = { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' }

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
    for (const own of [definitions, services]) {
      const known = catalog.find(own.group, own.version, own.resource)
      if (known !== undefined) interests.begin(interestOf({ ...own, namespace: '' }), known, { standing: true })
    }
    for (const { resource, namespace } of parts.wanted) {
      for (const known of catalog.resolveName(resource)) {
        const { group, version } = known.resource
        const scope = interestOf({ group, version, resource: known.resource.resource, namespace })
        interests.begin(scope, known, { standing: true })
      }
    }
  }
  hold()
  catalog.observe(hold)
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
  if (previous === undefined || (item !== undefined && item.uid === previous.uid)) return
  const elsewhere = interests.holding(interestOf({ group: '', version: 'v1', resource, namespace: '' }), key)
  if (elsewhere?.get(key)?.uid === previous.uid) return
  const { namespace, name, uid } = previous
  if (kind === 'ServiceAccount') keeper.dropAccount(namespace, name, uid)
  else keeper.dropBound(kind, namespace, name, uid)
}
