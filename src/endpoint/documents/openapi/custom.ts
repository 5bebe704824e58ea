/** What OpenAPI v3 says about a custom resource: its schemas and its operations, named as kube-apiserver names them. */
import type { BuiltinSchema } from '../../../kube/builtin.ts'
import type { Resource } from '../../../kube/resource.ts'
import type { Definition } from '../../../kube/schema/catalog.ts'
import type { Schema } from '../../../kube/schema/schema.ts'

const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const scaleSchema = 'io.k8s.api.autoscaling.v1.Scale'

/** `com.example.v1.Widget`: the group backwards, the version, the kind. */
function schemaName({ group, version }: Resource, kind: string): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`
}

/** The kind and its list, by name. */
export function customSchemas(resource: Resource, definition: Definition): Record<string, BuiltinSchema> {
  const { group, version, kind, listKind, resource: plural } = resource
  const fields = definition.selectableFields.map((fieldPath) => ({ fieldPath }))
  const extensions = (of: string) => ({
    'x-kubernetes-group-version-kind': [{ group, kind: of, version }],
    ...(fields.length === 0 ? {} : { 'x-kubernetes-selectable-fields': fields }),
  })
  const typed = { apiVersion: { type: 'string' }, kind: { type: 'string' } }
  return {
    [schemaName(resource, kind)]: { ...rootSchema(definition.schema), ...extensions(kind) },
    [schemaName(resource, listKind)]: {
      description: `${listKind} is a list of ${kind}`,
      type: 'object',
      required: ['items'],
      properties: {
        ...typed,
        items: { description: `List of ${plural}.`, type: 'array', items: reference(schemaName(resource, kind)) },
        metadata: { allOf: [reference(`${meta}.ListMeta`)] },
      },
      ...extensions(listKind),
    },
  }
}

/** Without a schema nothing is said about fields: clients would take a list of three for all there are. */
function rootSchema(schema: Schema | undefined): BuiltinSchema {
  if (schema === undefined) return { type: 'object' }
  const published = publish(schema)
  const own = published.properties as Record<string, unknown> | undefined
  return { ...published, properties: { ...own, ...objectFields() } }
}

function objectFields(): Record<string, unknown> {
  return {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { allOf: [reference(`${meta}.ObjectMeta`)] },
  }
}

/** The definition's own schema, embedded objects completed with the fields every object has. */
function publish(schema: Schema): BuiltinSchema {
  const { properties, items, additionalProperties } = schema
  const published: Record<string, unknown> = { ...schema }
  if (properties !== undefined) published.properties = mapped(properties)
  if (items !== undefined) published.items = publish(items)
  if (typeof additionalProperties === 'object') published.additionalProperties = publish(additionalProperties)
  if (schema['x-kubernetes-embedded-resource'] === true) {
    published.properties = { ...(published.properties as object | undefined), ...objectFields() }
    published.required = [...new Set([...(schema.required ?? []), 'kind', 'apiVersion'])]
  }
  // Clients that do not know the extension learn it in OpenAPI's own words.
  if (schema['x-kubernetes-int-or-string'] === true && schema.anyOf === undefined && schema.allOf === undefined) {
    published.anyOf = [{ type: 'integer' }, { type: 'string' }]
  }
  return published
}

function mapped(properties: Readonly<Record<string, Schema>>): Record<string, BuiltinSchema> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, publish(schema)]))
}

/** Path items by path. */
export function customPaths(resource: Resource): Record<string, unknown> {
  const { group, version, resource: plural, namespaced, kind, listKind, subresources } = resource
  const base = `/apis/${group}/${version}`
  const collection = namespaced ? `${base}/namespaces/{namespace}/${plural}` : `${base}/${plural}`
  const one = `${collection}/{name}`
  const place = namespaced ? [pathParameter('namespace')] : []
  const self = schemaName(resource, kind)
  const list = schemaName(resource, listKind)
  const within = namespaced ? `Namespaced${kind}` : kind
  const build = (action: Action, verb: string, noun: string, body: BodySchemas) =>
    operation(resource, { action, verb, noun }, body)
  const paths: Record<string, unknown> = {}
  if (namespaced) {
    const all = build('list', 'list', `${kind}ForAllNamespaces`, { answer: list })
    paths[`${base}/${plural}`] = { get: { ...all, parameters: undefined }, parameters: everywhereParameters }
  }
  paths[collection] = {
    get: build('list', 'list', within, { answer: list }),
    post: build('post', 'create', within, { answer: self, request: self }),
    delete: build('deletecollection', 'delete', `Collection${within}`, { answer: `${meta}.Status` }),
    parameters: [...place, pretty],
  }
  const named = [pathParameter('name'), ...place, pretty]
  paths[one] = {
    ...changes(build, within, self),
    delete: build('delete', 'delete', within, { answer: `${meta}.Status`, request: `${meta}.DeleteOptions` }),
    parameters: named,
  }
  for (const { name } of subresources) {
    const noun = `${within}${name.charAt(0).toUpperCase()}${name.slice(1)}`
    paths[`${one}/${name}`] = { ...changes(build, noun, name === 'scale' ? scaleSchema : self), parameters: named }
  }
  return paths
}

type Action = 'list' | 'post' | 'deletecollection' | 'get' | 'put' | 'delete' | 'patch'
type BodySchemas = { readonly answer: string; readonly request?: string }
type Build = (action: Action, verb: string, noun: string, body: BodySchemas) => unknown

function changes(build: Build, noun: string, answer: string) {
  return {
    get: build('get', 'read', noun, { answer }),
    put: build('put', 'replace', noun, { answer, request: answer }),
    patch: build('patch', 'patch', noun, { answer, request: `${meta}.Patch` }),
  }
}

const query = (name: string, type = 'string') => ({ name, in: 'query', schema: { type, uniqueItems: true } })
const pathParameter = (name: string) => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', uniqueItems: true },
})
const pretty = query('pretty')

const listParameters = [
  query('allowWatchBookmarks', 'boolean'),
  query('continue'),
  query('fieldSelector'),
  query('labelSelector'),
  query('limit', 'integer'),
  query('resourceVersion'),
  query('resourceVersionMatch'),
  query('sendInitialEvents', 'boolean'),
  query('shardSelector'),
  query('timeoutSeconds', 'integer'),
  query('watch', 'boolean'),
]
const everywhereParameters = [...listParameters.slice(0, 5), pretty, ...listParameters.slice(5)]
const writeParameters = [query('dryRun'), query('fieldManager'), query('fieldValidation')]
const deleteParameters = [
  query('dryRun'),
  query('gracePeriodSeconds', 'integer'),
  query('ignoreStoreReadErrorWithClusterBreakingPotential', 'boolean'),
  query('orphanDependents', 'boolean'),
  query('propagationPolicy'),
]

const parametersOf: Readonly<Record<Action, readonly unknown[]>> = {
  list: listParameters,
  post: writeParameters,
  deletecollection: listParameters,
  get: [query('resourceVersion')],
  put: writeParameters,
  delete: deleteParameters,
  patch: [...writeParameters, query('force', 'boolean')],
}

/** What an action may answer besides 200. */
const moreAnswers: Readonly<Partial<Record<Action, readonly [string, string][]>>> = {
  post: [
    ['201', 'Created'],
    ['202', 'Accepted'],
  ],
  put: [['201', 'Created']],
  delete: [['202', 'Accepted']],
}

const plainTypes = ['application/json', 'application/yaml']
const patchTypes = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json']

function operation(
  { group, version, kind }: Resource,
  { action, verb, noun }: { action: Action; verb: string; noun: string },
  { answer, request }: BodySchemas,
) {
  const tag = camel(group)
  const type = `${version.charAt(0).toUpperCase()}${version.slice(1)}`
  const answers = [['200', 'OK'], ...(moreAnswers[action] ?? [])]
  const responses = answers.map(([code, description]) => [code, { description, content: content(plainTypes, answer) }])
  const types = action === 'patch' ? patchTypes : plainTypes
  const required = action === 'delete' ? {} : { required: true }
  return {
    tags: [`${tag}_${version}`],
    operationId: `${verb}${tag.charAt(0).toUpperCase()}${tag.slice(1)}${type}${noun}`,
    parameters: parametersOf[action],
    ...(request === undefined ? {} : { requestBody: { content: content(types, request), ...required } }),
    responses: { ...Object.fromEntries(responses), 401: { description: 'Unauthorized' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
  }
}

function content(types: readonly string[], schema: string) {
  return Object.fromEntries(types.map((type) => [type, { schema: reference(schema) }]))
}

function reference(name: string) {
  return { $ref: `#/components/schemas/${name}` }
}

/** `disco.example.com` → `discoExampleCom` */
function camel(group: string): string {
  return group.replace(/[^a-zA-Z0-9]+(.)/g, (_, next: string) => next.toUpperCase())
}
