/** Metadata in the order in which kube-apiserver prints it from a structure: that of the fields, not of the alphabet. */
import { isObject, type Json, JsonError, type JsonObject, parseJson, printJson } from '../json/json.ts'

const fields = [
  'name',
  'generateName',
  'namespace',
  'selfLink',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
]
const ownerFields = ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion']
const managerFields = ['manager', 'operation', 'apiVersion', 'time', 'fieldsType', 'fieldsV1', 'subresource']

/** Metadata too deep to be read (those of an object of a thousand levels) stay as they are. */
export function metadataInOrder(bytes: Buffer): Buffer {
  let metadata: Json
  try {
    metadata = parseJson(bytes)
  } catch (error) {
    if (error instanceof JsonError) return bytes
    throw error
  }
  if (!isObject(metadata)) return bytes
  const ordered = inOrder(metadata, fields)
  orderEach(ordered, 'ownerReferences', ownerFields)
  orderEach(ordered, 'managedFields', managerFields)
  return Buffer.from(printJson(ordered))
}

function orderEach(metadata: JsonObject, key: string, names: readonly string[]): void {
  const list = metadata.get(key)
  if (!Array.isArray(list)) return
  const ordered = list.map((one) => (isObject(one) ? inOrder(one, names) : one))
  metadata.set(key, ordered)
}

/** What has no place of its own stays behind the rest. */
function inOrder(from: JsonObject, names: readonly string[]): JsonObject {
  const ordered = new Map<string, Json>()
  for (const name of names) {
    const value = from.get(name)
    if (value !== undefined) ordered.set(name, value)
  }
  for (const [name, value] of from) if (!ordered.has(name)) ordered.set(name, value)
  return ordered
}
