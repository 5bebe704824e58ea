/**
 * How objects of one resource version are spelled in JSON. Objects are kept as list items; the kind and apiVersion that a
 * single object or a watch frame carries are spliced in front, and swapped where another version of a custom resource is
 * asked for. Nothing is parsed here. Custom objects that an API server printed are whole, with their members in its order.
 */
import type { Form, FrameType } from '../../cache/event.ts'
import type { Item } from '../../cache/item.ts'
import { apiVersion, type Resource } from '../../kube/resource.ts'
import { printBookmark } from './bookmark.ts'
import { type ProtobufSpelling, resourceInProtobuf } from './protobuf/spelling.ts'

export type PageMeta = {
  readonly version: number
  readonly continueToken?: string | undefined
  readonly remaining?: number | undefined
}

/** Rewrites a stored object into another version's shape, where that is more than its apiVersion. */
export type Convert = (stored: Buffer) => Buffer

const comma = Buffer.from(',')
const objectEnd = Buffer.from('\n')
const frameEnd = Buffer.from('}\n')

export class Spelling implements Form {
  readonly #resource: Resource
  readonly #convert: Convert | undefined
  readonly #verbatim: boolean
  /** What stands before the members of an object. */
  readonly #head: Buffer
  readonly #frameHeads: Record<FrameType, Buffer>
  readonly #bareFrameHeads: Record<FrameType, Buffer>
  #protobuf: ProtobufSpelling | undefined

  /** `verbatim`: stored custom objects are as an API server printed them, in this very version. */
  constructor(resource: Resource, convert?: Convert, { verbatim = false }: { readonly verbatim?: boolean } = {}) {
    this.#resource = resource
    this.#convert = convert
    this.#verbatim = verbatim && resource.custom
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

  /** The same in protobuf: there is none of custom resources, as negotiation has seen. */
  get protobuf(): ProtobufSpelling {
    const convert = this.#convert
    this.#protobuf ??= resourceInProtobuf(this.#resource, ({ bytes, isDamaged }) =>
      isDamaged ? bytes : (convert?.(bytes) ?? bytes),
    )
    return this.#protobuf
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

  bookmark(version: number, initialEventsEnd: boolean): Buffer {
    return Buffer.from(printBookmark(this.#resource, version, initialEventsEnd))
  }

  /** Whether objects are more than spliced. */
  get converts(): boolean {
    return this.#convert !== undefined
  }

  list(items: readonly Item[], meta: PageMeta): Buffer[] {
    const { head, end } = this.around(meta)
    const pieces: Buffer[] = [Buffer.from(head)]
    for (let i = 0; i < items.length; i++) {
      if (i > 0) pieces.push(comma)
      const item = items[i] as Item
      if (this.#resource.custom && !this.#isOwn(item)) pieces.push(this.#head, item.bytes.subarray(item.bodyStart))
      else pieces.push(this.#convert === undefined ? item.bytes : this.#convert(item.bytes))
    }
    pieces.push(Buffer.from(end))
    return pieces
  }

  /** An object as a list holds it, in pieces. */
  element(item: Item): Buffer[] {
    if (this.#resource.custom && !this.#isOwn(item)) return [this.#head, item.bytes.subarray(item.bodyStart)]
    return [this.#convert === undefined ? item.bytes : this.#convert(item.bytes)]
  }

  /** What stands around the items: again a custom resource's keys are sorted, and an absent token is printed. */
  around(meta: PageMeta): { head: string; end: string } {
    const { listKind, custom } = this.#resource
    const type = `"apiVersion":${JSON.stringify(apiVersion(this.#resource))}`
    const kind = `"kind":${JSON.stringify(listKind)}`
    const version = `"resourceVersion":"${meta.version}"`
    const token = meta.continueToken === undefined ? '' : `"continue":"${meta.continueToken}",`
    const remaining = meta.remaining === undefined ? '' : `"remainingItemCount":${meta.remaining},`
    if (custom) {
      const metadata = `${token === '' ? '"continue":"",' : token}${remaining}${version}`
      return { head: `{${type},"items":[`, end: `],${kind},"metadata":{${metadata}}}\n` }
    }
    const more = `${token}${remaining}`
    const metadata = more === '' ? version : `${version},${more.slice(0, -1)}`
    return { head: `{${kind},${type},"metadata":{${metadata}},"items":[`, end: ']}\n' }
  }

  /** The members after kind and apiVersion; undefined when the stored bytes are already the whole object. */
  #body(item: Item): Buffer | undefined {
    if (this.#convert !== undefined && !item.isDamaged) return this.#convert(item.bytes).subarray(1)
    if (this.#resource.custom && this.#isOwn(item)) return undefined
    return item.bytes.subarray(item.bodyStart)
  }

  #isOwn(item: Item): boolean {
    if (this.#verbatim) return !item.isDamaged
    return item.bytes.subarray(0, this.#head.length).equals(this.#head)
  }
}

function byType(make: (type: FrameType) => Buffer): Record<FrameType, Buffer> {
  return { ADDED: make('ADDED'), MODIFIED: make('MODIFIED'), DELETED: make('DELETED') }
}
