/** What Accept and Content-Type may say, with q-values, parameters and nonsense. */
import { type Case, type Group, get, getAs, post, send } from '../corpus.ts'
import { configMap, core, pod } from './fixtures.ts'

const maps = core('negotiation', 'configmaps')
const yaml =
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: from-yaml\ndata:\n  a: "1"\n  text: |\n    two\n    lines\n'

const accepts: readonly string[] = [
  '*/*',
  'application/*',
  'application/json',
  'APPLICATION/JSON',
  'application/json; charset=utf-8',
  'application/json;charset=utf-8;pretty=1',
  'application/json;pretty=1',
  'application/json;pretty=0',
  'application/json;indent=4',
  'application/yaml',
  'application/yaml,application/json',
  'application/json,application/yaml',
  'application/yaml;q=0.5,application/json',
  'application/json;q=0.1,application/yaml;q=0.9',
  'application/json;q=0',
  'text/plain',
  'text/html,application/xhtml+xml,*/*;q=0.8',
  'text/plain,application/json;q=0.1',
  'nonsense',
  ',',
  '',
  'application/vnd.kubernetes.protobuf',
  'application/vnd.kubernetes.protobuf,application/json',
  'application/vnd.kubernetes.protobuf, */*',
  'application/vnd.kubernetes.protobuf;q=0.5,application/json',
  'application/vnd.kubernetes.protobuf;stream=watch',
  'application/vnd.kubernetes.protobuf;pretty=1',
  'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io',
  'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
  'application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
  'application/json;as=Table;v=v2;g=meta.k8s.io',
  'application/json;as=Table',
  'application/json;as=Table;g=meta.k8s.io',
  'application/json;as=Table;v=v1;g=example.com',
  'application/json;as=Chart;v=v1;g=meta.k8s.io',
  'application/json;as=Chart;v=v1;g=meta.k8s.io,application/json',
  'application/yaml;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io;pretty=1',
  'application/json;stream=watch',
  'application/json;profile=abc',
]

const accepted: Case[] = accepts.flatMap((accept) => [
  getAs(`object as ${accept}`, `${maps}/a`, accept),
  getAs(`list as ${accept}`, maps, accept),
])

const elsewhere: Case[] = [
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'text/plain',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
].flatMap((accept) => [
  getAs(`missing as ${accept}`, `${maps}/nope`, accept),
  getAs(`group list as ${accept}`, '/apis', accept),
  getAs(`resource list as ${accept}`, '/apis/apps/v1', accept),
  getAs(`unknown path as ${accept}`, '/apis/nope/v1/things', accept),
  post(`create as ${accept}`, maps, configMap(`as-${accept.length}`, { k: 'v' }), { headers: { accept } }),
  send('DELETE', `delete as ${accept}`, `${maps}/as-${accept.length}`, undefined, { headers: { accept } }),
])

const bodyTypes: Case[] = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset=latin1',
  'APPLICATION/JSON',
  'text/plain',
  'text/json',
  'application/xml',
  'application/vnd.kubernetes.protobuf;type=x',
  'application/merge-patch+json',
  'nonsense',
  '*/*',
  'application/*',
].map((type, at) =>
  post(`create with content-type ${type}`, maps, configMap(`type-${at}`, { k: 'v' }), {
    headers: { 'content-type': type },
  }),
)

export const negotiation: Group = {
  name: 'negotiation',
  cases: [
    post('make a', maps, configMap('a', { k: 'v', n: '1' }, { labels: { x: 'y' }, annotations: { note: 'a: b' } })),
    post('make pod', core('negotiation', 'pods'), pod('p')),
    ...accepted,
    ...elsewhere,
    ...bodyTypes,
    send('POST', 'create without content-type', maps, undefined),
    {
      name: 'create with a body and no content-type',
      method: 'POST',
      path: maps,
      headers: {},
      body: configMap('untyped', { k: 'v' }),
    },
    post('create from yaml', maps, yaml, { headers: { 'content-type': 'application/yaml' } }),
    post('create from yaml, answer in yaml', maps, yaml.replace('from-yaml', 'both-yaml'), {
      headers: { 'content-type': 'application/yaml', accept: 'application/yaml' },
    }),
    post('create from broken yaml', maps, 'a: [1, 2\nb: }', { headers: { 'content-type': 'application/yaml' } }),
    post(
      'create from yaml with numbers for strings',
      maps,
      'kind: ConfigMap\napiVersion: v1\nmetadata: {name: numbers}\ndata: {a: 1}\n',
      {
        headers: { 'content-type': 'application/yaml' },
      },
    ),
    post('yaml sent as json', maps, yaml),
    post('json sent as yaml', maps, configMap('json-as-yaml', { k: 'v' }), {
      headers: { 'content-type': 'application/yaml' },
    }),
    send('PUT', 'update from yaml', `${maps}/from-yaml`, yaml.replace('"1"', '"2"'), {
      headers: { 'content-type': 'application/yaml' },
    }),
    send(
      'DELETE',
      'delete options in yaml',
      `${maps}/from-yaml`,
      'kind: DeleteOptions\napiVersion: v1\npropagationPolicy: Background\n',
      {
        headers: { 'content-type': 'application/yaml' },
      },
    ),
    send('DELETE', 'delete options as text', `${maps}/both-yaml`, '{}', { headers: { 'content-type': 'text/plain' } }),
    ...[
      'text/plain',
      'application/json',
      'application/yaml',
      'application/strategic-merge-patch+json; charset=utf-8',
      '',
    ].map((type) =>
      send(
        'PATCH',
        `patch with content-type ${type}`,
        `${maps}/a`,
        { data: { p: 'q' } },
        { headers: { 'content-type': type } },
      ),
    ),
    get('as Table without objects', `${maps}?includeObject=None`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
    get('as Table with metadata', `${maps}?includeObject=Metadata`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
    get('as Table with objects', `${maps}?includeObject=Object`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
    get('as Table with nonsense', `${maps}?includeObject=Nonsense`, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
    get('includeObject without Table', `${maps}?includeObject=None`),
  ],
}
