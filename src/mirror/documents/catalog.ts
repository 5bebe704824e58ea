/**
 * Which resources the API server serves, and what reading them takes: from discovery, which alone knows kinds and plurals,
 * completed by the custom resource definitions (names of lists, selectable fields, columns) and by the API services (which
 * groups another server answers for). A resource whose definition is there exists, even while discovery does not list it.
 */
import { planFor } from '../../cache/filter.ts'
import { builtinFacts } from '../../kube/builtin.ts'
import { type SelectableFields, selectableFields } from '../../kube/fields.ts'
import { field, isObject, parseJson, text } from '../../kube/json/json.ts'
import type { FieldPlan } from '../../kube/object.ts'
import type { Resource } from '../../kube/resource.ts'
import { definitionResources, definitionVersions } from '../../kube/schema/versions.ts'
import type { PrinterColumn } from '../../kube/table/printers/printers.ts'
import type { Discovered, DiscoveredGroup, DiscoveredVersion } from './discovery/read.ts'

/** The same object until something about it changes. */
export type Known = {
  readonly resource: Resource
  readonly fields: SelectableFields
  /** The fields that are read from its objects at ingest. */
  readonly plan: FieldPlan
  /** A definition's own columns. */
  readonly columns: readonly PrinterColumn[] | undefined
  /** What clients of a deprecated version are warned with. */
  readonly deprecation: string | undefined
  /** Its definition is known: how its lists are called is no guess. */
  readonly defined: boolean
  /** Another server answers for it, through this one. */
  readonly aggregated: boolean
  /** May be kept here when somebody asks for it. */
  readonly mirrorable: boolean
}

type Entry = Known & { readonly fingerprint: string }
type ByPlural = Map<string, Entry>

/** What a definition adds to one of its versions. */
type Defined = {
  readonly resource: Resource
  readonly selectable: readonly string[]
  readonly columns: readonly PrinterColumn[] | undefined
  readonly deprecation: string | undefined
}

export class Catalog {
  /** By group, version and plural: a lookup makes no new string. */
  #served: ReadonlyMap<string, ReadonlyMap<string, ByPlural>> = new Map()
  /** In the order of discovery, a group's preferred version first. */
  #ordered: readonly Entry[] = []
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

  find(group: string, version: string, plural: string): Known | undefined {
    if (this.#outdated) this.#renew()
    return this.#served.get(group)?.get(version)?.get(plural)
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
  resolveName(name: string): Known[] {
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
    const served = new Map<string, Map<string, ByPlural>>()
    const ordered: Entry[] = []
    const add = (resource: Resource, defined: Defined | undefined) => {
      const plurals = inserted(inserted(served, resource.group, newVersions), resource.version, newPlurals)
      if (plurals.has(resource.resource)) return
      const entry = this.#entryOf(resource, defined)
      plurals.set(resource.resource, entry)
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

  #entryOf(resource: Resource, defined: Defined | undefined): Entry {
    const { group, version, resource: plural, verbs } = resource
    const aggregated = this.#aggregated.has(`${version}.${group}`)
    const { columns, deprecation, selectable = [] } = defined ?? {}
    const isDefined = defined !== undefined
    // Another server may show each caller something else: what nobody knows to be the API server's own is not mirrored.
    const own = isDefined || builtinGroups().has(group) || this.#local.has(`${version}.${group}`)
    const fingerprint = JSON.stringify([resource, isDefined, aggregated, own, columns, selectable, deprecation])
    const before = this.#served.get(group)?.get(version)?.get(plural)
    if (before?.fingerprint === fingerprint) return before
    const readable = (['get', 'list', 'watch'] as const).every((verb) => verbs.includes(verb))
    const fields = selectableFields(resource, selectable)
    return {
      resource,
      fields,
      plan: planFor([fields.paths]),
      columns,
      deprecation,
      defined: isDefined,
      aggregated,
      // Events are many, short-lived and read by people, who are online when they do.
      mirrorable: readable && own && !aggregated && resource.kind !== '' && !isEvents(resource),
      fingerprint,
    }
  }
}

const newVersions = () => new Map<string, ByPlural>()
const newPlurals = (): ByPlural => new Map()

function inserted<T>(map: Map<string, T>, key: string, make: () => T): T {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
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
    custom: defined !== undefined || !builtinGroups().has(group),
  }
}

/** Kubernetes' own too, but off unless somebody turns them on: no facts of them. */
const optionalGroups = ['internal.apiserver.k8s.io', 'storagemigration.k8s.io']
let groupsKnown: ReadonlySet<string> | undefined

/** All that Kubernetes' own groups hold is its own, also versions that other releases of it have. */
function builtinGroups(): ReadonlySet<string> {
  groupsKnown ??= new Set([...builtinFacts().groups.map(({ name }) => name), ...optionalGroups])
  return groupsKnown
}

function readDefinition(bytes: Buffer): Defined[] {
  const crd = parseJson(bytes)
  if (!isObject(crd) || field(crd, 'metadata', 'deletionTimestamp') !== undefined) return []
  const versions = definitionVersions(crd)
  return definitionResources(crd).flatMap((made) => {
    const version = versions.find(({ name }) => name === made.version)
    if (version === undefined) return []
    const { storageVersionHash: _, ...rest } = made
    const resource = { ...rest, interest: interestOf(made.group, made.version, made.resource) }
    const columns = version.columns.length === 0 ? undefined : version.columns
    return [{ resource, selectable: version.selectableFields, columns, deprecation: version.deprecation }]
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

function firstOfEachGroup(entries: readonly Entry[]): Known[] {
  const groups = new Set<string>()
  return entries.filter(({ resource: { group } }) => !groups.has(group) && groups.add(group))
}
