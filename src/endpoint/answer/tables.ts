/** Objects as tables: lists of them, and a watch's frames. */
import type { Form, FrameType } from '../../cache/event.ts'
import type { Item } from '../../cache/item.ts'
import type { MediaChoice } from '../../kube/negotiate.ts'
import type { Query } from '../../kube/request.ts'
import { badRequest } from '../../kube/status.ts'
import { metadataInOrder } from '../../kube/table/metadata.ts'
import {
  type IncludeObject,
  renderRow,
  type ListMeta as TableMeta,
  type TableObject,
  type TableParts,
  tableAround,
} from '../../kube/table/table.ts'
import type { Served } from '../endpoint.ts'
import { bookmarkMetadata } from '../forms/bookmark.ts'
import type { PageMeta } from '../forms/spelling.ts'

export type As = NonNullable<MediaChoice['as']>

/** A Table tells its columns once, so each watch has a form of its own; what is laborious of it they share. */
export function tableForm(served: Served, as: As, include: IncludeObject, now: () => number): Form {
  let columns = true
  const one = (item: Item, shown: IncludeObject) => {
    const listMeta = { resourceVersion: String(item.version) }
    const rendered = tableOfOne(item, { served, listMeta, include: shown, nowMs: now(), columns, as })
    columns = false
    return rendered
  }
  return {
    isLaborious: true,
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

export function frame(type: FrameType | 'BOOKMARK', object: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), object, Buffer.from('}\n')])
}

export type TableChoice = {
  readonly served: Served
  readonly listMeta: TableMeta
  readonly include: IncludeObject
  readonly nowMs: number
  readonly columns: boolean
  readonly as: As
}

export function tableParts({
  served,
  listMeta,
  include,
  nowMs,
  columns,
  as,
}: TableChoice): Omit<TableParts, 'objects'> {
  return {
    resource: served.resource,
    ...(served.columns === undefined ? {} : { custom: served.columns }),
    includeObject: include,
    listMeta,
    nowMs,
    columns,
    metaVersion: as.version,
  }
}

/** Without the newline that ends an object of its own: a watch's frame is one line. */
export function tableObject(served: Served, item: Item): TableObject {
  return { bytes: served.spelling.object(item).subarray(0, -1), metadata: metadataOf(served, item) }
}

export function tableOfOne(item: Item, choice: TableChoice): Buffer {
  const { head, end } = tableAround(tableParts(choice))
  return Buffer.concat([Buffer.from(head), rowOf(item, choice), Buffer.from(end)])
}

type LastRow = { readonly item: Item; readonly row: Buffer; readonly of: string }

/** The row made last of each resource: many watchers of it are told of the same change one after the other. */
const lastRows = new WeakMap<Served, LastRow>()

function rowOf(item: Item, choice: TableChoice): Buffer {
  const { served, include, as, nowMs } = choice
  const last = lastRows.get(served)
  // Ages are told in seconds.
  const of = `${include} ${as.version} ${Math.floor(nowMs / 1000)}`
  if (last?.item === item && last.of === of) return last.row
  const row = Buffer.concat(renderRow(tableObject(served, item), tableParts(choice)))
  lastRows.set(served, { item, row, of })
  return row
}

/** A custom resource's keys are in the order of the alphabet, those of a form that belongs to no resource in their own. */
export function metadataOf({ resource }: Served, item: Item): Buffer {
  const bytes = item.bytes.subarray(item.metadataStart, item.metadataEnd)
  return resource.custom ? metadataInOrder(bytes) : bytes
}

export function tableMeta({ version, continueToken, remaining }: PageMeta): TableMeta {
  return {
    resourceVersion: String(version),
    ...(continueToken === undefined ? {} : { continue: continueToken }),
    ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
  }
}

export function includeOf(query: Query): IncludeObject {
  const asked = query.get('includeObject') ?? ''
  if (asked === '') return 'Metadata'
  if (asked === 'None' || asked === 'Metadata' || asked === 'Object') return asked
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: "${asked}": must be 'Metadata', 'Object', 'None', or empty`,
  )
}
