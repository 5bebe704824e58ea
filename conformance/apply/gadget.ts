/** A custom resource with every list type, map type and special schema that field ownership knows, in two versions. */
import { definedVersion, definition } from '../corpus/definitions.ts'

export const group = 'apply.example.com'

const text = { type: 'string' }
const whole = { type: 'integer' }
const list = (type: string, items: object, keys?: readonly string[]) => ({
  type: 'array',
  'x-kubernetes-list-type': type,
  ...(keys === undefined ? {} : { 'x-kubernetes-list-map-keys': keys }),
  items,
})
const struct = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const mapOf = (values: object, more: object = {}) => ({ type: 'object', additionalProperties: values, ...more })

const open = { 'x-kubernetes-preserve-unknown-fields': true }
const atomic = { 'x-kubernetes-map-type': 'atomic' }

const port = struct({ port: whole, protocol: { ...text, default: 'TCP' }, name: text, modes: list('set', text) })
const part = struct({ name: text, value: text, size: struct({ a: whole, b: whole }), tags: list('set', text) })

const spec = {
  text,
  count: whole,
  amount: { type: 'number' },
  flag: { type: 'boolean' },
  either: { 'x-kubernetes-int-or-string': true },
  note: { ...text, nullable: true },
  level: { ...whole, default: 3 },
  replicas: whole,
  tags: list('set', text),
  numbers: list('set', whole),
  words: list('atomic', text),
  plain: { type: 'array', items: text },
  ports: list('map', { ...port, required: ['port'] }, ['port', 'protocol']),
  parts: list('map', { ...part, required: ['name'] }, ['name']),
  pairs: list('atomic', struct({ a: text, b: text })),
  rows: { type: 'array', items: { type: 'array', items: text } },
  labels: mapOf(text),
  table: mapOf(struct({ x: whole, y: whole })),
  sealed: mapOf(text, atomic),
  unit: struct({ a: text, b: text }, atomic),
  nest: struct({ a: text, b: text, deep: struct({ c: text, d: text }) }),
  free: struct({}, open),
  half: struct({ known: text, list: list('set', text) }, open),
  template: { type: 'object', 'x-kubernetes-embedded-resource': true, ...open },
}

const condition = struct({ type: text, status: text, reason: text, message: text })
const status = {
  phase: text,
  replicas: whole,
  conditions: list('map', { ...condition, required: ['type'] }, ['type']),
  seen: mapOf(text),
}

const schema = (more: object = {}) => ({
  schema: { openAPIV3Schema: struct({ spec: struct({ ...spec, ...more }), status: struct(status) }) },
  subresources: {
    status: {},
    scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  },
})

export const gadgetDefinition = definition(
  'gadgets',
  'Gadget',
  {
    versions: [
      definedVersion('v1', schema()),
      definedVersion('v2', { storage: false, ...schema({ added: text, words: list('set', text) }) }),
    ],
  },
  group,
)

/** Nothing is known of it: everything is kept, lists are one value. */
export const openingDefinition = definition('openings', 'Opening', { versions: [definedVersion('v1')] }, group)

/** A definition that scenarios change: `tags` is of this list type, or there is no schema at all. */
export const changingDefinition = (plural: string, listType?: 'set' | 'atomic') =>
  definition(
    plural,
    `${plural[0]?.toUpperCase()}${plural.slice(1, -1)}`,
    {
      versions: [
        definedVersion(
          'v1',
          listType === undefined
            ? {}
            : { schema: { openAPIV3Schema: struct({ spec: struct({ tags: list(listType, text), text }) }) } },
        ),
      ],
    },
    group,
  )
