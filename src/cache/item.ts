/**
 * An object at one version as the cache holds it: its bytes (in list-item form) and what a scan of them found. Never
 * changed after it is made; histories, watchers and answers share it.
 */
import { type FieldPlan, scanObject } from '../kube/object.ts'
import { objectKey } from '../kube/resource.ts'

export type Item = {
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: number
  readonly bytes: Buffer
  readonly labels: ReadonlyMap<string, string> | undefined
  /** Values of the interest's planned fields, in plan order. */
  readonly fields: readonly string[]
  readonly versionStart: number
  readonly versionEnd: number
  readonly metadataStart: number
  readonly metadataEnd: number
  /** Where the members after apiVersion and kind begin. */
  readonly bodyStart: number
}

export function makeItem(bytes: Buffer, version: number, plan: FieldPlan): Item {
  const scan = scanObject(bytes, plan)
  return {
    key: objectKey(scan.namespace, scan.name),
    namespace: scan.namespace,
    name: scan.name,
    uid: scan.uid,
    version,
    bytes,
    labels: scan.labels,
    fields: scan.fields,
    versionStart: scan.versionStart,
    versionEnd: scan.versionEnd,
    metadataStart: scan.metadataStart,
    metadataEnd: scan.metadataEnd,
    bodyStart: scan.bodyStart,
  }
}

/** The same object labelled with another version: what a DELETED frame carries. */
export function relabel(item: Item, version: number): Item {
  if (item.version === version || item.versionStart < 0) return item
  const label = Buffer.from(String(version), 'latin1')
  const bytes = Buffer.concat([item.bytes.subarray(0, item.versionStart), label, item.bytes.subarray(item.versionEnd)])
  const shift = label.length - (item.versionEnd - item.versionStart)
  return {
    ...item,
    version,
    bytes,
    versionEnd: item.versionEnd + shift,
    metadataEnd: item.metadataEnd + shift,
  }
}
