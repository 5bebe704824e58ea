/**
 * A few facts out of a message that passes through as it is, without reading all of it: whose object it is and which
 * version it has, what a Status says, and what was asked of and granted by a TokenRequest.
 */
import { noTokenRequest, type TokenRequestFacts } from '../tokenrequest.ts'
import { eachField, type WireField } from './wirefield.ts'

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

/** The objects of any built-in list: its second field, each a view. */
export function readListItems(raw: Buffer): Buffer[] {
  const items: Buffer[] = []
  eachField(raw, (field) => {
    if (field.number === 2) items.push(field.bytes())
  })
  return items
}

/** Whether an object has a time of deletion. */
export function isEnding(raw: Buffer): boolean {
  let found = false
  eachInside(raw, 1, (field) => {
    if (field.number === 9) found = true
  })
  return found
}

/** Whether a deletion's options, its own message or the second field of an eviction, want nothing to be done. */
export function wantsDryRun(raw: Buffer, { isEviction }: { isEviction: boolean }): boolean {
  let found = false
  const look = (field: WireField) => {
    if (field.number === 5) found = true
  }
  if (isEviction) eachInside(raw, 2, look)
  else eachField(raw, look)
  return found
}

/** Of a SubjectAccessReview: the user and groups of its spec. */
export function readReviewedSubject(raw: Buffer): { name: string; groups: string[] } {
  const subject = { name: '', groups: [] as string[] }
  eachInside(raw, 2, (field) => {
    if (field.number === 3) subject.name = field.text()
    else if (field.number === 4) subject.groups.push(field.text())
  })
  return subject
}

export type StatusFacts = {
  readonly status: string
  readonly reason: string
  readonly code: number
  /** Which object it concerns, where its details tell: its resource, in kube-apiserver's refusals, and its name. */
  readonly kind: string
  readonly name: string
  readonly uid: string
}

export function readStatus(raw: Buffer): StatusFacts {
  const facts: Growing<StatusFacts> = { status: '', reason: '', code: 0, kind: '', name: '', uid: '' }
  eachField(raw, (field) => {
    if (field.number === 2) facts.status = field.text()
    else if (field.number === 4) facts.reason = field.text()
    else if (field.number === 6) facts.code = field.integer()
  })
  eachInside(raw, 5, (field) => {
    if (field.number === 1) facts.name = field.text()
    else if (field.number === 3) facts.kind = field.text()
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
function eachInside(raw: Buffer, outer: number, visit: (field: WireField) => void): void {
  eachField(raw, (field) => {
    if (field.number === outer) eachField(field.bytes(), visit)
  })
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
