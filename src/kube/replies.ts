/**
 * What an API server's answer to a write says about the object it concerns, in whatever form the caller asked for it: a
 * client that wrote version n must not be shown an older one afterwards, so n has to be read from an answer passed through.
 */

import { eachMember, isKey, ScanFault, skipValue, stringAt } from './json/scan.ts'
import { closeBracket, comma, isJson, openBrace, openBracket, quote, skipSpace } from './json/wellformed.ts'
import { scanObject, uidAt } from './object.ts'
import { isEnding, readListItems, readObjectMeta, readStatus } from './protobuf/peek.ts'
import { isProtobuf, ProtobufFault, readEnvelope } from './protobuf/protobuf.ts'

export type Reply = {
  /** As the answer spells it: that of the form, where it is a Table, PartialObjectMetadata or Status. */
  readonly kind: string
  readonly name: string
  /** '' where there is none, and in a Status, which names none. */
  readonly namespace: string
  readonly uid: string
  /** undefined where the object is gone. */
  readonly version: number | undefined
}

/** What the API server itself refused, as it says so; undefined for what a proxy in between has answered. */
export type RefusedObject = { readonly kind: string; readonly name: string }

export function readRefusal(contentType: string | undefined, bytes: Buffer): RefusedObject | undefined {
  try {
    if (isProtobuf(contentType)) {
      const { kind, raw } = readEnvelope(bytes)
      return kind === 'Status' ? readStatus(raw) : undefined
    }
    if (!isPlainJson(contentType) || !isJson(bytes) || textAt(bytes, 0, kindKey) !== 'Status') return undefined
    const details = valueAt(bytes, 0, detailsKey)
    const text = (key: Buffer) => (details < 0 || bytes[details] !== openBrace ? '' : textAt(bytes, details, key))
    return { kind: text(kindKey), name: text(nameKey) }
  } catch (error) {
    if (error instanceof ProtobufFault || error instanceof ScanFault) return undefined
    throw error
  }
}

/** undefined when the answer does not tell: failures, lists, logs, forms that are not read here. */
export function replyVersion(contentType: string | undefined, bytes: Buffer): Reply | undefined {
  try {
    if (isProtobuf(contentType)) return readProtobuf(bytes)
    return isPlainJson(contentType) && isJson(bytes) ? readJson(bytes) : undefined
  } catch (error) {
    if (error instanceof ProtobufFault || error instanceof ScanFault) return undefined
    throw error
  }
}

/** An object that a collection's deletion names, as it was before. */
export type Deleted = Reply & {
  readonly version: number
  /** It was being deleted already: what came of it this time cannot be told. */
  readonly ending: boolean
}

/** What the answer to the deletion of a collection names; undefined when it does not tell. */
export function deletedItems(contentType: string | undefined, bytes: Buffer): Deleted[] | undefined {
  try {
    const found = isProtobuf(contentType)
      ? protobufItems(bytes)
      : isPlainJson(contentType) && isJson(bytes)
        ? jsonItems(bytes)
        : undefined
    return found?.every((one) => one?.version !== undefined) ? (found as Deleted[]) : undefined
  } catch (error) {
    if (error instanceof ProtobufFault || error instanceof ScanFault) return undefined
    throw error
  }
}

type ReplyItem = (Reply & { ending: boolean }) | undefined

function jsonItems(bytes: Buffer): ReplyItem[] | undefined {
  const items = valueAt(bytes, 0, itemsKey)
  if (items < 0 || bytes[items] !== openBracket) return undefined
  const found: ReplyItem[] = []
  for (let at = skipSpace(bytes, items + 1); bytes[at] === openBrace; ) {
    const end = skipValue(bytes, at)
    const metadata = valueAt(bytes, at, metadataKey)
    const ending = metadata >= 0 && textAt(bytes, metadata, deletionKey) !== ''
    const reply = fromMetadata('', metadataIn(bytes.subarray(at, end)))
    found.push(reply && { ...reply, ending })
    at = skipSpace(bytes, end)
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1)
  }
  return found
}

function protobufItems(bytes: Buffer): ReplyItem[] | undefined {
  const { kind, raw } = readEnvelope(bytes)
  if (!kind.endsWith('List')) return undefined
  return readListItems(raw).map((item) => {
    const reply = fromMetadata('', readObjectMeta(item))
    return reply && { ...reply, ending: isEnding(item) }
  })
}

function readProtobuf(bytes: Buffer): Reply | undefined {
  const { kind, raw } = readEnvelope(bytes)
  if (kind === 'Status') return fromStatus(readStatus(raw))
  return kind.endsWith('List') ? undefined : fromMetadata(kind, readObjectMeta(raw))
}

function readJson(bytes: Buffer): Reply | undefined {
  const kind = textAt(bytes, 0, kindKey)
  if (kind === 'Status') {
    const details = valueAt(bytes, 0, detailsKey)
    if (details < 0) return undefined
    return fromStatus({
      status: textAt(bytes, 0, statusKey),
      name: textAt(bytes, details, nameKey),
      uid: textAt(bytes, details, uidKey),
    })
  }
  if (kind !== 'Table')
    return kind === '' || valueAt(bytes, 0, itemsKey) >= 0 ? undefined : fromMetadata(kind, metadataIn(bytes))
  const row = onlyElement(bytes, valueAt(bytes, 0, rowsKey))
  const object = row < 0 ? -1 : valueAt(bytes, row, objectKey)
  if (object < 0 || bytes[object] !== openBrace) return undefined
  return fromMetadata(kind, metadataIn(bytes.subarray(object, skipValue(bytes, object))))
}

function fromStatus(status: {
  readonly status: string
  readonly name: string
  readonly uid: string
}): Reply | undefined {
  const { name, uid } = status
  if (status.status !== 'Success' || name === '' || uid === '') return undefined
  return { kind: 'Status', name, namespace: '', uid, version: undefined }
}

type Metadata = {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
}

function metadataIn(bytes: Buffer): Metadata {
  const { name, namespace, uidStart, resourceVersion } = scanObject(bytes)
  return { name, namespace, uid: uidAt(bytes, uidStart), resourceVersion }
}

function fromMetadata(kind: string, { name, namespace, uid, resourceVersion }: Metadata): Reply | undefined {
  if (name === '') return undefined
  const version = /^[1-9][0-9]*$/.test(resourceVersion) ? Number(resourceVersion) : Number.NaN
  return { kind, name, namespace, uid, version: Number.isSafeInteger(version) ? version : undefined }
}

function isPlainJson(contentType: string | undefined): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

const kindKey = Buffer.from('kind')
const statusKey = Buffer.from('status')
const detailsKey = Buffer.from('details')
const nameKey = Buffer.from('name')
const uidKey = Buffer.from('uid')
const itemsKey = Buffer.from('items')
const metadataKey = Buffer.from('metadata')
const deletionKey = Buffer.from('deletionTimestamp')
const rowsKey = Buffer.from('rows')
const objectKey = Buffer.from('object')

/** Where the value of a member begins; -1 if the object at `start` has none of that name. */
function valueAt(bytes: Buffer, start: number, key: Buffer): number {
  let found = -1
  eachMember(bytes, skipSpace(bytes, start), (from, to, at) => {
    if (isKey(bytes, from, to, key)) found = at
    return skipValue(bytes, at)
  })
  return found
}

/** '' where it is absent or no string. */
function textAt(bytes: Buffer, start: number, key: Buffer): string {
  const at = valueAt(bytes, start, key)
  return at >= 0 && bytes[at] === quote ? stringAt(bytes, at, skipValue(bytes, at)) : ''
}

/** Where the only element of an array begins; -1 where there is another number of them. */
function onlyElement(bytes: Buffer, start: number): number {
  if (start < 0 || bytes[start] !== openBracket) return -1
  const at = skipSpace(bytes, start + 1)
  if (bytes[at] !== openBrace) return -1
  const next = skipSpace(bytes, skipValue(bytes, at))
  return bytes[next] === closeBracket ? at : -1
}
