/**
 * Patches: one entry for the three kinds kube-apiserver takes, and JSON merge patch itself. All are pure: the result
 * shares nothing with the inputs, so a patch can be applied again to a newer object and the result changed at will.
 */
import { cloneJson, isNumber, type Json, type JsonObject } from '../json/json.ts'
import { badRequest } from '../status.ts'
import { applyJsonPatch } from './jsonpatch.ts'
import { applyStrategicPatch, type MergeSchema } from './strategic.ts'

export type PatchKind = 'json' | 'merge' | 'strategic'

/** `schema` is needed for strategic patches only; without one they are refused, as for custom resources. */
export function applyPatch(kind: PatchKind, original: JsonObject, patch: Json, schema?: MergeSchema): JsonObject {
  switch (kind) {
    case 'json':
      return applyJsonPatch(cloneJson(original), patch)
    case 'merge':
      if (patch === null) throw badRequest('Invalid JSON Patch')
      if (!(patch instanceof Map)) throw badRequest(`error decoding patch: ${wrongKind(patch)}`)
      return merge(cloneJson(original), patch)
    case 'strategic':
      if (schema === undefined) throw badRequest('strategic merge patch format is not supported')
      if (patch === null) return cloneJson(original)
      if (!(patch instanceof Map)) throw badRequest(wrongKind(patch))
      return applyStrategicPatch(cloneJson(original), cloneJson(patch), schema)
  }
}

function wrongKind(value: Json): string {
  const kind = Array.isArray(value)
    ? 'array'
    : isNumber(value)
      ? 'number'
      : typeof value === 'string'
        ? 'string'
        : 'bool'
  return `json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`
}

/** RFC 7386 on `target`, which is ours to change. */
function merge(target: JsonObject, patch: JsonObject): JsonObject {
  for (const [key, value] of patch) {
    if (value === null) target.delete(key)
    else target.set(key, merged(target.get(key), value))
  }
  return target
}

function merged(current: Json | undefined, patch: Json): Json {
  if (!(current instanceof Map)) return withoutNulls(patch)
  return patch instanceof Map ? merge(current, patch) : cloneJson(patch)
}

/**
 * What a patch puts where no object was. Beyond the RFC, kube-apiserver's library drops null members inside lists too
 * (only where nothing or no object stood before), while null elements of lists stay.
 */
function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!(value instanceof Map)) return value
  const kept: JsonObject = new Map()
  for (const [key, member] of value) {
    if (member !== null) kept.set(key, withoutNulls(member))
  }
  return kept
}
