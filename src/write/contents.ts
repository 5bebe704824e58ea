/**
 * ConfigMaps and Secrets: their keys become the names of files, and kubelets watch no object that says it is immutable.
 * The rest of what the real server knows about built-in kinds stays with it.
 */

import { equalJson, field, isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import { isResource } from '../kube/resource.ts'
import { forbiddenField, invalidField, tooLong } from '../kube/schema/errors.ts'
import type { FieldError } from '../kube/status.ts'
import { configMaps, type RequestScope, secrets } from './engine.ts'

const keyBytesMax = 253 // a name in a directory
const contentBytesMax = 1024 * 1024 // the real server's: each is held in memory by every kubelet that mounts it

const keyText =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

/** What may not stand in a ConfigMap or Secret; nothing is wrong with other kinds. */
export function contentFaults({ resource }: RequestScope, tree: JsonObject): FieldError[] {
  const isSecret = isResource(resource, secrets)
  if (!isSecret && !isResource(resource, configMaps)) return []
  const found: FieldError[] = []
  let bytes = 0
  for (const name of isSecret ? ['data'] : ['data', 'binaryData']) {
    for (const [key, value] of entriesOf(tree, name)) {
      for (const fault of keyFaults(key)) found.push(invalidField(`${name}[${key}]`, key, fault))
      if (name === 'data' && !isSecret && field(tree, 'binaryData', key) !== undefined) {
        found.push(invalidField(`data[${key}]`, key, 'duplicate of key present in binaryData'))
      }
      const encoded = isSecret || name === 'binaryData'
      bytes += typeof value === 'string' ? Buffer.byteLength(value, encoded ? 'base64' : 'utf8') : 0
    }
  }
  if (bytes > contentBytesMax) found.push(tooLong(isSecret ? 'data' : '[]', contentBytesMax))
  return found
}

function entriesOf(tree: JsonObject, name: string): [string, Json][] {
  const content = tree.get(name)
  return isObject(content) ? [...content] : []
}

function keyFaults(key: string): string[] {
  const found: string[] = []
  if (Buffer.byteLength(key) > keyBytesMax) found.push(`must be no more than ${keyBytesMax} characters`)
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) found.push(keyText)
  if (key === '.' || key === '..') found.push(`must not be '${key}'`)
  else if (key.startsWith('..')) found.push("must not start with '..'")
  return found
}

/** What an update may not change. */
export function frozenFaults({ resource }: RequestScope, tree: JsonObject, old: JsonObject): FieldError[] {
  const isSecret = isResource(resource, secrets)
  if (!isSecret && !isResource(resource, configMaps)) return []
  const found: FieldError[] = []
  const type = tree.get('type') ?? ''
  if (isSecret && !equalJson(type, old.get('type') ?? '')) {
    found.push(invalidField('type', type, 'field is immutable'))
  }
  if (old.get('immutable') !== true) return found
  const detail = 'field is immutable when `immutable` is set'
  if (tree.get('immutable') !== true) found.push(forbiddenField('immutable', detail))
  for (const name of isSecret ? ['data'] : ['data', 'binaryData']) {
    const same = equalJson(new Map(entriesOf(tree, name)), new Map(entriesOf(old, name)))
    if (!same) found.push(forbiddenField(name, detail))
  }
  return found
}
