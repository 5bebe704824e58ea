/**
 * An object at one version as the cache holds it: its bytes (in list-item form) and what a scan of them found. Never
 * changed after it is made; histories, watchers and answers share it. There are tens of thousands of these, so what can be
 * read from the key or the bytes when a reader wants it is not kept besides.
 */
import { type FieldPlan, type Labels, noFields, type Scan, scanObject, uidAt } from '../kube/object.ts'
import { objectKey } from '../kube/resource.ts'
import type { SharedBody } from '../store/store.ts'

/** What an item has that interests of a mirror share (`shareditems.ts`). */
export type Sharing = SharedBody & {
  /** The same object read by another plan. */
  readBy(plan: FieldPlan): Item
  /** One holder less. */
  letGo(): void
}

/** By this very list an item is known whose labels and fields nothing is known of: a member of its own would cost every item. */
const unknownFields: readonly string[] = []

export class Item {
  readonly key: string
  readonly version: number
  readonly bytes: Buffer
  readonly labels: Labels | undefined
  /** Values of the interest's planned fields, in plan order. */
  readonly fields: readonly string[]
  readonly versionStart: number
  readonly versionEnd: number
  readonly metadataStart: number
  readonly metadataEnd: number
  readonly uidStart: number
  /** Where the members after apiVersion and kind begin. */
  readonly bodyStart: number
  /** Given once, where interests share it. */
  shared: Sharing | undefined

  constructor(key: string, version: number, bytes: Buffer, scan: Omit<Scan, 'name' | 'namespace' | 'resourceVersion'>) {
    this.key = key
    this.version = version
    this.bytes = bytes
    this.labels = scan.labels
    this.fields = scan.fields
    this.versionStart = scan.versionStart
    this.versionEnd = scan.versionEnd
    this.metadataStart = scan.metadataStart
    this.metadataEnd = scan.metadataEnd
    this.uidStart = scan.uidStart
    this.bodyStart = scan.bodyStart
    this.shared = undefined
  }

  get name(): string {
    return this.key.slice(this.key.indexOf('/') + 1)
  }

  get namespace(): string {
    const slash = this.key.indexOf('/')
    return slash < 0 ? '' : this.key.slice(0, slash)
  }

  /** Its stored bytes are damaged: all that is known of it is its name. It may have been whatever a selector asks for. */
  get isDamaged(): boolean {
    return this.fields === unknownFields
  }

  get uid(): string {
    return uidAt(this.bytes, this.uidStart)
  }
}

export function makeItem(bytes: Buffer, version: number, plan: FieldPlan): Item {
  const scan = scanObject(bytes, plan)
  return new Item(objectKey(scan.namespace, scan.name), version, bytes, scan)
}

/** What stands for an object whose stored bytes are damaged. */
export function damagedItem(key: string): Item {
  const slash = key.indexOf('/')
  const place = slash < 0 ? {} : { namespace: key.slice(0, slash) }
  const metadata = { name: key.slice(slash + 1), ...place, resourceVersion: '0' }
  const bytes = Buffer.from(JSON.stringify({ metadata }))
  return new Item(key, 0, bytes, { ...scanObject(bytes, noFields), fields: unknownFields })
}

/** The same as `makeItem` of the form, of an object scanned as it came: `cut` bytes of its front are missing. */
export function itemOfScan(scan: Scan, form: Buffer, version: number, cut: number): Item {
  const moved = (at: number) => (at < 0 ? at : at - cut)
  return new Item(objectKey(scan.namespace, scan.name), version, form, {
    labels: scan.labels,
    fields: scan.fields,
    versionStart: moved(scan.versionStart),
    versionEnd: moved(scan.versionEnd),
    metadataStart: moved(scan.metadataStart),
    metadataEnd: moved(scan.metadataEnd),
    uidStart: moved(scan.uidStart),
    bodyStart: cut > 0 ? 1 : scan.bodyStart,
  })
}

/** The same object labelled with another version: what a DELETED frame carries. */
export function relabel(item: Item, version: number): Item {
  if (item.version === version || item.versionStart < 0) return item
  const { versionStart, versionEnd, metadataStart, metadataEnd, uidStart, bodyStart, labels, fields } = item
  const label = Buffer.from(String(version), 'latin1')
  const bytes = Buffer.concat([item.bytes.subarray(0, versionStart), label, item.bytes.subarray(versionEnd)])
  const shift = label.length - (versionEnd - versionStart)
  return new Item(item.key, version, bytes, {
    labels,
    fields,
    versionStart,
    metadataStart,
    bodyStart,
    versionEnd: versionEnd + shift,
    metadataEnd: metadataEnd + shift,
    uidStart: uidStart > versionStart ? uidStart + shift : uidStart,
  })
}
