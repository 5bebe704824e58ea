/**
 * Kubernetes' protobuf: the envelope every message travels in, and the two ways between a message and JSON bytes.
 *
 * What messages there are is read from facts (facts.ts, messages.txt) when protobuf is first asked for. Both ways go over
 * their input once and note where each value stands in frames (gather.ts over JSON, collect.ts over messages), because
 * neither form has its fields in the order of the other; then the output is written into one growing buffer (encode.ts with
 * writer.ts, decode.ts with output.ts). What stands around messages is written by enveloping.ts. No object is built. Types
 * whose JSON is of their own making are in time.ts, quantity.ts and ownforms.ts. What is wrong with a message is told in the
 * words of kube-apiserver (inspect.ts). peek.ts reads a few facts of a message that passes through.
 */
import { createRequire } from 'node:module'
import type { decodeMessage as Decode } from './decode.ts'
import type { encodeMessage as Encode } from './encode.ts'
import { Enveloping, magic, type TypeMeta } from './enveloping.ts'
import type { Message } from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { WireReader } from './wire.ts'

export type { TypeMeta } from './enveloping.ts'
export { type Message, messageOf } from './facts.ts'
export { ProtobufFault } from './fault.ts'

const require = createRequire(import.meta.url)
let encode: typeof Encode | undefined
let decode: typeof Decode | undefined

/**
 * The two ways are loaded with the first message that takes them: a process whose clients speak no protobuf has half a megabyte less to hold. At
 * once and not by a promise, since no step on the way of an object to its reader waits for anything.
 */
export function encodeMessage(message: Message, json: Buffer): Buffer {
  encode ??= (require('./encode.ts') as { encodeMessage: typeof Encode }).encodeMessage
  return encode(message, json)
}

export function decodeMessage(message: Message, raw: Buffer, type?: TypeMeta): Buffer {
  decode ??= (require('./decode.ts') as { decodeMessage: typeof Decode }).decodeMessage
  return decode(message, raw, type)
}

const mediaType = 'application/vnd.kubernetes.protobuf'

export function isProtobuf(contentType: string | undefined): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === mediaType
}

/** Puts a bare message into its envelope. */
export function wrap(type: TypeMeta, raw: Buffer): Buffer {
  return Buffer.concat(new Enveloping(type).pieces(raw))
}

export type Envelope = {
  /** '' where it does not say. */
  readonly apiVersion: string
  readonly kind: string
  /** The object itself, a view. */
  readonly raw: Buffer
}

/** What it says of an encoding or another content type inside is passed over, as kube-apiserver does. */
export function readEnvelope(bytes: Buffer): Envelope {
  if (bytes.length === 0) throw new ProtobufFault('empty data')
  if (!bytes.subarray(0, magic.length).equals(magic)) {
    const prefix = magic.join(' ')
    throw new ProtobufFault(`provided data does not appear to be a protobuf message, expected prefix [${prefix}]`)
  }
  if (bytes.length === magic.length) throw new ProtobufFault('empty body')
  const wire = new WireReader()
  wire.bytes = bytes
  wire.at = magic.length
  const type = { apiVersion: '', kind: '' }
  let raw = bytes.subarray(0, 0)
  eachField(wire, bytes.length, { name: 'Unknown', fields: unknownFields }, (number, end) => {
    if (number === 1) readType(wire, end, type)
    else if (number === 2) raw = bytes.subarray(wire.at, end)
  })
  return { ...type, raw }
}

const unknownFields = ['TypeMeta', 'Raw', 'ContentEncoding', 'ContentType']
const typeFields = ['APIVersion', 'Kind']

function readType(wire: WireReader, end: number, type: { apiVersion: string; kind: string }): void {
  eachField(wire, end, { name: 'TypeMeta', fields: typeFields }, (number, valueEnd) => {
    const text = wire.bytes.toString('utf8', wire.at, valueEnd)
    if (number === 1) type.apiVersion = text
    else type.kind = text
  })
}

type Known = { readonly name: string; readonly fields: readonly string[] }

/** Of a message whose fields all have a length; their names are by number, from 1. */
function eachField(
  wire: WireReader,
  end: number,
  { name, fields }: Known,
  visit: (number: number, end: number) => void,
): void {
  while (wire.at < end) {
    const before = wire.at
    const number = wire.tag(end, name)
    const field = fields[number - 1]
    if (field === undefined) wire.skip(before, end)
    else {
      wire.expect(2, field)
      const valueEnd = wire.length(end)
      visit(number, valueEnd)
      wire.at = valueEnd
    }
  }
}
