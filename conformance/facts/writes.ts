/**
 * The write rules of each built-in resource. What a request can show is asked of the real server by creating, replacing
 * and deleting a sample; what it cannot is the table below, read in Kubernetes' registry strategies.
 */

import { createHash } from 'node:crypto'
import type { WriteRules } from '../../src/kube/builtin.ts'
import { apiVersion, type Resource } from '../../src/kube/resource.ts'
import { ask, type Oracle } from '../oracle.ts'
import { samples } from '../samples.ts'

type Json = { [key: string]: unknown }
type Reset = { readonly [when: string]: readonly string[] }

/** What raises metadata.generation, where it is not a change of `spec` alone. */
const raisedBy: { readonly [groupPlural: string]: readonly string[] } = {
  '/podtemplates': ['template'],
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': ['webhooks'],
  'admissionregistration.k8s.io/validatingwebhookconfigurations': ['webhooks'],
  'apps/deployments': ['spec', 'metadata.annotations'],
  'discovery.k8s.io/endpointslices': ['addressType', 'endpoints', 'ports', 'metadata.labels'],
  'scheduling.k8s.io/priorityclasses': [],
  'storage.k8s.io/csidrivers': ['spec'],
}

const statusOnly: Reset = { create: ['status'], update: ['status'], status: ['spec'] }
const statusAndMetadata: Reset = { ...statusOnly, status: ['spec', 'metadata'] }

/** What writes ignore, where it is not `statusOnly` for a resource with a status subresource and nothing for others. */
const resets: { readonly [groupPlural: string]: Reset } = {
  '/namespaces': { ...statusOnly, update: ['status', 'spec.finalizers'], finalize: ['status'] },
  '/nodes': { ...statusOnly, create: [] },
  '/pods': { ...statusOnly, status: ['spec', 'metadata.deletionTimestamp', 'metadata.ownerReferences'] },
  'admissionregistration.k8s.io/validatingadmissionpolicies': statusAndMetadata,
  'apiregistration.k8s.io/apiservices': statusAndMetadata,
  'apps/deployments': { ...statusOnly, status: ['spec', 'metadata.labels'] },
  'certificates.k8s.io/certificatesigningrequests': {
    ...statusOnly,
    update: ['spec', 'status'],
    approval: ['spec', 'status.certificate'],
  },
  'flowcontrol.apiserver.k8s.io/flowschemas': statusAndMetadata,
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': statusAndMetadata,
  'networking.k8s.io/servicecidrs': statusAndMetadata,
  'resource.k8s.io/resourceclaims': statusAndMetadata,
  'storage.k8s.io/volumeattachments': statusAndMetadata,
}

/** Dependents' fate where a DELETE names none and it is not Background. */
const propagation: { readonly [groupPlural: string]: 'Orphan' | 'None' } = {
  '/events': 'None',
  '/replicationcontrollers': 'Orphan',
  'batch/jobs': 'Orphan',
  'events.k8s.io/events': 'None',
}

/** Undefined for what is not stored. */
export async function writeRules(
  oracle: Oracle,
  of: Resource,
  all: readonly Resource[],
): Promise<WriteRules | undefined> {
  if (!of.verbs.includes('create') || !of.verbs.includes('update')) return undefined
  const key = `${of.group}/${of.resource}`
  const sample = samples[key]
  if (sample === undefined) throw new Error(`samples.ts has no ${key}`)
  const seen = await observe(oracle, of, sample)
  const generation = seen.generation || key in raisedBy
  const plain: Reset = of.subresources.some(({ name }) => name === 'status') ? statusOnly : { create: [], update: [] }
  const reset = resets[key] ?? plain
  expectReset(of, reset.status, seen.keptByStatus)
  return {
    storageVersion: storageVersion(of, all),
    unconditionalUpdate: seen.unconditionalUpdate,
    createOnUpdate: seen.createOnUpdate,
    ...(generation ? { generation: { created: seen.generation, raisedBy: raisedBy[key] ?? ['spec'] } } : {}),
    reset: reset as WriteRules['reset'],
    ...(seen.status === undefined ? {} : { createdStatus: seen.status }),
    deleteAnswers: seen.deleteAnswers,
    propagation: propagation[key] ?? 'Background',
  }
}

/** Discovery tells the stored version by a hash of it, the same for every spelling of the same objects. */
function storageVersion(of: Resource, all: readonly Resource[]): string {
  const hash = ({ group, version, kind }: Resource) =>
    createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
  return apiVersion(all.find((one) => one.interest === of.interest && hash(one) === of.storageVersionHash) ?? of)
}

type Observed = Pick<WriteRules, 'unconditionalUpdate' | 'createOnUpdate' | 'deleteAnswers'> & {
  readonly generation: boolean
  readonly status: unknown
  readonly keptByStatus: Kept
}

/** Whether a write of the status subresource changes labels and annotations. */
type Kept = { readonly labels: boolean; readonly annotations: boolean }

async function observe(oracle: Oracle, of: Resource, sample: Json): Promise<Observed> {
  const root = of.group === '' ? `/api/${of.version}` : `/apis/${of.group}/${of.version}`
  const collection = `${root}${of.namespaced ? '/namespaces/default' : ''}/${of.resource}`
  const head = { apiVersion: apiVersion(of), kind: of.kind }
  const name = (sample.metadata as { name: string } | undefined)?.name ?? 'sample'
  const send = async (method: string, path: string, body?: unknown) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const answer = await ask(oracle, path, { method, body, headers: { 'content-type': type } })
    return { status: answer.status, object: JSON.parse(answer.body) as Json }
  }
  const made = await send('POST', collection, { ...sample, ...head, metadata: { name } })
  if (made.status !== 201) throw new Error(`the sample of ${of.resource} is refused: ${String(made.object.message)}`)
  const metadata = { ...(made.object.metadata as Json) }
  delete metadata.resourceVersion
  delete metadata.uid
  const again = await send('PUT', `${collection}/${name}`, { ...made.object, metadata })
  const marks = { metadata: { labels: { probe: 'x' }, annotations: { probe: 'x' } } }
  const marked = await send('PATCH', `${collection}/${name}/status`, marks)
  // Names are checked only where creating is allowed, so a name of the wrong form for some resources does no harm.
  const elsewhere = await send('PUT', `${collection}/elsewhere`, {
    ...sample,
    ...head,
    metadata: { name: 'elsewhere' },
  })
  // Orphaning, some resources' default, would put a finalizer on it, and nobody here takes it off again.
  const gone = await send('DELETE', `${collection}/${name}?propagationPolicy=Background`)
  if (elsewhere.status === 201) await send('DELETE', `${collection}/elsewhere`)
  expectOneOf(of, 'PUT without resourceVersion', again, [200, 409, 422])
  expectOneOf(of, 'PUT of a missing name', elsewhere, [201, 404])
  expectOneOf(of, 'DELETE', gone, [200, 202])
  return {
    unconditionalUpdate: again.status === 200,
    createOnUpdate: elsewhere.status === 201,
    deleteAnswers: gone.object.kind === 'Status' ? 'status' : 'object',
    generation: metadata.generation === 1,
    status: withoutTimes(made.object.status),
    keptByStatus: { labels: hasMark(marked.object, 'labels'), annotations: hasMark(marked.object, 'annotations') },
  }
}

function hasMark(object: Json, field: 'labels' | 'annotations'): boolean {
  const metadata = object.metadata as { labels?: Json; annotations?: Json } | undefined
  return metadata?.[field]?.probe === 'x'
}

/** The table must not say otherwise than the server does. */
function expectReset(of: Resource, status: readonly string[] | undefined, kept: Kept): void {
  const keeps = (field: string) => status !== undefined && !status.includes('metadata') && !status.includes(field)
  const right = kept.labels === keeps('metadata.labels') && kept.annotations === keeps('metadata.annotations')
  if (!right) throw new Error(`resets is wrong about the status of ${of.resource}: ${JSON.stringify(kept)}`)
}

function expectOneOf(of: Resource, what: string, seen: { status: number; object: Json }, codes: number[]): void {
  if (codes.includes(seen.status)) return
  throw new Error(`${what} of ${of.resource} gave ${seen.status}: ${String(seen.object.message)}`)
}

/** Timestamps differ from run to run and are no facts. */
function withoutTimes(status: unknown): unknown {
  if (typeof status !== 'object' || status === null) return status
  return Object.fromEntries(Object.entries(status).filter(([key]) => !key.endsWith('Time')))
}
