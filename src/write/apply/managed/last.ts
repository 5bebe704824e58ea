/**
 * Objects that `kubectl apply` without --server-side has written carry their last configuration in an annotation. To
 * kubectl applying such an object it stands for ownership: what still is as it was configured there is no conflict, and
 * the annotation is kept in step, so that the object can go back to the old way.
 */

import { bytewise } from '../../../kube/json/goformat.ts'
import {
  cloneJson,
  field,
  isObject,
  type Json,
  type JsonObject,
  parseJson,
  printJson,
  text,
} from '../../../kube/json/json.ts'
import { admit } from '../admit.ts'
import { ApplyConflict } from '../apply.ts'
import { compareValues } from '../comparevalues.ts'
import type { FieldSet } from '../fieldset.ts'
import { fieldsOf } from '../fieldsof.ts'
import { typeFor } from '../owner.ts'
import { type Application, type Applying, type ManagedWrite, recordApply } from './record.ts'

const annotation = 'kubectl.kubernetes.io/last-applied-configuration'
const kubectl = 'kubectl'
const annotationBytesMax = 256 * 1024 // the real server's, of all annotations together

/** As recordApply; for kubectl the annotation counts. */
export function applyAfterLast(applying: Applying): Application {
  if (applying.manager !== kubectl) return recordApply(applying)
  const { tree, managed } = applyOwn(applying)
  const noted = tree ?? applying.live
  if (text(noted, 'metadata', 'annotations', annotation) === '') return { tree, managed }
  return { tree: withLast(noted, applying.config), managed }
}

function applyOwn(applying: Applying): Application {
  try {
    return recordApply(applying)
  } catch (error) {
    if (!(error instanceof ApplyConflict)) throw error
    const own = configured(applying)
    if (own === undefined) throw error
    const others = error.conflicts.filter(({ path }) => !own.has(path))
    if (others.length > 0) throw new ApplyConflict(others)
    return recordApply({ ...applying, force: true })
  }
}

/** The fields of the last configuration that are still as it has them; undefined if it cannot be told. */
function configured({ live, apiVersion, versions }: ManagedWrite): FieldSet | undefined {
  const type = typeFor(versions, apiVersion)
  try {
    const last = parseJson(text(live, 'metadata', 'annotations', annotation))
    if (!isObject(last) || text(last, 'apiVersion') !== apiVersion) return undefined
    if (text(last, 'kind') !== text(live, 'kind')) return undefined
    admit(live, type)
    admit(last, type)
    const { removed, modified, added } = compareValues(last, live, type)
    return fieldsOf(last, type).difference(modified).difference(added).difference(removed)
  } catch {
    // Whatever is wrong with the annotation or the object: it speaks for no owner.
    return undefined
  }
}

function withLast(tree: JsonObject, config: JsonObject): JsonObject {
  const noted = new Map(tree)
  const meta = new Map(tree.get('metadata') as JsonObject)
  const annotations = new Map(meta.get('annotations') as JsonObject)
  annotations.set(annotation, printLast(config))
  let bytes = 0
  for (const [key, value] of annotations) bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value))
  if (bytes > annotationBytesMax) annotations.delete(annotation)
  meta.set('annotations', annotations)
  return noted.set('metadata', meta)
}

/** The configuration without the annotation itself, keys sorted and a line end behind it, as kubectl's own has it. */
function printLast(config: JsonObject): string {
  const copy = cloneJson(config)
  const annotations = field(copy, 'metadata', 'annotations')
  if (isObject(annotations)) annotations.delete(annotation)
  return `${printJson(sorted(copy))}\n`
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const members = [...value].sort(([a], [b]) => bytewise(a, b))
  return new Map(members.map(([key, member]) => [key, sorted(member)]))
}
