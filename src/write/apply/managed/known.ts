/**
 * The owners of objects that are written again and again, such as a node's status or a lease: reading them from their
 * stored form costs more than finding out what a write changed.
 */

import { isObject, type Json, type JsonObject, parseJson } from '../../../kube/json/json.ts'
import { isOwn, managedText } from './managed.ts'

const objectsMax = 64 // a pod's owners take some 30 KB; whatever is written often is among the last few

type Known = { readonly version: number; readonly entries: Json[] }

export class KnownOwners {
  /** By object; the one that was written last stands last. */
  readonly #held = new Map<string, Known>()

  /** `entries` are those of the object at this version; no caller may change them. */
  remember(object: string, version: number, entries: Json | undefined): void {
    this.#held.delete(object)
    if (!isOwn(entries)) return
    this.#held.set(object, { version, entries })
    if (this.#held.size <= objectsMax) return
    for (const oldest of this.#held.keys()) {
      this.#held.delete(oldest)
      return
    }
  }

  /** The tree of a stored object; where its owners are known they are not read again. */
  read(object: string, version: number, bytes: Buffer): JsonObject {
    const held = this.#held.get(object)
    if (held?.version !== version) return parseJson(bytes) as JsonObject
    const source = bytes.toString('utf8')
    const text = managedText(held.entries)
    // Its quotes are not escaped, so it cannot stand inside of a string.
    const at = source.indexOf(text)
    if (at < 0) return parseJson(source) as JsonObject
    const tree = parseJson(`${source.slice(0, at)}null${source.slice(at + text.length)}`) as JsonObject
    const meta = tree.get('metadata')
    if (isObject(meta) && meta.get('managedFields') === null) meta.set('managedFields', held.entries)
    return tree
  }
}
