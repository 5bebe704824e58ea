/** Objects in the forms that belong to no resource: Table and PartialObjectMetadata, singly, in lists and in watches. */
import type { Form } from '../../cache/event.ts'
import { type Item, makeItem } from '../../cache/item.ts'
import { type JsonObject, printJson, text } from '../../kube/json/json.ts'
import type { MediaChoice } from '../../kube/negotiate.ts'
import { noFields } from '../../kube/object.ts'
import type { ListHead } from '../../kube/protobuf/enveloping.ts'
import type { Query } from '../../kube/request.ts'
import {
  loadPrinters,
  partialListAround,
  partialPieces,
  renderPartial,
  renderRow,
  renderTable,
  tableAround,
} from '../../kube/table/table.ts'
import type { TableResource } from '../../kube/table/tableresource.ts'
import type { Request, Response, Served } from '../endpoint.ts'
import { bookmarkMetadata } from '../forms/bookmark.ts'
import { inJson, type LazyBody, type SpelledList } from '../forms/listing.ts'
import { inProtobuf } from '../forms/protobuf/document.ts'
import { metadataInProtobuf, type ProtobufSpelling } from '../forms/protobuf/spelling.ts'
import type { PageMeta } from '../forms/spelling.ts'
import { holderOf } from '../shares.ts'
import { sizeOf, spelled, spelledLater, spelledList, spellingOf } from './spelled.ts'
import {
  type As,
  frame,
  includeOf,
  metadataOf,
  tableForm,
  tableMeta,
  tableObject,
  tableOfOne,
  tableParts,
} from './tables.ts'

const nothing = Buffer.alloc(0)
const newline = Buffer.from('\n')

/** Before anything is made in this form: what it takes is there. Undefined where it is already. */
export function readyFor({ as }: MediaChoice): Promise<void> | undefined {
  return as?.kind === 'Table' ? loadPrinters() : undefined
}

export function objectAs(
  media: MediaChoice,
  served: Served,
  item: Item,
  query: Query,
  nowMs: number,
): Buffer | readonly Buffer[] {
  const { as } = media
  if (media.codec.name === 'protobuf') return inProtobufAs(as, served).pieces(item)
  if (as === undefined) return served.spelling.object(item)
  if (as.kind === 'Table') {
    const listMeta = { resourceVersion: String(item.version) }
    return [tableOfOne(item, { served, listMeta, include: includeOf(query), nowMs, columns: true, as }), newline]
  }
  return [renderPartial(metadataOf(served, item), as.version), newline]
}

type ListParts = { readonly meta: PageMeta; readonly media: MediaChoice; readonly query: Query; readonly nowMs: number }

/** A list in the form that is asked for. What has to be made for it is made while it is sent. */
export async function listResponse(
  status: number,
  served: Served,
  items: readonly Item[],
  list: ListParts & { readonly request: Request },
): Promise<Response> {
  const { as, codec } = list.media
  const loading = readyFor(list.media)
  if (loading !== undefined) await loading
  if (codec.name === 'protobuf') {
    const printed = await inProtobufAs(as, served).list(items, listHead(list.meta), {
      who: holderOf(list.request).name,
    })
    return 'bytes' in printed ? spelledLater(status, printed, list) : spelled(status, printed, list)
  }
  if (spellingOf(list) === 'plain' && isThere(as, served)) {
    if (as === undefined) return spelled(status, served.spelling.list(items, list.meta), list)
    return spelledLater(status, metadataList(as, served, items, list), list)
  }
  return spelledList(status, listingOf(served, items, list), { ...list, bytes: bytesOf(items) })
}

/** Whether the JSON of each object exists already: stored as it is, or its metadata a part of it. */
function isThere(as: As | undefined, { spelling, resource }: Served): boolean {
  if (as === undefined) return !spelling.converts
  return as.kind !== 'Table' && !resource.custom
}

/** Cut out of each object while the list is sent; its size is known before. */
function metadataList(as: As, served: Served, items: readonly Item[], list: ListParts): LazyBody {
  const listing = listingOf(served, items, list)
  const around = Buffer.byteLength(listing.head) + Buffer.byteLength(listing.end)
  const aroundEach = sizeOf(partialPieces(nothing, as.version))
  let bytes = around + items.length * aroundEach + Math.max(0, items.length - 1)
  for (const { metadataStart, metadataEnd } of items) bytes += metadataEnd - metadataStart
  return { bytes, pieces: inJson(listing) }
}

function listingOf(served: Served, items: readonly Item[], { media, meta, query, nowMs }: ListParts): SpelledList {
  const { as } = media
  const nameOf = (index: number) => (items[index] as Item).key
  if (as === undefined) {
    const elements = each(items, (item) => served.spelling.element(item))
    return { ...served.spelling.around(meta), member: 'items', elements, nameOf }
  }
  if (as.kind === 'Table') {
    const parts = tableParts({ served, listMeta: tableMeta(meta), include: includeOf(query), nowMs, columns: true, as })
    const { head, end } = tableAround(parts)
    const elements = each(items, (item) => renderRow(tableObject(served, item), parts))
    return { head, end: `${end}\n`, member: 'rows', elements, nameOf }
  }
  const { head, end } = partialListAround(tableMeta(meta), as.version)
  const elements = each(items, (item) => partialPieces(metadataOf(served, item), as.version))
  return { head, end: `${end}\n`, member: 'items', elements, nameOf }
}

function* each(items: readonly Item[], make: (item: Item) => readonly Buffer[]): Iterable<readonly Buffer[]> {
  for (const item of items) yield make(item)
}

function bytesOf(items: readonly Item[]): number {
  let bytes = 0
  for (const item of items) bytes += item.bytes.length
  return bytes
}

/** An object that is computed and not stored, of the kind that `resource` tells. */
export function computedAs(
  media: MediaChoice,
  resource: TableResource,
  tree: JsonObject,
  { query, nowMs }: { query: Query; nowMs: number },
): readonly Buffer[] {
  const { as } = media
  const bytes = Buffer.from(printJson(tree))
  if (media.codec.name === 'protobuf') {
    const type = { apiVersion: text(tree, 'apiVersion'), kind: text(tree, 'kind') }
    if (as === undefined) return [inProtobuf(type, bytes)]
    return metadataInProtobuf(as.version).pieces(makeItem(bytes, 0, noFields))
  }
  if (as === undefined) return [bytes, newline]
  const metadata = Buffer.from(printJson(tree.get('metadata') ?? new Map()))
  if (as.kind !== 'Table') return [renderPartial(metadata, as.version), newline]
  const rendered = renderTable({
    resource,
    objects: [{ bytes, metadata }],
    includeObject: includeOf(query),
    listMeta: { resourceVersion: text(tree, 'metadata', 'resourceVersion') },
    nowMs,
    columns: true,
    metaVersion: as.version,
  })
  return [rendered, newline]
}

/** How a watch's frames are spelled for this choice. */
export function formOf(media: MediaChoice, served: Served, query: Query, now: () => number): Form {
  const { as } = media
  if (media.codec.name === 'protobuf') return inProtobufAs(as, served)
  if (as === undefined) return served.spelling
  if (as.kind === 'Table') return tableForm(served, as, includeOf(query), now)
  const kind = JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${as.version}` }).slice(0, -1)
  return {
    isLaborious: served.resource.custom,
    frame: (type, item) => frame(type, renderPartial(metadataOf(served, item), as.version)),
    bookmark: (version, end) =>
      Buffer.from(`{"type":"BOOKMARK","object":${kind},"metadata":${bookmarkMetadata(version, end)}}}\n`),
  }
}

/** Only metadata has such a form: Tables in protobuf are refused before. */
function inProtobufAs(as: As | undefined, served: Served): ProtobufSpelling {
  return as === undefined ? served.spelling.protobuf : metadataInProtobuf(as.version)
}

function listHead({ version, continueToken = '', remaining }: PageMeta): ListHead {
  return { resourceVersion: String(version), continueToken, remaining }
}
