/** CustomResourceDefinitions: accepted, refused with which causes, changed, in conflict, deleted. */
import { type Case, del, established, type Group, get, patch, post, put, until } from '../corpus.ts'

export const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

type Fields = { readonly [field: string]: unknown }

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

export const definedVersion = (name: string, more: Fields = {}) => ({
  name,
  served: true,
  storage: true,
  schema: { openAPIV3Schema: open },
  ...more,
})

export const definition = (plural: string, kind: string, spec: Fields = {}, group = 'conf.example.com') => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    conversion: { strategy: 'None' },
    versions: [definedVersion('v1')],
    ...spec,
  },
})

const schema = (properties: Fields, more: Fields = {}) => ({
  versions: [definedVersion('v1', { schema: { openAPIV3Schema: { type: 'object', properties, ...more } } })],
})

const spec = (fields: Fields) => schema({ spec: { type: 'object', ...fields } })

const faults: readonly [string, unknown][] = [
  ['name does not match', { ...definition('bads', 'Bad'), metadata: { name: 'other.conf.example.com' } }],
  ['no group', definition('bads', 'Bad', { group: '' })],
  ['a bad group', definition('bads', 'Bad', { group: 'Bad_Group' })],
  ['a bad scope', definition('bads', 'Bad', { scope: 'Sideways' })],
  ['no versions', definition('bads', 'Bad', { versions: [] })],
  ['no storage version', definition('bads', 'Bad', { versions: [definedVersion('v1', { storage: false })] })],
  ['two storage versions', definition('bads', 'Bad', { versions: [definedVersion('v1'), definedVersion('v2')] })],
  [
    'a version twice',
    definition('bads', 'Bad', { versions: [definedVersion('v1'), definedVersion('v1', { storage: false })] }),
  ],
  ['a bad version name', definition('bads', 'Bad', { versions: [definedVersion('V_1')] })],
  ['no schema', definition('bads', 'Bad', { versions: [{ name: 'v1', served: true, storage: true }] })],
  ['a kind in lower case is taken', definition('lowers', 'lower')],
  ['a plural in upper case', definition('Bads', 'Bad')],
  ['no kind', definition('bads', '')],
  ['no spec', { metadata: { name: 'bads.conf.example.com' } }],
  [
    'a protected group',
    { ...definition('bads', 'Bad', { group: 'bads.k8s.io' }), metadata: { name: 'bads.bads.k8s.io' } },
  ],
  ['no type', definition('bads', 'Bad', schema({ spec: { properties: { a: { type: 'string' } } } }))],
  ['an unknown type', definition('bads', 'Bad', spec({ properties: { a: { type: 'text' } } }))],
  ['an array without items', definition('bads', 'Bad', spec({ properties: { a: { type: 'array' } } }))],
  [
    'properties and additionalProperties',
    definition(
      'bads',
      'Bad',
      spec({ properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } }),
    ),
  ],
  ['additionalProperties false', definition('closeds', 'Closed', spec({ additionalProperties: false }))],
  [
    'uniqueItems',
    definition(
      'bads',
      'Bad',
      spec({ properties: { a: { type: 'array', uniqueItems: true, items: { type: 'string' } } } }),
    ),
  ],
  [
    'a default of the wrong type',
    definition('bads', 'Bad', spec({ properties: { a: { type: 'string', default: 5 } } })),
  ],
  [
    'a default outside the enum',
    definition('bads', 'Bad', spec({ properties: { a: { type: 'string', enum: ['x'], default: 'y' } } })),
  ],
  ['a bad pattern', definition('bads', 'Bad', spec({ properties: { a: { type: 'string', pattern: '(' } } }))],
  ['a $ref', definition('bads', 'Bad', spec({ properties: { a: { $ref: '#/x' } } }))],
  ['metadata with a default', definition('bads', 'Bad', schema({ metadata: { type: 'object', default: {} } }))],
  [
    'metadata restricted in more than name',
    definition('bads', 'Bad', schema({ metadata: { type: 'object', properties: { labels: { type: 'object' } } } })),
  ],
  [
    'a list map without keys',
    definition(
      'bads',
      'Bad',
      spec({ properties: { a: { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } } } }),
    ),
  ],
  [
    'a list map with an optional key',
    definition(
      'bads',
      'Bad',
      spec({
        properties: {
          a: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
            items: { type: 'object', properties: { k: { type: 'string' } } },
          },
        },
      }),
    ),
  ],
  [
    'an unknown list type',
    definition(
      'bads',
      'Bad',
      spec({ properties: { a: { type: 'array', 'x-kubernetes-list-type': 'bag', items: { type: 'string' } } } }),
    ),
  ],
  [
    'int-or-string with a type',
    definition('bads', 'Bad', spec({ properties: { a: { type: 'string', 'x-kubernetes-int-or-string': true } } })),
  ],
  ['preserve-unknown-fields false', definition('bads', 'Bad', spec({ 'x-kubernetes-preserve-unknown-fields': false }))],
  [
    'a rule that does not compile',
    definition(
      'bads',
      'Bad',
      spec({ properties: { a: { type: 'integer' } }, 'x-kubernetes-validations': [{ rule: 'self.b > 1' }] }),
    ),
  ],
  [
    'a rule that is no boolean',
    definition(
      'bads',
      'Bad',
      spec({ properties: { a: { type: 'integer' } }, 'x-kubernetes-validations': [{ rule: 'self.a' }] }),
    ),
  ],
  [
    'a rule that may cost too much',
    definition(
      'bads',
      'Bad',
      spec({
        properties: { a: { type: 'array', items: { type: 'string' } } },
        'x-kubernetes-validations': [{ rule: 'self.a.all(x, self.a.all(y, self.a.all(z, x == y || y == z)))' }],
      }),
    ),
  ],
  ['a rule without text', definition('bads', 'Bad', spec({ 'x-kubernetes-validations': [{ rule: '' }] }))],
  [
    'a column without a path',
    definition('bads', 'Bad', {
      versions: [definedVersion('v1', { additionalPrinterColumns: [{ name: 'A', type: 'string', jsonPath: '' }] })],
    }),
  ],
  [
    'a column of an unknown type',
    definition('bads', 'Bad', {
      versions: [
        definedVersion('v1', { additionalPrinterColumns: [{ name: 'A', type: 'text', jsonPath: '.spec.a' }] }),
      ],
    }),
  ],
  [
    'a column with a bad path',
    definition('bads', 'Bad', {
      versions: [
        definedVersion('v1', { additionalPrinterColumns: [{ name: 'A', type: 'string', jsonPath: '.spec[' }] }),
      ],
    }),
  ],
  [
    'a scale without paths',
    definition('bads', 'Bad', {
      versions: [definedVersion('v1', { subresources: { scale: { specReplicasPath: '', statusReplicasPath: '' } } })],
    }),
  ],
  [
    'a scale with a wrong path',
    definition('bads', 'Bad', {
      versions: [
        definedVersion('v1', {
          subresources: { scale: { specReplicasPath: '.replicas', statusReplicasPath: '.status.replicas' } },
        }),
      ],
    }),
  ],
  [
    'a selectable field that is not there',
    definition('bads', 'Bad', { versions: [definedVersion('v1', { selectableFields: [{ jsonPath: '.spec.nope' }] })] }),
  ],
  ['a webhook without a client', definition('bads', 'Bad', { conversion: { strategy: 'Webhook' } })],
  ['an unknown conversion', definition('bads', 'Bad', { conversion: { strategy: 'Magic' } })],
  ['preserveUnknownFields', definition('bads', 'Bad', { preserveUnknownFields: true })],
  [
    'several faults at once',
    definition('bads', 'Bad', { scope: 'x', versions: [definedVersion('V', { storage: false })] }),
  ],
]

/** Each under names of its own: what is taken after all must not stand in the way of the next. */
const refused: Case[] = faults.map(([name, body], at) => {
  const own = JSON.stringify(body)
    .replaceAll('bads', `bads${at}`)
    .replaceAll(/"(Bad|bad|BadList)"/g, (_, word: string) => `"${word}${at}"`)
  return post(`create: ${name}`, crds, own)
})

export const definitions: Group = {
  name: 'definitions',
  cases: [
    ...refused,
    post(
      'create',
      crds,
      definition('plains', 'Plain', {
        names: {
          plural: 'plains',
          singular: 'plain',
          kind: 'Plain',
          listKind: 'PlainList',
          shortNames: ['pl'],
          categories: ['all'],
        },
      }),
    ),
    post('create again', crds, definition('plains', 'Plain')),
    until('created', `${crds}/plains.conf.example.com`, established),
    patch('merge', 'another kind', `${crds}/plains.conf.example.com`, { spec: { names: { kind: 'Other' } } }),
    patch('merge', 'another group', `${crds}/plains.conf.example.com`, { spec: { group: 'other.example.com' } }),
    patch('merge', 'another scope', `${crds}/plains.conf.example.com`, { spec: { scope: 'Cluster' } }),
    patch('merge', 'no versions left', `${crds}/plains.conf.example.com`, { spec: { versions: [] } }),
    patch(
      'merge',
      'a bad schema later',
      `${crds}/plains.conf.example.com`,
      spec({ properties: { a: { type: 'text' } } }),
    ),
    put('replace without a version', `${crds}/plains.conf.example.com`, definition('plains', 'Plain')),
    post('dryRun', `${crds}?dryRun=All`, definition('dries', 'Dry')),
    get('after dryRun', `${crds}/dries.conf.example.com`),
    post('unknown field, Strict', `${crds}?fieldValidation=Strict`, definition('stricts', 'Strict', { nonsense: 1 })),
    get('missing', `${crds}/nope.conf.example.com`),
    del('missing, deleted', `${crds}/nope.conf.example.com`),
    get('status of a definition that is not there', `${crds}/nope.conf.example.com/status`),
  ],
}
