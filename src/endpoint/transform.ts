/** Objects in the forms that belong to no resource: Table and PartialObjectMetadata, singly, in lists and in watches. */
import type { Form, FrameType } from '../cache/event.ts'
import { type Item, makeItem } from '../cache/item.ts'
import { type JsonObject, printJson, text } from '../json/json.ts'
import type { MediaChoice } from '../kube/negotiate.ts'
import { noFields } from '../kube/object.ts'
import type { ListHead } from '../kube/protobuf/enveloping.ts'
import type { Query } from '../kube/request.ts'
import { badRequest } from '../kube/status.ts'
import { metadataInOrder } from '../table/metadata.ts'
import type { TableResource } from '../table/printers.ts'
import {
  type IncludeObject,
  renderPartial,
  renderPartialList,
  renderTable,
  type ListMeta as TableMeta,
  type TableObject,
} from '../table/table.ts'
import { bookmarkMetadata } from './bookmark.ts'
import type { Served } from './endpoint.ts'
import { inProtobuf } from './protobufdocument.ts'
import { metadataInProtobuf, type ProtobufSpelling } from './protobufspelling.ts'
import type { ListMeta } from './spelling.ts'

const newline = Buffer.from('\n')

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
    return [table({ served, items: [item], listMeta, include: includeOf(query), nowMs, columns: true, as }), newline]
  }
  return [renderPartial(metadataOf(served, item), as.version), newline]
}

export function listAs(
  media: MediaChoice,
  served: Served,
  items: readonly Item[],
  list: { meta: ListMeta; query: Query; nowMs: number },
): readonly Buffer[] | Promise<readonly Buffer[]> {
  const { as } = media
  if (media.codec.name === 'protobuf') return inProtobufAs(as, served).list(items, listHead(list.meta))
  if (as === undefined) return served.spelling.list(items, list.meta)
  const listMeta = tableMeta(list.meta)
  if (as.kind === 'Table') {
    const include = includeOf(list.query)
    return [table({ served, items, listMeta, include, nowMs: list.nowMs, columns: true, as }), newline]
  }
  return [
    renderPartialList(
      items.map((item) => metadataOf(served, item)),
      listMeta,
      as.version,
    ),
    newline,
  ]
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

/** How a watch's frames are spelled for this choice. A Table tells its columns once, so each such watch has its own form. */
export function formOf(media: MediaChoice, served: Served, query: Query, now: () => number): Form {
  const { as } = media
  if (media.codec.name === 'protobuf') return inProtobufAs(as, served)
  if (as === undefined) return served.spelling
  if (as.kind === 'Table') return tableForm(served, as, includeOf(query), now)
  const kind = JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${as.version}` }).slice(0, -1)
  return {
    frame: (type, item) => frame(type, renderPartial(metadataOf(served, item), as.version)),
    bookmark: (version, end) =>
      Buffer.from(`{"type":"BOOKMARK","object":${kind},"metadata":${bookmarkMetadata(version, end)}}}\n`),
  }
}

type As = NonNullable<MediaChoice['as']>

/** Only metadata has such a form: Tables in protobuf are refused before. */
function inProtobufAs(as: As | undefined, served: Served): ProtobufSpelling {
  return as === undefined ? served.spelling.protobuf : metadataInProtobuf(as.version)
}

function tableForm(served: Served, as: As, include: IncludeObject, now: () => number): Form {
  let columns = true
  const one = (item: Item, shown: IncludeObject) => {
    const listMeta = { resourceVersion: String(item.version) }
    const rendered = table({ served, items: [item], listMeta, include: shown, nowMs: now(), columns, as })
    columns = false
    return rendered
  }
  return {
    frame: (type, item) => frame(type, one(item, include)),
    bookmark: (version, end) => {
      const metadata = bookmarkMetadata(version, end)
      const bytes = Buffer.from(`{"metadata":${metadata}}`)
      const metadataStart = '{"metadata":'.length
      const empty = { bytes, metadataStart, metadataEnd: bytes.length - 1, bodyStart: 1, version } as Item
      return frame('BOOKMARK', one(empty, end ? 'Metadata' : include))
    },
    dropped: () => {
      columns = true
    },
  }
}

function frame(type: FrameType | 'BOOKMARK', object: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), object, Buffer.from('}\n')])
}

function table(parts: {
  served: Served
  items: readonly Item[]
  listMeta: TableMeta
  include: IncludeObject
  nowMs: number
  columns: boolean
  as: As
}): Buffer {
  const { served, items, listMeta, nowMs, columns, as } = parts
  return renderTable({
    resource: served.resource,
    ...(served.columns === undefined ? {} : { custom: served.columns }),
    objects: items.map((item): TableObject => {
      // Without the newline that ends an object of its own: a watch's frame is one line.
      return { bytes: served.spelling.object(item).subarray(0, -1), metadata: metadataOf(served, item) }
    }),
    includeObject: parts.include,
    listMeta,
    nowMs,
    columns,
    metaVersion: as.version,
  })
}

/** A custom resource's keys are in the order of the alphabet, those of a form that belongs to no resource in their own. */
function metadataOf({ resource }: Served, item: Item): Buffer {
  const bytes = item.bytes.subarray(item.metadataStart, item.metadataEnd)
  return resource.custom ? metadataInOrder(bytes) : bytes
}

function listHead({ version, continueToken = '', remaining }: ListMeta): ListHead {
  return { resourceVersion: String(version), continueToken, remaining }
}

function tableMeta({ version, continueToken, remaining }: ListMeta): TableMeta {
  return {
    resourceVersion: String(version),
    ...(continueToken === undefined ? {} : { continue: continueToken }),
    ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
  }
}

function includeOf(query: Query): IncludeObject {
  const asked = query.get('includeObject') ?? ''
  if (asked === '') return 'Metadata'
  if (asked === 'None' || asked === 'Metadata' || asked === 'Object') return asked
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: "${asked}": must be 'Metadata', 'Object', 'None', or empty`,
  )
}
