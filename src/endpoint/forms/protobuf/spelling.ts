/**
 * How objects are spelled in protobuf: those of one resource version, or of any as metadata alone. Each object's message is
 * made once, from its JSON, and shared by answers, lists and watches, as the JSON is; what stands around it is lengths and
 * the name of its kind.
 */
import { turns } from '../../../base/turns.ts'
import type { Form, FrameType } from '../../../cache/event.ts'
import { forms, type Maker } from '../../../cache/forms.ts'
import type { Item } from '../../../cache/item.ts'
import { Enveloping, type ListHead, listField, messageStart, type TypeMeta } from '../../../kube/protobuf/enveloping.ts'
import { encodeMessage, type Message, messageOf, ProtobufFault } from '../../../kube/protobuf/protobuf.ts'
import { apiVersion, type Resource } from '../../../kube/resource.ts'
import { internalError, type StatusError } from '../../../kube/status.ts'
import { bookmarkMetadata, bookmarkObject } from '../bookmark.ts'
import type { LazyBody } from '../listing.ts'
import { protobufErrorFrame } from './document.ts'

/** Messages made without a pause: some five milliseconds. */
const turnBytes = 128 * 1024

/** Messages that a list holds on to until they are sent, as a rule the very ones that are kept anyway. */
const heldBytesMax = 32 * 1024 * 1024

type ProtobufListParts = {
  /** Whose turns it takes. */
  readonly who: string
  readonly heldBytesMax?: number
}

type Parts = {
  readonly type: TypeMeta
  readonly listKind: string
  readonly message: Message
  /** The object's JSON, with or without kind and apiVersion. */
  readonly json: (item: Item) => Buffer
  /** The JSON of a bookmark's object. */
  readonly mark: (version: number, initialEventsEnd: boolean) => string
}

export class ProtobufSpelling implements Form {
  readonly isLaborious = true
  readonly #message: Message
  readonly #object: Enveloping
  readonly #list: Enveloping
  readonly #mark: Parts['mark']
  readonly #make: Maker

  constructor({ type, listKind, message, json, mark }: Parts) {
    this.#message = message
    this.#object = new Enveloping(type)
    this.#list = new Enveloping({ apiVersion: type.apiVersion, kind: listKind })
    this.#mark = mark
    this.#make = (item) => listField(encodeMessage(message, json(item)))
  }

  /** A whole object, as GET answers it, in pieces. */
  pieces(item: Item): Buffer[] {
    const field = this.#field(item)
    return this.#object.pieces(field.subarray(messageStart(field)))
  }

  /**
   * The first list of thousands has all their messages to make: others get their turn meanwhile. The size of all stands
   * before the first of them; where they are more than is held at once they are made again when they are sent.
   */
  async list(
    items: readonly Item[],
    head: ListHead,
    { who, heldBytesMax: heldMax = heldBytesMax }: ProtobufListParts,
  ): Promise<Buffer[] | LazyBody> {
    let fields: Buffer[] | undefined = []
    let bytes = 0
    let made = 0
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as Item
      let field = forms.peek(item, this.#make)
      if (field === undefined) {
        field = this.#field(item)
        made += field.length
        if (made > turnBytes) {
          made = 0
          await turns.take(who)
        }
      }
      bytes += field.length
      if (bytes > heldMax) fields = undefined
      fields?.push(field)
    }
    const around = this.#list.listAround(bytes, head)
    const [before, end] = around
    if (fields !== undefined) return [before, ...fields, end]
    return { bytes: before.length + bytes + end.length, pieces: this.#again(items, around) }
  }

  *#again(items: readonly Item[], [before, end]: readonly [Buffer, Buffer]): Iterable<Buffer> {
    yield before
    for (const item of items) yield this.#field(item)
    yield end
  }

  /** The last state of something that is gone is never asked for again, and not kept. */
  frame(type: FrameType, item: Item): Buffer {
    try {
      const field = type === 'DELETED' ? this.#make(item) : forms.get(item, this.#make)
      return this.#object.frame(type, field, messageStart(field))
    } catch (error) {
      // A watcher must not fall over one object, and neither must those that share its frames.
      return protobufErrorFrame(unwritable(error, item).status)
    }
  }

  bookmark(version: number, initialEventsEnd: boolean): Buffer {
    const json = Buffer.from(this.#mark(version, initialEventsEnd))
    return this.#object.frame('BOOKMARK', encodeMessage(this.#message, json))
  }

  #field(item: Item): Buffer {
    try {
      return forms.get(item, this.#make)
    } catch (error) {
      throw unwritable(error, item)
    }
  }
}

/** `json` is the object as this version of the resource has it. */
export function resourceInProtobuf(resource: Resource, json: (item: Item) => Buffer): ProtobufSpelling {
  const type = { apiVersion: apiVersion(resource), kind: resource.kind }
  const mark = (version: number, end: boolean) => bookmarkObject(resource, version, end)
  return new ProtobufSpelling({ type, listKind: resource.listKind, message: known(type), json, mark })
}

const metadataSpellings = new Map<string, ProtobufSpelling>()

/** Of every resource alike, so that all watchers of an object share its frames. */
export function metadataInProtobuf(version: 'v1' | 'v1beta1'): ProtobufSpelling {
  let spelling = metadataSpellings.get(version)
  if (spelling === undefined) {
    const kind = 'PartialObjectMetadata'
    spelling = new ProtobufSpelling({
      type: { apiVersion: `meta.k8s.io/${version}`, kind },
      listKind: `${kind}List`,
      message: known({ apiVersion: 'meta.k8s.io/v1', kind }),
      json: ({ bytes, metadataStart, metadataEnd }) => partial(bytes.subarray(metadataStart, metadataEnd)),
      mark: (at, end) => `{"metadata":${bookmarkMetadata(at, end)}}`,
    })
    metadataSpellings.set(version, spelling)
  }
  return spelling
}

const metadataHead = Buffer.from('{"metadata":')
const objectEnd = Buffer.from('}')

function partial(metadata: Buffer): Buffer {
  return Buffer.concat([metadataHead, metadata, objectEnd])
}

function known({ apiVersion: version, kind }: TypeMeta): Message {
  const message = messageOf(version, kind)
  if (message === undefined) throw internalError(`${kind} has no protobuf form`)
  return message
}

/** What was stored does not fit its own kind: only that object cannot be shown so. */
function unwritable(error: unknown, { key }: Item): StatusError {
  if (!(error instanceof ProtobufFault)) throw error
  return internalError(`${key} cannot be written in protobuf: ${error.message}`)
}
