/**
 * What stands around protobuf messages on their way out: the envelope that names an object's kind, the list that holds many,
 * the frame of a watch. Objects come as bytes that exist already, so everything here is lengths and a copy at most.
 */

/** Stands before every message. */
export const magic = Buffer.from('k8s\0')
/** Content encoding and content type of an envelope, both empty. */
const envelopeEnd = Buffer.from([0x1a, 0x00, 0x22, 0x00])
const nothing = Buffer.alloc(0)
/** The tag of an item in a list, and of the object in its envelope. */
const second = 0x12
const first = 0x0a

export type TypeMeta = { readonly apiVersion: string; readonly kind: string }

/** An object's message as a list holds it: tag, length, message. A caller that wants the message alone looks behind those. */
export function listField(message: Buffer): Buffer {
  const field = Buffer.allocUnsafeSlow(1 + varintSize(message.length) + message.length)
  field[0] = second
  message.copy(field, writeVarint(field, 1, message.length))
  return field
}

/** Where the message begins in a field. */
export function messageStart(field: Buffer): number {
  let at = 1
  while ((field[at] as number) >= 0x80) at++
  return at + 1
}

export type ListHead = {
  readonly resourceVersion: string
  readonly continueToken: string
  readonly remaining: number | undefined
}

export class Enveloping {
  readonly #head: Buffer

  constructor({ apiVersion, kind }: TypeMeta) {
    const type = Buffer.concat([delimited(first, Buffer.from(apiVersion)), delimited(second, Buffer.from(kind))])
    this.#head = Buffer.concat([magic, delimited(first, type), Buffer.from([second])])
  }

  /** The message in its envelope, in pieces. */
  pieces(message: Buffer): Buffer[] {
    return [this.#before(message.length), message, envelopeEnd]
  }

  /** What stands before and behind items that are list fields already and take so many bytes. */
  listAround(bytes: number, list: ListHead): readonly [before: Buffer, end: Buffer] {
    const head = listHead(list)
    return [Buffer.concat([this.#before(head.length + bytes), head]), envelopeEnd]
  }

  /** The event of a watch, with the message (which begins at `start` of `bytes`) as its object. */
  frame(type: string, bytes: Buffer, start = 0): Buffer {
    const length = bytes.length - start
    const envelope = this.#head.length + varintSize(length) + length + envelopeEnd.length
    const extension = 1 + varintSize(envelope) + envelope
    const event = 2 + type.length + 1 + varintSize(extension) + extension
    const frame = Buffer.allocUnsafe(4 + event)
    let at = frame.writeUInt32BE(event, 0)
    frame[at++] = first
    frame[at++] = type.length
    at += frame.write(type, at, 'latin1')
    frame[at++] = second
    at = writeVarint(frame, at, extension)
    frame[at++] = first
    at = writeVarint(frame, at, envelope)
    at += this.#head.copy(frame, at)
    at = writeVarint(frame, at, length)
    at += bytes.copy(frame, at, start)
    envelopeEnd.copy(frame, at)
    return frame
  }

  #before(length: number): Buffer {
    const before = Buffer.allocUnsafe(this.#head.length + varintSize(length))
    writeVarint(before, this.#head.copy(before), length)
    return before
  }
}

/** ListMeta as Go writes it: a self link that is always empty, version and token always, the count where it is known. */
function listHead({ resourceVersion, continueToken, remaining }: ListHead): Buffer {
  const fields = [
    delimited(first, nothing),
    delimited(second, Buffer.from(resourceVersion)),
    delimited(0x1a, Buffer.from(continueToken)),
  ]
  if (remaining !== undefined) {
    const count = Buffer.alloc(1 + varintSize(remaining), 0x20)
    writeVarint(count, 1, remaining)
    fields.push(count)
  }
  return delimited(first, Buffer.concat(fields))
}

function delimited(tag: number, content: Buffer): Buffer {
  const field = Buffer.alloc(1 + varintSize(content.length) + content.length, tag)
  content.copy(field, writeVarint(field, 1, content.length))
  return field
}

function varintSize(value: number): number {
  let size = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) size++
  return size
}

/** Answers where it ends. */
function writeVarint(target: Buffer, start: number, value: number): number {
  let at = start
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) target[at++] = (rest & 0x7f) | 0x80
  target[at++] = rest
  return at
}
