/**
 * A body in protobuf as JSON: its envelope is opened, and the message in it is read as the kind that the envelope names, or
 * the expected one where it names none. What is wrong with it is told in the words of the real decoder.
 */
import { decodeMessage, messageOf, ProtobufFault } from '../kube/protobuf/protobuf.ts'

type TypeMeta = { readonly apiVersion: string; readonly kind: string }

export type Opened =
  | { readonly json: Buffer }
  /** `type`: what it claims to be, where that could still be read. */
  | { readonly fault: string; readonly type?: TypeMeta }

const magic = Buffer.from('k8s\0')

/** `anyVersion`: the kind is the same in whatever group and version it is said to be. */
export function openProtobuf(body: Buffer, expected: TypeMeta, { anyVersion = false } = {}): Opened {
  try {
    const { raw, ...claimed } = readEnvelope(body)
    const type = withDefaults(claimed, expected)
    const found = anyVersion && type.kind === expected.kind ? expected : type
    const message = messageOf(found.apiVersion, found.kind)
    if (message === undefined) return { fault: unregistered(type), type }
    return decoded(() => decodeMessage(message, raw, type), type)
  } catch (error) {
    if (error instanceof ProtobufFault) return { fault: error.message }
    throw error
  }
}

/** The real server's words for a kind that it does not know, and the place they come from. */
export function unregistered({ apiVersion, kind }: TypeMeta): string {
  return `no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:111"`
}

function decoded(decode: () => Buffer, type: TypeMeta): Opened {
  try {
    return { json: decode() }
  } catch (error) {
    if (error instanceof ProtobufFault) return { fault: error.message, type }
    throw error
  }
}

/** A version with more than one slash counts as none; a kind of no version is of the expected one. */
function withDefaults({ apiVersion, kind }: TypeMeta, expected: TypeMeta): TypeMeta {
  const isVersion = apiVersion.split('/').length <= 2 && !apiVersion.endsWith('/') && apiVersion !== ''
  return { apiVersion: isVersion ? apiVersion : expected.apiVersion, kind: kind === '' ? expected.kind : kind }
}

function readEnvelope(body: Buffer): TypeMeta & { readonly raw: Buffer } {
  if (body.length === 0) throw new ProtobufFault('empty data')
  if (!body.subarray(0, magic.length).equals(magic)) {
    const prefix = [...magic].join(' ')
    throw new ProtobufFault(`provided data does not appear to be a protobuf message, expected prefix [${prefix}]`)
  }
  if (body.length === magic.length) throw new ProtobufFault('empty body')
  const type = { apiVersion: '', kind: '' }
  let raw = body.subarray(0, 0)
  eachField(
    body.subarray(magic.length),
    'Unknown',
    ['TypeMeta', 'Raw', 'ContentEncoding', 'ContentType'],
    (at, value) => {
      if (at === 2) raw = value
      if (at !== 1) return
      eachField(value, 'TypeMeta', ['APIVersion', 'Kind'], (inner, text) => {
        if (inner === 1) type.apiVersion = text.toString('utf8')
        else type.kind = text.toString('utf8')
      })
    },
  )
  return { ...type, raw }
}

/** The fields of a message all of whose own are bytes: `names` by number, from 1. Others are skipped. */
function eachField(
  message: Buffer,
  name: string,
  names: readonly string[],
  visit: (field: number, value: Buffer) => void,
): void {
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 64n; shift += 7n) {
      if (at >= message.length) throw cut()
      const byte = message[at++] as number
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new ProtobufFault('proto: integer overflow')
  }
  const skip = (length: number): Buffer => {
    if (length > message.length - at) throw cut()
    at += length
    return message.subarray(at - length, at)
  }
  const bytes = (): Buffer => {
    // Go counts and adds in 64 bits with a sign.
    const length = BigInt.asIntN(64, varint())
    if (length < 0n || BigInt.asIntN(64, BigInt(at) + length) < 0n) {
      throw new ProtobufFault('proto: negative length found during unmarshaling')
    }
    return skip(Number(length))
  }
  while (at < message.length) {
    const key = varint()
    const wire = Number(key & 7n)
    const field = Number(BigInt.asIntN(32, key >> 3n))
    if (wire === 4) throw new ProtobufFault(`proto: ${name}: wiretype end group for non-group`)
    if (field <= 0) throw new ProtobufFault(`proto: ${name}: illegal tag ${field} (wire type ${key})`)
    if (field <= names.length) {
      if (wire !== 2) throw new ProtobufFault(`proto: wrong wireType = ${wire} for field ${names[field - 1]}`)
      visit(field, bytes())
    } else if (wire === 0) varint()
    else if (wire === 1) skip(8)
    else if (wire === 2) bytes()
    else if (wire === 5) skip(4)
    // Groups are of a time before Kubernetes; Go would look for their end.
    else throw new ProtobufFault(wire === 3 ? 'unexpected EOF' : `proto: illegal wireType ${wire}`)
  }
}

function cut(): ProtobufFault {
  return new ProtobufFault('unexpected EOF')
}
