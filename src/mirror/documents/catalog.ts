/**
 * Which resources the API server serves, and what reading them takes: from discovery, which alone knows kinds and plurals,
 * completed by the custom resource definitions (names of lists, selectable fields, columns) and by the API services (which
 * groups another server answers for). A resource whose definition is there exists, even while discovery does not list it.
 */
import { planFor } from '../../cache/filter.ts'
import { isBuiltinGroup } from '../../kube/builtin.ts'
import { selectableFields } from '../../kube/fields.ts'
import { field, isObject, parseJson, text } from '../../kube/json/json.ts'
import type { FieldPlan } from '../../kube/object.ts'
import type { Resource } from '../../kube/resource.ts'
import { ByResource, type Catalog, type Cataloged, definedResources } from '../../kube/schema/catalog.ts'
import type { ScalePaths } from '../../kube/schema/scaled.ts'
import type { Discovered, DiscoveredGroup, DiscoveredVersion } from './discovery/read.ts'

/** The same object until something about it changes. */
export type KnownResource = Cataloged & {
  /** The fields that are read from its objects at ingest. */
  readonly plan: FieldPlan
  /** Where a custom resource keeps its replicas, as its definition says. */
  readonly scale: ScalePaths | undefined
  /** Its definition is known: how its lists are called is no guess. */
  readonly defined: boolean
  /** Another server answers for it, through this one. */
  readonly aggregated: boolean
  /** May be kept here when a caller asks for it. */
  readonly mirrorable: boolean
}

type CatalogEntry = KnownResource & { readonly fingerprint: string }

/** What a definition adds to one of its versions. */
type Defined = Cataloged & { readonly selectable: readonly string[]; readonly scale: ScalePaths | undefined }

export class CloudCatalog implements Catalog<KnownResource> {
  #served = new ByResource<CatalogEntry>()
  /** In the order of discovery, a group's preferred version first. */
  #ordered: readonly CatalogEntry[] = []
  #groups: readonly DiscoveredGroup[] = []
  readonly #definitions = new Map<string, readonly Defined[]>()
  /** By the name of the API service: its `version.group`, and whether another server answers for it. */
  readonly #services = new Map<string, { readonly of: string; readonly elsewhere: boolean }>()
  #aggregated: ReadonlySet<string> = new Set()
  /** Group versions that the API server says it serves itself. */
  #local: ReadonlySet<string> = new Set()
  readonly #listeners = new Set<() => void>()
  #outdated = false
  #complete = false
  #generation = 0

  /** Whether discovery was ever read whole, now or before a restart: before that, what is not found may exist. */
  get complete(): boolean {
    return this.#complete
  }

  /** Another number whenever the set of resources, or what is known of one, has changed. */
  get generation(): number {
    this.#renew()
    return this.#generation
  }

  find(group: string, version: string, plural: string): KnownResource | undefined {
    if (this.#outdated) this.#renew()
    return this.#served.get(group, version, plural)
  }

  *resources(): Iterable<Resource> {
    this.#renew()
    for (const { resource } of this.#ordered) yield resource
  }

  isAggregated(group: string, version: string): boolean {
    return this.#aggregated.has(`${version}.${group}`)
  }

  /**
   * What a name means, as kubectl reads it: `pods`, `deployments.apps`, `deployments.v1.apps`; also singular and short.
   * Of each group that has it, the preferred version; groups in the order of discovery.
   */
  resolveName(name: string): KnownResource[] {
    this.#renew()
    const [plural = '', version = '', ...rest] = name.split('.')
    const exact = this.find(rest.join('.'), version, plural)
    if (exact !== undefined && version !== '') return [exact]
    const group = [version, ...rest].join('.')
    const inGroup = version === '' ? this.#ordered : this.#ordered.filter((one) => one.resource.group === group)
    for (const has of [isPlural, isSingular, isShort]) {
      const found = firstOfEachGroup(inGroup.filter(({ resource }) => has(resource, plural)))
      if (found.length > 0) return found
    }
    return []
  }

  /** Hears, a moment later, that something has changed; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Takes over what discovery says now. A version whose server did not answer keeps the resources it had. */
  adopt(groups: readonly DiscoveredGroup[]): void {
    const before = new Map(this.#groups.map((group) => [group.name, group]))
    this.#groups = groups.map(({ name, versions }) => ({
      name,
      versions: versions.map((one) => {
        const old = before.get(name)?.versions.find(({ version }) => version === one.version)
        return one.stale && old !== undefined ? completed(one, old) : one
      }),
    }))
    this.#complete = true
    this.#change()
  }

  /** Takes over a CustomResourceDefinition as it is now, undefined when it is gone. */
  applyDefinition(name: string, bytes: Buffer | undefined): void {
    const defined = bytes === undefined ? [] : readDefinition(bytes)
    if (defined.length === 0) this.#definitions.delete(name)
    else this.#definitions.set(name, defined)
    this.#change()
  }

  /** Takes over an APIService as it is now, undefined when it is gone. */
  applyApiService(name: string, bytes: Buffer | undefined): void {
    const spec = bytes === undefined ? undefined : field(parseJson(bytes), 'spec')
    const before = this.#services.get(name)
    const of = `${text(spec, 'version')}.${text(spec, 'group')}`
    const elsewhere = isObject(field(spec, 'service'))
    if (bytes === undefined) this.#services.delete(name)
    else this.#services.set(name, { of, elsewhere })
    if (bytes === undefined ? before === undefined : before?.of === of && before.elsewhere === elsewhere) return
    const services = [...this.#services.values()]
    this.#aggregated = new Set(services.filter((one) => one.elsewhere).map((one) => one.of))
    this.#local = new Set(services.filter((one) => !one.elsewhere).map((one) => one.of))
    this.#change()
  }

  /** Definitions come by the hundred at a start: everything is put together once, at the next question or soon. */
  #change(): void {
    if (this.#outdated) return
    this.#outdated = true
    queueMicrotask(() => this.#renew())
  }

  #renew(): void {
    if (!this.#outdated) return
    this.#outdated = false
    const served = new ByResource<CatalogEntry>()
    const ordered: CatalogEntry[] = []
    const add = (resource: Resource, defined: Defined | undefined) => {
      if (served.get(resource.group, resource.version, resource.resource) !== undefined) return
      const entry = this.#entryOf(resource, defined)
      served.set(resource, entry)
      ordered.push(entry)
    }
    const definitions = [...this.#definitions.values()].flat()
    const defined = new Map(definitions.map((one) => [one.resource.interest, one]))
    for (const { name, versions } of this.#groups) {
      for (const { version, resources } of versions) {
        for (const one of resources) {
          const found = defined.get(interestOf(name, version, one.resource))
          add(resourceOf(name, version, one, found), found)
        }
      }
    }
    for (const one of definitions) add(one.resource, one)
    const same = ordered.length === this.#ordered.length && ordered.every((one, at) => one === this.#ordered[at])
    this.#served = served
    this.#ordered = ordered
    if (same) return
    this.#generation++
    queueMicrotask(() => {
      for (const listener of [...this.#listeners]) listener()
    })
  }

  #entryOf(resource: Resource, defined: Defined | undefined): CatalogEntry {
    const { group, version, resource: plural, verbs } = resource
    const aggregated = this.#aggregated.has(`${version}.${group}`)
    const { columns, deprecation, scale, selectable = [] } = defined ?? {}
    const isDefined = defined !== undefined
    // Another server may show each caller something else: what is not known to be the API server's own is not mirrored.
    const own = isDefined || isKubernetes(group) || this.#local.has(`${version}.${group}`)
    const fingerprint = JSON.stringify([resource, isDefined, aggregated, own, columns, selectable, deprecation, scale])
    const before = this.#served.get(group, version, plural)
    if (before?.fingerprint === fingerprint) return before
    const readable = (['get', 'list', 'watch'] as const).every((verb) => verbs.includes(verb))
    const fields = selectableFields(resource, selectable)
    return {
      resource,
      fields,
      plan: planFor([fields.paths]),
      columns,
      deprecation,
      scale,
      defined: isDefined,
      aggregated,
      // Events are many, short-lived and read by people, who are online when they do.
      mirrorable: readable && own && !aggregated && resource.kind !== '' && !isEvents(resource),
      fingerprint,
    }
  }
}

function interestOf(group: string, version: string, plural: string): string {
  return `${group}/${version}/${plural}`
}

function isEvents({ group, resource }: Resource): boolean {
  return resource === 'events' && (group === '' || group === 'events.k8s.io')
}

function completed(one: DiscoveredVersion, old: DiscoveredVersion): DiscoveredVersion {
  const listed = new Set(one.resources.map(({ resource }) => resource))
  return { ...one, resources: [...one.resources, ...old.resources.filter(({ resource }) => !listed.has(resource))] }
}

function resourceOf(group: string, version: string, found: Discovered, defined: Defined | undefined): Resource {
  return {
    ...found,
    group,
    version,
    // Discovery may still be that of another definition of the same name.
    kind: defined?.resource.kind ?? found.kind,
    listKind: defined?.resource.listKind ?? `${found.kind}List`,
    interest: interestOf(group, version, found.resource),
    custom: defined !== undefined || !isKubernetes(group),
  }
}

/** Kubernetes' own too, but off unless an operator turns them on: no facts of them. */
const optionalGroups: ReadonlySet<string> = new Set(['internal.apiserver.k8s.io', 'storagemigration.k8s.io'])

/** All that Kubernetes' own groups hold is its own, also versions that other releases of it have. */
function isKubernetes(group: string): boolean {
  return isBuiltinGroup(group) || optionalGroups.has(group)
}

function readDefinition(bytes: Buffer): Defined[] {
  const crd = parseJson(bytes)
  if (!isObject(crd) || field(crd, 'metadata', 'deletionTimestamp') !== undefined) return []
  return definedResources(crd).map(({ resource: made, version, ...defined }) => {
    const { storageVersionHash: _, ...rest } = made
    const resource = { ...rest, interest: interestOf(made.group, made.version, made.resource) }
    return { ...defined, resource, selectable: version.selectableFields, scale: version.scale }
  })
}

function isPlural({ resource }: Resource, name: string): boolean {
  return resource === name
}

function isSingular({ singular }: Resource, name: string): boolean {
  return singular === name
}

function isShort({ shortNames }: Resource, name: string): boolean {
  return shortNames.includes(name)
}

function firstOfEachGroup(entries: readonly CatalogEntry[]): KnownResource[] {
  const groups = new Set<string>()
  return entries.filter(({ resource: { group } }) => !groups.has(group) && groups.add(group))
}
