/**
 * The forms of objects that belong to no resource: Table (what kubectl prints) and PartialObjectMetadata (names, labels,
 * owners). Both are spliced around the bytes of each object's metadata, which are never printed anew.
 */

import { fromPlain, printJson } from '../json/json.ts'
import type { CustomColumn } from './printers/printers.ts'
import type { TableRow, View } from './printers/read.ts'
import type { TableResource } from './tableresource.ts'

type PrinterRoom = typeof import('./printers/printers.ts')

let printers: PrinterRoom | undefined

/** Before a table is made: an edge without people who look at it has no need of printers, and a third of a megabyte less to hold. */
export async function loadPrinters(): Promise<void> {
  printers ??= await import('./printers/printers.ts')
}

function loaded(): PrinterRoom {
  if (printers === undefined) throw new Error('a table was made before its printers were loaded')
  return printers
}

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
  readonly custom?: readonly CustomColumn[]
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

/** What stands around the rows of a table. */
export function tableAround(parts: Omit<TableParts, 'objects'>): { head: string; end: string } {
  const definitions = parts.columns ? loaded().columnsOf(parts.resource, parts.custom) : null
  const head =
    `${opened('Table', parts.metaVersion)},"metadata":${printListMeta(parts.listMeta)},` +
    `"columnDefinitions":${printJson(fromPlain(definitions))},"rows":[`
  return { head, end: ']}' }
}

export function renderRow(object: TableObject, parts: Omit<TableParts, 'objects'>): Buffer[] {
  const view = JSON.parse(object.bytes.toString('utf8')) as View
  const row = loaded().rowOf(parts.resource, view, parts.nowMs, parts.custom)
  return [Buffer.from(`${printRow(row)},"object":`), ...rowObject(object, parts), ROW_END]
}

/** A whole table: for one object, or few. */
export function renderTable(parts: TableParts): Buffer {
  const { head, end } = tableAround(parts)
  const rows = parts.objects.flatMap((object, index) => [index === 0 ? NOTHING : COMMA, ...renderRow(object, parts)])
  return Buffer.concat([Buffer.from(head), ...rows, Buffer.from(end)])
}

/** In pieces: the metadata are not copied. */
export function partialPieces(metadata: Buffer, metaVersion: MetaVersion): Buffer[] {
  return [PARTIAL_HEADS[metaVersion], metadata, ROW_END]
}

export function renderPartial(metadata: Buffer, metaVersion: MetaVersion): Buffer {
  return Buffer.concat(partialPieces(metadata, metaVersion))
}

/** What stands around the items of a list of metadata. */
export function partialListAround(listMeta: ListMeta, metaVersion: MetaVersion): { head: string; end: string } {
  const head = `${opened('PartialObjectMetadataList', metaVersion)},"metadata":${printListMeta(listMeta)},"items":[`
  return { head, end: ']}' }
}

const COMMA = Buffer.from(',')
const ROW_END = Buffer.from('}')
const NOTHING = Buffer.alloc(0)
const NULL = Buffer.from('null')

/** An opened object: the caller adds members and the brace. */
function opened(kind: string, version: MetaVersion): string {
  return `{"kind":"${kind}","apiVersion":"meta.k8s.io/${version}"`
}

const partialHead = (version: MetaVersion) => Buffer.from(`${opened('PartialObjectMetadata', version)},"metadata":`)
const PARTIAL_HEADS: Record<MetaVersion, Buffer> = { v1: partialHead('v1'), v1beta1: partialHead('v1beta1') }

function printListMeta(meta: ListMeta): string {
  const members: string[] = []
  if (meta.resourceVersion !== '') members.push(`"resourceVersion":${printJson(meta.resourceVersion)}`)
  if (meta.continue !== undefined && meta.continue !== '') members.push(`"continue":${printJson(meta.continue)}`)
  if (meta.remainingItemCount !== undefined) members.push(`"remainingItemCount":${meta.remainingItemCount}`)
  return `{${members.join(',')}}`
}

/** An opened row: the caller adds `object`. */
function printRow(row: TableRow): string {
  const cells = `{"cells":[${row.cells.map(printJson).join(',')}]`
  return row.conditions === undefined ? cells : `${cells},"conditions":${printJson(fromPlain(row.conditions))}`
}

function rowObject(object: TableObject, parts: Omit<TableParts, 'objects'>): Buffer[] {
  switch (parts.includeObject) {
    case 'None':
      return [NULL]
    case 'Metadata':
      return partialPieces(object.metadata, parts.metaVersion)
    case 'Object':
      return [object.bytes]
  }
}
