/**
 * What a real kube-apiserver answers without storing it, in both forms: refusals, scales, reviews, the Status of a deletion.
 * A Status and whatever else tells nothing of the moment is asked for twice, in one form each.
 */
import { decodeMessage, encodeMessage, messageOf, readEnvelope, wrap } from '../../src/kube/protobuf/protobuf.ts'
import { ask, type Oracle } from '../oracle.ts'
import { type Answer, protobufType, Wire } from './ask.ts'
import { differ, type Found } from './golden.ts'

const namespace = 'answers'
const core = `/api/v1/namespaces/${namespace}`
const apps = `/apis/apps/v1/namespaces/${namespace}`
const json = 'application/json'

type Asked = { readonly name: string; readonly method?: string; readonly path: string; readonly body?: object }

const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
const spec = { replicas: 2, selector: { matchLabels: { a: 'b' } }, template }
const review = (kind: string, more: object) => ({ apiVersion: 'authorization.k8s.io/v1', kind, spec: more })
const attributes = { verb: 'get', resource: 'pods', namespace, name: 'x', group: '', version: 'v1' }
const reviews = '/apis/authorization.k8s.io/v1'

const asked: readonly Asked[] = [
  { name: 'not found', path: `${core}/pods/nothing` },
  { name: 'no such resource', path: '/api/v1/nothings' },
  { name: 'a bad selector', path: `${core}/pods?labelSelector=%3D%3D` },
  { name: 'a method', method: 'PUT', path: `${core}/pods`, body: {} },
  { name: 'invalid', method: 'POST', path: `${core}/configmaps`, body: { metadata: { name: 'UPPER' } } },
  {
    name: 'invalid with many causes',
    method: 'POST',
    path: `${core}/pods`,
    body: { metadata: { name: 'p' }, spec: { containers: [{}, {}] } },
  },
  {
    name: 'conflict',
    method: 'PUT',
    path: `${apps}/deployments/d`,
    body: { metadata: { name: 'd', resourceVersion: '1' }, spec },
  },
  { name: 'exists', method: 'POST', path: `${apps}/deployments`, body: { metadata: { name: 'd' }, spec } },
  { name: 'a dry deletion', method: 'DELETE', path: `${core}/configmaps/c?dryRun=All` },
  {
    name: 'deletion with a wrong uid',
    method: 'DELETE',
    path: `${core}/configmaps/c`,
    body: { preconditions: { uid: 'wrong' } },
  },
  { name: 'scale', path: `${apps}/deployments/d/scale` },
  { name: 'scale of a set', path: `${apps}/replicasets/d/scale` },
  {
    name: 'access',
    method: 'POST',
    path: `${reviews}/subjectaccessreviews`,
    body: review('SubjectAccessReview', {
      user: 'u',
      groups: ['g'],
      extra: { k: ['1', '2'] },
      uid: 'x',
      resourceAttributes: attributes,
    }),
  },
  {
    name: 'access to a path',
    method: 'POST',
    path: `${reviews}/subjectaccessreviews`,
    body: review('SubjectAccessReview', { user: 'u', nonResourceAttributes: { path: '/x', verb: 'get' } }),
  },
  {
    name: 'own access',
    method: 'POST',
    path: `${reviews}/selfsubjectaccessreviews`,
    body: review('SelfSubjectAccessReview', { resourceAttributes: attributes }),
  },
  {
    name: 'local access',
    method: 'POST',
    path: `${reviews}/namespaces/${namespace}/localsubjectaccessreviews`,
    body: {
      ...review('LocalSubjectAccessReview', { user: 'u', resourceAttributes: attributes }),
      metadata: { namespace },
    },
  },
  {
    name: 'whose token',
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    body: { spec: { token: 'none', audiences: ['a'] } },
  },
]

export async function proveAnswers(oracle: Oracle, found: Found): Promise<void> {
  await ask(oracle, '/api/v1/namespaces', { method: 'POST', body: { metadata: { name: namespace } } })
  await ask(oracle, `${core}/configmaps`, { method: 'POST', body: { metadata: { name: 'c' } } })
  for (const kind of ['deployments', 'replicasets']) {
    await ask(oracle, `${apps}/${kind}`, { method: 'POST', body: { metadata: { name: 'd' }, spec } })
  }
  const wire = new Wire(oracle)
  const kinds = new Set<string>()
  try {
    for (const { name, method = 'GET', path, body } of asked) {
      const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
      const send = (accept: string) => wire.send(method, path, { accept, 'content-type': json }, bytes)
      kinds.add(proveAnswer(found, name, await send(json), await send(protobufType)))
    }
  } finally {
    wire.close()
  }
  found.notes.push(`${asked.length} answers that are not stored, of ${[...kinds].sort().join(', ')}`)
}

function proveAnswer(found: Found, name: string, plain: Answer, message: Answer): string {
  found.count++
  const { kind, apiVersion } = JSON.parse(plain.bytes.toString()) as { kind: string; apiVersion: string }
  const type = { apiVersion, kind }
  const known = messageOf(apiVersion, kind)
  if (known === undefined || plain.status !== message.status) {
    found.faults.push(`${name}: ${plain.status} ${apiVersion} ${kind}, in protobuf ${message.status}`)
    return kind
  }
  try {
    differ(found, `${name} written`, message.bytes, wrap(type, encodeMessage(known, plain.bytes)))
    const read = decodeMessage(known, readEnvelope(message.bytes).raw, type)
    differ(found, `${name} read`, plain.bytes, Buffer.concat([read, Buffer.from('\n')]))
  } catch (error) {
    found.faults.push(`${name}: ${(error as Error).stack}`)
  }
  return kind
}
