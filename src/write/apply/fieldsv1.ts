/**
 * FieldsV1, the form in which managedFields keep sets of paths: an object by steps, in which `.` marks a member that
 * also leads further.
 */

import { bytewise } from '../../kube/json/goformat.ts'
import { parseInt64 } from '../../kube/json/gotext.ts'
import { type Json, JsonError, type JsonObject, parseJson } from '../../kube/json/json.ts'
import { FieldSet } from './fieldset.ts'
import { fieldElement, keyElement, type PathElement, valueElement } from './pathelement.ts'

/** FieldsV1 that no field set can be read from; the message says why. */
export class FieldsFault extends Error {}

/** Steps of kinds that only later versions know are dropped with all below them. Throws FieldsFault. */
export function parseFields(fields: Json | undefined): FieldSet {
  return children(fields ?? null) ?? FieldSet.of()
}

function children(fields: Json): FieldSet | undefined {
  if (fields === null) return undefined
  if (!(fields instanceof Map)) throw new FieldsFault('ReadMapCB: expect { or n')
  const nodes: { element: PathElement; member: boolean; children: FieldSet | undefined }[] = []
  for (const [key, below] of fields) {
    if (key === '.') continue
    const element = parseElement(key)
    if (element === undefined) continue
    const inner = children(below)
    const marked = below instanceof Map && below.has('.')
    nodes.push({ element, member: marked || inner === undefined, children: inner })
  }
  return nodes.length === 0 ? undefined : FieldSet.from(nodes)
}

/** Undefined: of a kind that this version does not know. */
function parseElement(key: string): PathElement | undefined {
  if (key.length < 2) throw unreadable('key must be 2 characters long:')
  if (key[1] !== ':') throw unreadable(`missing colon: ${key}`)
  const content = key.slice(2)
  switch (key[0]) {
    case 'f':
      return fieldElement(content)
    case 'v':
      return valueElement(parseContent(content))
    case 'k': {
      const keys = parseContent(content)
      if (!(keys instanceof Map)) throw unreadable('ReadObjectCB: expect { or n')
      const names = [...keys.keys()].sort(bytewise)
      return keyElement(
        names,
        names.map((name) => keys.get(name)!),
      )
    }
    case 'i': {
      const parsed = parseInt64(content)
      if ('fault' in parsed) throw unreadable(parsed.fault.replace('ParseInt', 'Atoi'))
      const index = Number(parsed.value)
      return { kind: 'index', text: `i:${index}`, index }
    }
    default:
      return undefined
  }
}

function parseContent(content: string): Json {
  try {
    return parseJson(content)
  } catch (error) {
    if (error instanceof JsonError) throw unreadable(error.message)
    throw error
  }
}

function unreadable(why: string): FieldsFault {
  return new FieldsFault(`parsing key as path element: ${why}`)
}

/** In the order in which kube-apiserver prints it; not to be changed. */
export function printFields(set: FieldSet): JsonObject {
  return print(set, false)
}

/** One for all leaves, which are most of it. */
const nothing: JsonObject = new Map()

function print(set: FieldSet, self: boolean): JsonObject {
  const printed: JsonObject = new Map()
  if (self) printed.set('.', nothing)
  for (const { element, member, children: below } of set.sorted()) {
    printed.set(element.text, below === undefined ? nothing : print(below, member))
  }
  return printed
}
