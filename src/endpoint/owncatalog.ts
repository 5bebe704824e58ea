/**
 * Which resources exist right now: Kubernetes' own, and those of established custom resource definitions. A definition is
 * applied in the moment its object is published, so that it has taken effect before its writer gets the answer. Reading,
 * writing and discovery all look here.
 */
import { createHash } from 'node:crypto'
import { planFor } from '../cache/filter.ts'
import { builtinFacts, isBuiltinGroup } from '../kube/builtin.ts'
import { readConverter } from '../kube/convert/convert.ts'
import { selectableFields } from '../kube/fields.ts'
import { field, isObject, type JsonObject, parseJson, printJson, text } from '../kube/json/json.ts'
import type { FieldPlan } from '../kube/object.ts'
import type { Resource, Verb } from '../kube/resource.ts'
import { ByResource, type Catalog, definedResources, inserted } from '../kube/schema/catalog.ts'
import { definitionVersions } from '../kube/schema/versions.ts'
import type { Served } from './endpoint.ts'
import { Spelling } from './forms/spelling.ts'

export type ApiVersion = { readonly version: string; readonly resources: readonly Resource[] }

export type ApiGroup = {
  /** '' is the core group. */
  readonly name: string
  /** The preferred one first. */
  readonly versions: readonly ApiVersion[]
  readonly custom: boolean
}

/** An interest that a change of definitions concerns. */
export type Concerned = {
  readonly interest: string
  /** Nothing serves it any more: its watches have to end. Otherwise its objects have to be read anew, by `planOf`. */
  readonly gone: boolean
}

type AppliedDefinition = { readonly fingerprint: string; readonly entries: readonly Served[] }

/** What discovery still offers of a resource whose definition is being deleted. */
const endingVerbs: readonly Verb[] = ['delete', 'deletecollection', 'get', 'list', 'watch']

export class OwnCatalog implements Catalog<Served> {
  readonly #served = new ByResource<Served>()
  readonly #byInterest = new Map<string, Set<Served>>()
  readonly #plans = new Map<string, FieldPlan>()
  /** By the name of the definition. */
  readonly #definitions = new Map<string, AppliedDefinition>()
  readonly #builtinGroups: readonly ApiGroup[]
  #groups: readonly ApiGroup[] | undefined
  #generation = 0

  constructor() {
    const { groups, resources } = builtinFacts()
    for (const resource of resources) {
      this.#add({
        resource,
        fields: selectableFields(resource),
        columns: undefined,
        deprecation: undefined,
        spelling: new Spelling(resource, readConverter(resource)),
      })
    }
    this.#builtinGroups = groups.map(({ name, versions }) => ({
      name,
      custom: false,
      versions: versions.map((version) => ({
        version,
        resources: resources.filter((one) => one.group === name && one.version === version),
      })),
    }))
  }

  /** Another number whenever the set of resources, or what they are, has changed. */
  get generation(): number {
    return this.#generation
  }

  find(group: string, version: string, plural: string): Served | undefined {
    return this.#served.get(group, version, plural)
  }

  *resources(): Iterable<Resource> {
    for (const entries of this.#byInterest.values()) for (const { resource } of entries) yield resource
  }

  /** The fields that are read from this interest's objects at ingest. */
  planOf(interest: string): FieldPlan {
    let plan = this.#plans.get(interest)
    if (plan === undefined) {
      plan = planFor([...(this.#byInterest.get(interest) ?? [])].map(({ fields }) => fields.paths))
      this.#plans.set(interest, plan)
    }
    return plan
  }

  /** As discovery lists them: the built-in groups in their order, then the others by name. */
  groups(): readonly ApiGroup[] {
    this.#groups ??= [...this.#builtinGroups, ...this.#customGroups()]
    return this.#groups
  }

  /** Takes over a definition as it is now, undefined when it is gone. Answers what has to follow. */
  apply(name: string, bytes: Buffer | undefined): readonly Concerned[] {
    const before = this.#definitions.get(name)
    const after = bytes === undefined ? undefined : this.#read(bytes)
    if (after?.fingerprint === before?.fingerprint) return []
    for (const entry of before?.entries ?? []) this.#remove(entry)
    for (const entry of after?.entries ?? []) this.#add(entry)
    if (after === undefined) this.#definitions.delete(name)
    else this.#definitions.set(name, after)
    this.#groups = undefined
    this.#generation++
    const interests = new Set(
      [...(before?.entries ?? []), ...(after?.entries ?? [])].map((one) => one.resource.interest),
    )
    for (const interest of interests) this.#plans.delete(interest)
    return [...interests].map((interest) => ({ interest, gone: !this.#byInterest.has(interest) }))
  }

  /**
   * undefined for a definition that serves nothing. Built-in groups are answered before definitions are looked at, whatever
   * those say. One that changed only in its labels and the like is the same as before.
   */
  #read(bytes: Buffer): AppliedDefinition | undefined {
    const crd = parseJson(bytes)
    if (!isObject(crd) || isBuiltinGroup(text(crd, 'spec', 'group'))) return undefined
    const terminating = isTerminating(crd)
    const entries = entriesOf(crd, terminating)
    if (entries.length === 0) return undefined
    const names = field(crd, 'status', 'acceptedNames') ?? null
    const told = [printJson(field(crd, 'spec') ?? null), printJson(names), String(terminating)].join(' ')
    return { fingerprint: createHash('sha256').update(told).digest('base64'), entries }
  }

  #add(entry: Served): void {
    this.#served.set(entry.resource, entry)
    inserted(this.#byInterest, entry.resource.interest, () => new Set<Served>()).add(entry)
  }

  #remove(entry: Served): void {
    const { interest } = entry.resource
    this.#served.delete(entry.resource)
    const sharing = this.#byInterest.get(interest)
    sharing?.delete(entry)
    if (sharing?.size === 0) this.#byInterest.delete(interest)
  }

  #customGroups(): ApiGroup[] {
    const groups: ApiGroup[] = []
    for (const [name, versions] of this.#served.groups) {
      if (isBuiltinGroup(name)) continue
      const names = byPreference([...versions.keys()])
      const listed = names.map((version) => ({ version, resources: offered(versions.get(version)) }))
      groups.push({ name, custom: true, versions: listed })
    }
    return groups.sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}

function offered(entries: ReadonlyMap<string, Served> | undefined): Resource[] {
  const resources = [...(entries?.values() ?? [])].map(({ resource, definition }) =>
    definition?.terminating === true ? { ...resource, verbs: endingVerbs } : resource,
  )
  return resources.sort((a, b) => (a.resource < b.resource ? -1 : 1))
}

function isTerminating(crd: JsonObject): boolean {
  if (field(crd, 'metadata', 'deletionTimestamp') !== undefined) return true
  const conditions = field(crd, 'status', 'conditions')
  if (!Array.isArray(conditions)) return false
  return conditions.some((one) => text(one, 'type') === 'Terminating' && text(one, 'status') === 'True')
}

function entriesOf(crd: JsonObject, terminating: boolean): Served[] {
  const versions = definitionVersions(crd)
  const storage = versions.find((version) => version.storage)
  const storageVersion = storage?.name ?? ''
  return definedResources(crd, versions).map(({ version, ...defined }) => {
    const { schema, status, scale, selectableFields } = version
    const stored = storage === undefined || storage === version ? {} : { storageSchema: storage.schema }
    const definition = { storageVersion, schema, ...stored, status, selectableFields, terminating }
    return {
      ...defined,
      spelling: new Spelling(defined.resource),
      definition: scale === undefined ? definition : { ...definition, scale },
    }
  })
}

/** Names of versions in the order in which a definition that had them all would list them. */
function byPreference(names: readonly string[]): string[] {
  const versions = names.map((name) => new Map([['name', name]]))
  const spec = new Map([['versions', versions]])
  return definitionVersions(new Map([['spec', spec]])).map(({ name }) => name)
}
