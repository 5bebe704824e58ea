/**
 * Discovery as the stored documents tell it: the groups, and for each place the basis that its plain document has to belong
 * to, a digest of what discovery says about that place.
 */

import type { DocumentStore } from '../documentstore.ts'
import { normalAccept } from '../mediatype.ts'
import {
  type DiscoveredGroup,
  type DiscoveredVersion,
  digestOf,
  readAggregated,
  readGroups,
  readResourceList,
} from './read.ts'

/** Gets the aggregated form of any server that has one. */
export const aggregatedAccept = normalAccept(
  ['v2', 'v2beta1']
    .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
    .concat('application/json'),
)
export const plainAccept = 'application/json'

/** A server without the aggregated form is asked for everything each time: what is held is of its newest state. */
export const plainBasis = 'plain'

/** Where the resource lists of a group are. */
export function placesOf({
  name,
  versions,
}: {
  readonly name: string
  readonly versions: readonly string[]
}): string[] {
  return versions.map((version) => placeOf(name, version))
}

function placeOf(group: string, version: string): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

type Basis = Map<string, string>
type Held = { readonly groups: readonly DiscoveredGroup[]; readonly basis: ReadonlyMap<string, string> }
type Reading = Pick<DocumentStore, 'find' | 'content'>

/** undefined while one of the two roots is missing. */
export async function readHeld(documentStore: Reading): Promise<Held | undefined> {
  const basis: Basis = new Map()
  const core = await readRoot(documentStore, '/api', basis)
  const named = await readRoot(documentStore, '/apis', basis)
  return core === undefined || named === undefined ? undefined : { groups: [...core, ...named], basis }
}

async function readRoot(documentStore: Reading, place: string, basis: Basis): Promise<DiscoveredGroup[] | undefined> {
  const head = documentStore.find(place, aggregatedAccept)
  const content = head === undefined ? undefined : await documentStore.content(head)
  if (content === undefined) return undefined
  const groups = readAggregated(content)
  if (groups === undefined) return readPlain(documentStore, place, content, basis)
  basis.set(place, digestOf(groups.map(({ name, versions }) => [name, versions.map(({ version }) => version)])))
  for (const { name, versions } of groups) {
    if (name !== '') basis.set(`/apis/${name}`, digestOf(versions.map(({ version }) => version)))
    for (const { version, digest } of versions) basis.set(placeOf(name, version), digest)
  }
  return Promise.all(groups.map((group) => completed(documentStore, group)))
}

/** An aggregated API that is down is listed without its resources: its own document, held from before, has them. */
async function completed(documentStore: Reading, { name, versions }: DiscoveredGroup): Promise<DiscoveredGroup> {
  const whole = versions.map(async (one) => {
    const missing = one.stale && one.resources.length === 0
    const held = missing ? await readVersion(documentStore, name, one.version) : undefined
    return held === undefined ? one : { ...held, stale: true }
  })
  return { name, versions: await Promise.all(whole) }
}

async function readPlain(
  documentStore: Reading,
  place: string,
  content: Buffer,
  basis: Basis,
): Promise<DiscoveredGroup[]> {
  basis.set(place, plainBasis)
  const groups = readGroups(content)
  for (const group of groups) {
    if (group.name !== '') basis.set(`/apis/${group.name}`, plainBasis)
    for (const one of placesOf(group)) basis.set(one, plainBasis)
  }
  return Promise.all(
    groups.map(async ({ name, versions }) => {
      const read = versions.map(async (version): Promise<DiscoveredVersion> => {
        return (await readVersion(documentStore, name, version)) ?? { version, stale: true, resources: [], digest: '' }
      })
      return { name, versions: await Promise.all(read) }
    }),
  )
}

async function readVersion(
  documentStore: Reading,
  group: string,
  version: string,
): Promise<DiscoveredVersion | undefined> {
  const head = documentStore.find(placeOf(group, version), plainAccept)
  const content = head === undefined ? undefined : await documentStore.content(head)
  return content === undefined ? undefined : readResourceList(content, group, version)
}
