/**
 * Objects in both forms, as a real kube-apiserver sends them: its protobuf read by us is its JSON, its JSON written by us is
 * its protobuf, byte for byte, for every kind it stores and every field of it. Objects with every field would never pass its
 * validation: they are put into etcd behind its back.
 */
import {
  decodeMessage,
  encodeMessage,
  type Message,
  messageOf,
  readEnvelope,
  wrap,
} from '../../src/kube/protobuf/protobuf.ts'
import { ask, type Oracle } from '../oracle.ts'
import { type Answer, protobufType, Wire } from './ask.ts'
import { Coverage } from './cover.ts'
import { type Made, Maker, type Manner } from './objects.ts'
import { type Place, placesOf } from './places.ts'

export type Found = { count: number; readonly faults: string[]; readonly notes: string[] }

const namespace = 'golden'
const shownBytes = 60
/** Those that the real one takes for its own rules are planted last: it goes by them from then on. */
const dangerous = new Set([
  'prioritylevelconfigurations',
  'flowschemas',
  'apiservices',
  'customresourcedefinitions',
  'mutatingwebhookconfigurations',
  'validatingwebhookconfigurations',
  'mutatingadmissionpolicies',
  'validatingadmissionpolicies',
])

const manners: readonly [manner: Manner, seeds: number][] = [
  ['full', 2],
  ['some', 2],
  ['odd', 3],
]

/** Every kind that is stored: single, in lists, and by metadata alone. `more` times as many of each. */
export async function proveObjects(oracle: Oracle, found: Found, more: number): Promise<void> {
  const wire = new Wire(oracle)
  const coverage = new Coverage()
  await ask(oracle, '/api/v1/namespaces', { method: 'POST', body: { metadata: { name: namespace } } })
  const places = (await placesOf(oracle)).toSorted(
    (a, b) => Number(dangerous.has(a.resource)) - Number(dangerous.has(b.resource)),
  )
  const kinds = new Set<string>()
  try {
    for (const place of places) {
      const proved = await provePlace({ oracle, wire, place, coverage, found, more })
      if (proved) kinds.add(place.kind)
    }
  } finally {
    wire.close()
  }
  const { fields, messages, unseen } = coverage.report(places.map(({ message }) => message))
  found.notes.push(
    `${kinds.size} kinds in ${places.length} versions: ${fields - unseen.length} of ${fields} fields of ${messages} messages`,
    ...(unseen.length === 0 ? [] : [`fields not seen: ${unseen.join(' ')}`]),
  )
}

type Proof = {
  readonly oracle: Oracle
  readonly wire: Wire
  readonly place: Place
  readonly coverage: Coverage
  readonly found: Found
  readonly more: number
}

async function provePlace({ oracle, wire, place, coverage, found, more }: Proof): Promise<boolean> {
  const { apiVersion, kind, message, listMessage } = place
  const path = place.path(namespace)
  const names: string[] = []
  for (const [manner, seeds] of manners) {
    for (let seed = 1; seed <= seeds * more; seed++) {
      const name = `${manner}-${seed}.example.com`
      const metadata = { name, ...(place.namespaced ? { namespace } : {}) }
      const object = readable(kind, new Maker(seed, manner).object(message, place, metadata))
      await oracle.plant(place.key(namespace, name), Buffer.from(JSON.stringify(object)))
      names.push(name)
    }
  }
  let read = 0
  for (const name of names) {
    const pair = await both(wire, `${path}/${name}`)
    if (pair.json.status !== 200 || pair.protobuf.status !== 200) {
      found.notes.push(`${apiVersion} ${kind} ${name} cannot be read: ${pair.json.bytes.toString().slice(0, 300)}`)
      continue
    }
    read++
    coverage.see(message, JSON.parse(pair.json.bytes.toString()))
    found.count++
    compare(found, `${apiVersion} ${kind} ${name}`, { message, type: place }, pair)
    await partial(wire, `${path}/${name}`, found, 'PartialObjectMetadata')
  }
  const list = await both(wire, path)
  if (list.json.status === 200 && list.protobuf.status === 200) {
    found.count++
    compare(
      found,
      `${apiVersion} ${kind}List`,
      { message: listMessage, type: { apiVersion, kind: `${kind}List` } },
      list,
    )
    await partial(wire, path, found, 'PartialObjectMetadataList')
  } else found.notes.push(`${apiVersion} ${kind} cannot be listed: ${list.json.bytes.toString().slice(0, 300)}`)
  return read > 0
}

/** The real one ends itself over a definition without names. */
function readable(kind: string, object: Made): Made {
  if (kind !== 'CustomResourceDefinition') return object
  const spec = (object.spec ?? {}) as Made
  const names = { kind: 'Thing', plural: 'things', singular: 'thing', listKind: 'ThingList' }
  const given = Object.entries((spec.names ?? {}) as Made).filter(([, value]) => value !== '')
  return { ...object, spec: { ...spec, names: { ...names, ...Object.fromEntries(given) } } }
}

async function partial(wire: Wire, path: string, found: Found, kind: string): Promise<void> {
  const type = { apiVersion: 'meta.k8s.io/v1', kind }
  const pair = await both(wire, path, `;as=${kind};g=meta.k8s.io;v=v1`)
  found.count++
  compare(found, `${kind} of ${path}`, { message: messageOf(type.apiVersion, kind) as Message, type }, pair)
}

type Pair = { readonly json: Answer; readonly protobuf: Answer }

async function both(wire: Wire, path: string, parameters = ''): Promise<Pair> {
  // One after the other, until both are of the same state.
  for (;;) {
    const json = await wire.get(path, `application/json${parameters}`)
    const protobuf = await wire.get(path, `${protobufType}${parameters}`)
    const again = await wire.get(path, `application/json${parameters}`)
    if (json.bytes.equals(again.bytes)) return { json, protobuf }
  }
}

type Typed = { readonly message: Message; readonly type: { readonly apiVersion: string; readonly kind: string } }

function compare(found: Found, what: string, { message, type }: Typed, pair: Pair): void {
  try {
    const { raw, ...named } = readEnvelope(pair.protobuf.bytes)
    if (named.apiVersion !== type.apiVersion || named.kind !== type.kind) {
      found.faults.push(`${what}: the envelope says ${named.apiVersion} ${named.kind}`)
    }
    const json = Buffer.concat([decodeMessage(message, raw, type), Buffer.from('\n')])
    differ(found, `${what} read`, withoutTypes(pair.json.bytes), json)
    differ(found, `${what} written`, pair.protobuf.bytes, wrap(type, encodeMessage(message, pair.json.bytes)))
  } catch (error) {
    found.faults.push(`${what}: ${(error as Error).stack}`)
  }
}

/** Of objects inside of others: in JSON alone they name their kinds, metadata in a list and the claims of a StatefulSet. */
function withoutTypes(json: Buffer): Buffer {
  const bare = json.toString('latin1').replaceAll(/(?<=[[,]\{)"kind":"\w+","apiVersion":"[\w./]+",(?="metadata")/g, '')
  return Buffer.from(bare, 'latin1')
}

export function differ(found: Found, what: string, real: Buffer, ours: Buffer): void {
  if (real.equals(ours)) return
  let at = 0
  while (real[at] === ours[at]) at++
  const from = Math.max(0, at - shownBytes)
  const part = (bytes: Buffer) => JSON.stringify(bytes.toString('latin1', from, at + shownBytes))
  found.faults.push(`${what}, at ${at} of ${real.length}:\n  real ${part(real)}\n  ours ${part(ours)}`)
}
