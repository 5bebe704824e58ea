/**
 * `node conformance/facts/facts.ts` writes src/kube/builtin.jsonl anew from a real kube-apiserver that it starts: the facts
 * about built-in resources are never typed by hand (write rules that no request can show are in facts-writes.ts).
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  BuiltinColumn,
  BuiltinColumns,
  BuiltinFacts,
  BuiltinGroup,
  BuiltinPolicy,
  BuiltinResource,
} from '../../src/kube/builtin.ts'
import type { Resource, Subresource, Verb } from '../../src/kube/resource.ts'
import { kubernetesVersion } from '../build.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import { type Documents, foldPaths, unionOfSchemas } from './openapi.ts'
import { writeRules } from './writes.ts'

const target = join(import.meta.dirname, '..', '..', 'src', 'kube', 'builtin.jsonl')

type ApiResource = {
  readonly name: string
  readonly singularName: string
  readonly namespaced: boolean
  readonly group?: string
  readonly version?: string
  readonly kind: string
  readonly verbs: readonly Verb[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly storageVersionHash?: string
}

async function main(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'ake-facts-'))
  const oracle = await startOracle({ dir, progress: console.error })
  try {
    const documents = await openapi(oracle)
    const policy = await policyOf(oracle)
    // Columns first: asking for write rules leaves a terminating namespace and the like behind.
    const { groups, resources } = await discover(oracle, documents)
    const columns = await columnsOf(oracle, resources)
    const schemas = unionOfSchemas(documents)
    const paths = foldPaths(documents)
    const facts: BuiltinFacts = {
      kubernetes: kubernetesVersion,
      version: await get(oracle, '/version'),
      groups,
      resources: await withRules(oracle, resources),
    }
    const lines = [facts, schemas, paths, columns, policy].map((part) => `${JSON.stringify(part)}\n`)
    await writeFile(target, lines.join(''))
    console.error(`${resources.length} resources, ${Object.keys(schemas).length} schemas`)
    console.error(`bytes per line: ${lines.map((line) => line.length).join(', ')}`)
  } finally {
    oracle.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

async function get<T>(oracle: Oracle, path: string, accept = 'application/json'): Promise<T> {
  const answer = await ask(oracle, path, { headers: { accept } })
  if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.body}`)
  return JSON.parse(answer.body) as T
}

async function openapi(oracle: Oracle): Promise<Documents> {
  const { paths } = await get<{ paths: Record<string, { serverRelativeURL: string }> }>(oracle, '/openapi/v3')
  const documents = new Map()
  for (const [name, { serverRelativeURL }] of Object.entries(paths)) {
    documents.set(name, await get(oracle, serverRelativeURL))
  }
  return documents
}

type Discovered = { readonly groups: readonly BuiltinGroup[]; readonly resources: readonly Resource[] }

async function discover(oracle: Oracle, documents: Documents): Promise<Discovered> {
  type Group = { name: string; versions: { version: string }[]; preferredVersion: { version: string } }
  const named = await get<{ groups: Group[] }>(oracle, '/apis')
  const core: BuiltinGroup = { name: '', versions: ['v1'], preferred: 'v1' }
  const others = named.groups.map(({ name, versions, preferredVersion }) => ({
    name,
    versions: versions.map(({ version }) => version),
    preferred: preferredVersion.version,
  }))
  const groups = [core, ...others]
  const resources: Resource[] = []
  for (const { name: group, versions } of groups) {
    for (const version of versions) {
      const root = group === '' ? `api/${version}` : `apis/${group}/${version}`
      const list = await get<{ resources: ApiResource[] }>(oracle, `/${root}`)
      const listKind = (plural: string) => listKindOf(documents, root, plural)
      resources.push(...resourcesOf({ group, version, list: list.resources, listKind }))
    }
  }
  return { groups, resources }
}

type Listed = {
  readonly group: string
  readonly version: string
  readonly list: readonly ApiResource[]
  readonly listKind: (plural: string) => string
}

function resourcesOf({ group, version, list, listKind }: Listed): Resource[] {
  const parents = list.filter(({ name }) => !name.includes('/'))
  return parents.map((parent) => {
    const prefix = `${parent.name}/`
    const subresources: Subresource[] = list
      .filter(({ name }) => name.startsWith(prefix))
      .map((sub) => ({
        name: sub.name.slice(prefix.length),
        verbs: sub.verbs,
        group: sub.group ?? group,
        version: sub.version ?? version,
        kind: sub.kind,
      }))
    return {
      group,
      version,
      resource: parent.name,
      kind: parent.kind,
      listKind: parent.verbs.includes('list') ? listKind(parent.name) : '',
      singular: parent.singularName,
      namespaced: parent.namespaced,
      verbs: parent.verbs,
      shortNames: parent.shortNames ?? [],
      categories: parent.categories ?? [],
      subresources,
      ...(parent.storageVersionHash === undefined ? {} : { storageVersionHash: parent.storageVersionHash }),
      // The one pair of built-in resources of different groups that are the same objects.
      interest: parent.name === 'events' ? '/events' : `${group}/${parent.name}`,
      custom: false,
    }
  })
}

/** The kind of the schema that the operation which lists across namespaces answers with. */
function listKindOf(documents: Documents, root: string, plural: string): string {
  type Content = { schema: { $ref: string } }
  type Operation = { responses: { 200: { content: { 'application/json': Content } } } }
  const document = documents.get(root)
  const operation = document?.paths[`/${root}/${plural}`]?.get as Operation | undefined
  const name = operation?.responses[200].content['application/json'].schema.$ref.split('/').at(-1) ?? ''
  const schema = document?.components?.schemas?.[name] as Record<string, { kind: string }[]> | undefined
  const kind = schema?.['x-kubernetes-group-version-kind']?.[0]?.kind
  if (kind === undefined) throw new Error(`no kind is known for lists of ${root}/${plural}`)
  return kind
}

async function columnsOf(oracle: Oracle, resources: readonly Resource[]): Promise<BuiltinColumns> {
  const columns: { [key: string]: BuiltinColumn[] } = {}
  for (const { group, version, resource, verbs } of resources) {
    if (!verbs.includes('list')) continue
    const path = `/${group === '' ? 'api' : `apis/${group}`}/${version}/${resource}`
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const table = await get<{ columnDefinitions: BuiltinColumn[] }>(oracle, path, accept)
    columns[`${group}/${version}/${resource}`] = table.columnDefinitions.map(({ name, type, format, priority }) => {
      return { name, type, format, priority }
    })
  }
  return columns
}

/** Roles and bindings as kube-apiserver has made them, before a controller has filled those that are aggregated. */
async function policyOf(oracle: Oracle): Promise<BuiltinPolicy> {
  type Made = { metadata: { name: string; namespace?: string } & Record<string, unknown> }
  const made = async (resource: string): Promise<Made[]> => {
    const { items } = await get<{ items: Made[] }>(oracle, `/apis/rbac.authorization.k8s.io/v1/${resource}`)
    return items.map(({ metadata, ...rest }) => {
      const { managedFields: _, uid: __, resourceVersion: ___, creationTimestamp: ____, ...kept } = metadata
      return { metadata: kept, ...rest }
    })
  }
  return {
    clusterroles: await made('clusterroles'),
    clusterrolebindings: await made('clusterrolebindings'),
    roles: await made('roles'),
    rolebindings: await made('rolebindings'),
  }
}

/** Every field that some resource of 1.36 can be selected by; each resource is asked which of them it takes. */
const selectable = [
  ...['metadata.name', 'metadata.namespace', 'spec.nodeName', 'spec.host', 'spec.restartPolicy', 'spec.schedulerName'],
  ...['spec.serviceAccountName', 'spec.hostNetwork', 'spec.unschedulable', 'spec.clusterIP', 'spec.type'],
  ...['spec.signerName', 'spec.podName', 'spec.driver', 'spec.pool.name', 'status.phase', 'status.podIP'],
  ...['status.podIPs', 'status.nominatedNodeName', 'status.replicas', 'status.successful', 'type', 'reason', 'source'],
  ...['reportingComponent', 'reportingController'],
  ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].flatMap((field) => [
    `involvedObject.${field}`,
    `regarding.${field}`,
  ]),
]

/** A field that no resource has, to see in which words it is refused. */
const absentField = 'spec.absent'
const usualRefusal = `"${absentField}" is not a known field selector: only "metadata.name", "metadata.namespace"`

type Selection = Pick<BuiltinResource, 'selectableFields' | 'fieldRefusal'>

async function selection(oracle: Oracle, { group, version, resource, verbs }: Resource): Promise<Selection> {
  if (!verbs.includes('list')) return { selectableFields: [] }
  const path = `/${group === '' ? 'api' : `apis/${group}`}/${version}/${resource}?limit=1&fieldSelector=`
  const taken: string[] = []
  for (const field of selectable) {
    const { status } = await ask(oracle, `${path}${field}%3Dx`)
    if (status === 200) taken.push(field)
    else if (status !== 400) throw new Error(`field selector ${field} of ${resource}: ${status}`)
  }
  const { message } = JSON.parse((await ask(oracle, `${path}${absentField}%3Dx`)).body) as { message: string }
  if (message === usualRefusal) return { selectableFields: taken }
  return { selectableFields: taken, fieldRefusal: message.replace(absentField, '{field}') }
}

/** One after the other: what is created for one resource must not get in the way of the next. */
async function withRules(oracle: Oracle, resources: readonly Resource[]): Promise<BuiltinResource[]> {
  const ruled: BuiltinResource[] = []
  for (const resource of resources) {
    const fields = await selection(oracle, resource)
    const writes = await writeRules(oracle, resource, resources)
    ruled.push({ ...resource, ...fields, ...(writes === undefined ? {} : { writes }) })
  }
  return ruled
}

await main()
