/**
 * How objects of one resource version are spelled in JSON. Objects are kept as list items; the kind and apiVersion that a
 * single object or a watch frame carries are spliced in front, and swapped where another version of a custom resource is
 * asked for. Nothing is parsed here.
 */
import type { Form, FrameType } from '../cache/event.ts'
import type { Item } from '../cache/item.ts'
import { apiVersion, type Resource } from '../kube/resource.ts'

export type ListMeta = {
  readonly version: number
  readonly continueToken?: string | undefined
  readonly remaining?: number | undefined
}

/** Rewrites a stored object into another version's shape, where that is more than its apiVersion. */
export type Convert = (stored: Buffer) => Buffer

const comma = Buffer.from(',')
const objectEnd = Buffer.from('\n')
const frameEnd = Buffer.from('}\n')
const listEnd = Buffer.from(']}\n')

export class Spelling implements Form {
  readonly #resource: Resource
  readonly #convert: Convert | undefined
  /** What stands before the members of an object. */
  readonly #head: Buffer
  readonly #frameHeads: Record<FrameType, Buffer>
  readonly #bareFrameHeads: Record<FrameType, Buffer>

  constructor(resource: Resource, convert?: Convert) {
    this.#resource = resource
    this.#convert = convert
    const version = JSON.stringify(apiVersion(resource))
    const kind = JSON.stringify(resource.kind)
    // Go prints TypeMeta's kind first; a custom resource is a map there, and its keys come sorted.
    const head = resource.custom
      ? `{"apiVersion":${version},"kind":${kind},`
      : `{"kind":${kind},"apiVersion":${version},`
    this.#head = Buffer.from(head)
    const heads = (rest: string) => (type: FrameType) => Buffer.from(`{"type":"${type}","object":${rest}`)
    this.#frameHeads = byType(heads(head))
    this.#bareFrameHeads = byType(heads(''))
  }

  /** A whole object, as GET answers it, in pieces: nothing is copied, so nothing has to be collected. */
  pieces(item: Item): Buffer[] {
    const body = this.#body(item)
    return body === undefined ? [item.bytes, objectEnd] : [this.#head, body, objectEnd]
  }

  object(item: Item): Buffer {
    return Buffer.concat(this.pieces(item))
  }

  frame(type: FrameType, item: Item): Buffer {
    const body = this.#body(item)
    const pieces =
      body === undefined ? [this.#bareFrameHeads[type], item.bytes, frameEnd] : [this.#frameHeads[type], body, frameEnd]
    return Buffer.concat(pieces)
  }

  /** An object of the right kind with nothing but a version: typed clients look at the kind. */
  bookmark(version: number, initialEventsEnd: boolean): Buffer {
    const annotations = initialEventsEnd ? ',"annotations":{"k8s.io/initial-events-end":"true"}' : ''
    const head = this.#head.toString('latin1')
    return Buffer.from(
      `{"type":"BOOKMARK","object":${head}"metadata":{"resourceVersion":"${version}"${annotations}}}}\n`,
    )
  }

  list(items: readonly Item[], meta: ListMeta): Buffer[] {
    const pieces: Buffer[] = [this.#listHead(meta)]
    for (let i = 0; i < items.length; i++) {
      if (i > 0) pieces.push(comma)
      const item = items[i] as Item
      const bytes = this.#convert === undefined ? item.bytes : this.#convert(item.bytes)
      if (this.#resource.custom && !this.#isOwn(item)) pieces.push(this.#head, item.bytes.subarray(item.bodyStart))
      else pieces.push(bytes)
    }
    pieces.push(listEnd)
    return pieces
  }

  #listHead(meta: ListMeta): Buffer {
    const { listKind, custom } = this.#resource
    const version = JSON.stringify(apiVersion(this.#resource))
    const token = meta.continueToken
    const remaining = meta.remaining === undefined ? '' : `,"remainingItemCount":${meta.remaining}`
    const kind = JSON.stringify(listKind)
    const more = token === undefined ? (custom ? ',"continue":""' : '') : `,"continue":"${token}"`
    const metadata = `"metadata":{"resourceVersion":"${meta.version}"${more}${remaining}}`
    const types = custom ? `"apiVersion":${version},"kind":${kind}` : `"kind":${kind},"apiVersion":${version}`
    return Buffer.from(`{${types},${metadata},"items":[`)
  }

  /** The members after kind and apiVersion; undefined when the stored bytes are already the whole object. */
  #body(item: Item): Buffer | undefined {
    if (this.#convert !== undefined) return this.#convert(item.bytes).subarray(1)
    if (this.#resource.custom && this.#isOwn(item)) return undefined
    return item.bytes.subarray(item.bodyStart)
  }

  #isOwn(item: Item): boolean {
    return item.bytes.subarray(0, this.#head.length).equals(this.#head)
  }
}

function byType(make: (type: FrameType) => Buffer): Record<FrameType, Buffer> {
  return { ADDED: make('ADDED'), MODIFIED: make('MODIFIED'), DELETED: make('DELETED') }
}
