/**
 * A body in protobuf as JSON: its envelope is opened, and the message in it is read as the kind that the envelope names, or
 * the expected one where it names none. What is wrong with it is told in the words of the real decoder.
 */
import { decodeMessage, messageOf, ProtobufFault, readEnvelope, type TypeMeta } from '../kube/protobuf/protobuf.ts'

export type OpenedBody =
  | { readonly json: Buffer }
  /** `type`: what it claims to be, where that could still be read. */
  | { readonly fault: string; readonly type?: TypeMeta }

/** `anyVersion`: the kind is the same in whatever group and version it is said to be. */
export function openProtobuf(body: Buffer, expected: TypeMeta, { anyVersion = false } = {}): OpenedBody {
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

function decoded(decode: () => Buffer, type: TypeMeta): OpenedBody {
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
