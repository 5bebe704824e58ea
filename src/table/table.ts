/**
 * The forms of objects that belong to no resource: Table (what kubectl prints) and PartialObjectMetadata (names, labels,
 * owners). Both are spliced around the bytes of each object's metadata, which are never printed anew.
 */

import { fromPlain, printJson } from '../json/json.ts'
import { columnsOf, type PrinterColumn, rowOf, type TableResource } from './printers.ts'
import type { Row, View } from './printers-read.ts'

/** v1 and v1beta1 differ in nothing but the name. */
export type MetaVersion = 'v1' | 'v1beta1'

export type IncludeObject = 'None' | 'Metadata' | 'Object'

export type ListMeta = {
  readonly resourceVersion: string
  readonly continue?: string
  readonly remainingItemCount?: number
}

export type TableObject = {
  /** The whole object as a GET answers it, with kind and apiVersion. */
  readonly bytes: Buffer
  /** The value of its `metadata`, a slice of those bytes. */
  readonly metadata: Buffer
}

export type TableParts = {
  readonly resource: TableResource
  /** The CRD's columns for this version; ignored for built-ins. */
  readonly custom?: readonly PrinterColumn[]
  readonly objects: readonly TableObject[]
  /** The bookmark that ends a watch's initial events carries its metadata even if `None` was asked: pass `Metadata`. */
  readonly includeObject: IncludeObject
  /** Of a table of one object (GET, a watch frame) the version is the object's own. */
  readonly listMeta: ListMeta
  readonly nowMs: number
  /** False for every frame of a watch but the first. */
  readonly columns: boolean
  readonly metaVersion: MetaVersion
}

export function renderTable(parts: TableParts): Buffer {
  const { resource, custom, nowMs } = parts
  const definitions = parts.columns ? columnsOf(resource, custom) : null
  const pieces: Buffer[] = [
    Buffer.from(
      `${head('Table', parts.metaVersion)},"metadata":${printListMeta(parts.listMeta)},` +
        `"columnDefinitions":${printJson(fromPlain(definitions))},"rows":[`,
    ),
  ]
  for (const object of parts.objects) {
    const row = rowOf(resource, JSON.parse(object.bytes.toString('utf8')) as View, nowMs, custom)
    pieces.push(Buffer.from(`${pieces.length === 1 ? '' : ','}${printRow(row)},"object":`))
    pieces.push(rowObject(object, parts), ROW_END)
  }
  pieces.push(TABLE_END)
  return Buffer.concat(pieces)
}

export function renderPartial(metadata: Buffer, metaVersion: MetaVersion): Buffer {
  return Buffer.concat([Buffer.from(`${head('PartialObjectMetadata', metaVersion)},"metadata":`), metadata, ROW_END])
}

export function renderPartialList(items: readonly Buffer[], listMeta: ListMeta, metaVersion: MetaVersion): Buffer {
  const list = `${head('PartialObjectMetadataList', metaVersion)},"metadata":${printListMeta(listMeta)},"items":[`
  const before = Buffer.from(`${head('PartialObjectMetadata', metaVersion)},"metadata":`)
  const pieces: Buffer[] = [Buffer.from(list)]
  for (const metadata of items) {
    if (pieces.length > 1) pieces.push(COMMA)
    pieces.push(before, metadata, ROW_END)
  }
  pieces.push(TABLE_END)
  return Buffer.concat(pieces)
}

const COMMA = Buffer.from(',')
const ROW_END = Buffer.from('}')
const TABLE_END = Buffer.from(']}')
const NULL = Buffer.from('null')

/** An opened object: the caller adds members and the brace. */
function head(kind: string, version: MetaVersion): string {
  return `{"kind":"${kind}","apiVersion":"meta.k8s.io/${version}"`
}

function printListMeta(meta: ListMeta): string {
  const members: string[] = []
  if (meta.resourceVersion !== '') members.push(`"resourceVersion":${printJson(meta.resourceVersion)}`)
  if (meta.continue !== undefined && meta.continue !== '') members.push(`"continue":${printJson(meta.continue)}`)
  if (meta.remainingItemCount !== undefined) members.push(`"remainingItemCount":${meta.remainingItemCount}`)
  return `{${members.join(',')}}`
}

/** An opened row: the caller adds `object`. */
function printRow(row: Row): string {
  const cells = `{"cells":[${row.cells.map(printJson).join(',')}]`
  return row.conditions === undefined ? cells : `${cells},"conditions":${printJson(fromPlain(row.conditions))}`
}

function rowObject(object: TableObject, parts: TableParts): Buffer {
  switch (parts.includeObject) {
    case 'None':
      return NULL
    case 'Metadata':
      return renderPartial(object.metadata, parts.metaVersion)
    case 'Object':
      return object.bytes
  }
}
