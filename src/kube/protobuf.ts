/**
 * What has to be known of Kubernetes' protobuf without its schemas: whose object an answer is and which version it has,
 * what a Status says, and what was asked of and granted by a TokenRequest. The rest travels unread.
 */
import { eachField, ProtobufFault } from './protobufwire.ts'
import { noTokenRequest, type TokenRequestFacts } from './tokenrequest.ts'

export { ProtobufFault } from './protobufwire.ts'

const mediaType = 'application/vnd.kubernetes.protobuf'

/** Stands before every message. */
const magic = Buffer.from('k8s\0')

export function isProtobuf(contentType: string | undefined): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === mediaType
}

export type Envelope = {
  readonly apiVersion: string
  readonly kind: string
  /** The object itself, a view. */
  readonly raw: Buffer
}

export function readEnvelope(bytes: Buffer): Envelope {
  if (!bytes.subarray(0, magic.length).equals(magic)) throw new ProtobufFault('no Kubernetes message')
  const envelope: Growing<Envelope> = { apiVersion: '', kind: '', raw: bytes.subarray(0, 0) }
  eachField(bytes.subarray(magic.length), (field) => {
    if (field.number === 1) readType(field.bytes(), envelope)
    else if (field.number === 2) envelope.raw = field.bytes()
    else if (field.number === 3 && field.text() !== '') throw new ProtobufFault('an encoding inside the envelope')
    else if (field.number === 4 && !isPlain(field.text())) throw new ProtobufFault('another form inside the envelope')
  })
  if (envelope.kind === '') throw new ProtobufFault('an envelope that does not say what is in it')
  return envelope
}

export type Identified = {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  /** As spelled; '' when absent. */
  readonly resourceVersion: string
}

/** Of any built-in object that is no list: metadata is their first field. */
export function readObjectMeta(raw: Buffer): Identified {
  const meta: Growing<Identified> = { name: '', namespace: '', uid: '', resourceVersion: '' }
  eachInside(raw, 1, (field) => {
    if (field.number === 1) meta.name = field.text()
    else if (field.number === 3) meta.namespace = field.text()
    else if (field.number === 5) meta.uid = field.text()
    else if (field.number === 6) meta.resourceVersion = field.text()
  })
  return meta
}

export type StatusFacts = {
  readonly status: string
  readonly reason: string
  readonly code: number
  /** Which object it concerns, where its details tell. */
  readonly name: string
  readonly uid: string
}

export function readStatus(raw: Buffer): StatusFacts {
  const facts: Growing<StatusFacts> = { status: '', reason: '', code: 0, name: '', uid: '' }
  eachField(raw, (field) => {
    if (field.number === 2) facts.status = field.text()
    else if (field.number === 4) facts.reason = field.text()
    else if (field.number === 6) facts.code = field.integer()
  })
  eachInside(raw, 5, (field) => {
    if (field.number === 1) facts.name = field.text()
    else if (field.number === 6) facts.uid = field.text()
  })
  return facts
}

export function readTokenRequest(raw: Buffer): TokenRequestFacts {
  const facts: Growing<TokenRequestFacts> = { ...noTokenRequest, uid: readObjectMeta(raw).uid }
  const audiences: string[] = []
  eachInside(raw, 1, (field) => {
    if (field.number === 8) facts.createdSeconds = readSeconds(field.bytes())
  })
  eachInside(raw, 2, (field) => {
    if (field.number === 1) audiences.push(field.text())
    else if (field.number === 3) facts.boundTo = readBound(field.bytes())
    else if (field.number === 4) facts.expirationSeconds = field.integer()
  })
  eachInside(raw, 3, (field) => {
    if (field.number === 1) facts.token = field.text()
    else if (field.number === 2) facts.expiresSeconds = readSeconds(field.bytes())
  })
  return { ...facts, audiences }
}

type Growing<T> = { -readonly [K in keyof T]: T[K] }

/** The fields of the message that is one field of another; given twice, they are one message, as in Go. */
function eachInside(raw: Buffer, outer: number, visit: Parameters<typeof eachField>[1]): void {
  eachField(raw, (field) => {
    if (field.number === outer) eachField(field.bytes(), visit)
  })
}

function readType(bytes: Buffer, envelope: Growing<Envelope>): void {
  eachField(bytes, (field) => {
    if (field.number === 1) envelope.apiVersion = field.text()
    else if (field.number === 2) envelope.kind = field.text()
  })
}

function isPlain(contentType: string): boolean {
  return contentType === '' || isProtobuf(contentType)
}

function readBound(bytes: Buffer): TokenRequestFacts['boundTo'] {
  const bound = { kind: '', apiVersion: '', name: '', uid: '' }
  eachField(bytes, (field) => {
    if (field.number === 1) bound.kind = field.text()
    else if (field.number === 2) bound.apiVersion = field.text()
    else if (field.number === 3) bound.name = field.text()
    else if (field.number === 4) bound.uid = field.text()
  })
  return bound
}

/** A time that is not set has no seconds, or none since 1970. */
function readSeconds(bytes: Buffer): number | undefined {
  let seconds = 0
  eachField(bytes, (field) => {
    if (field.number === 1) seconds = field.integer()
  })
  return seconds === 0 ? undefined : seconds
}
