/** Objects that are made for one answer and never stored, in protobuf: a Status, a review, discovery. */
import { fromPlain, printJson } from '../../../kube/json/json.ts'
import { Enveloping, type TypeMeta } from '../../../kube/protobuf/enveloping.ts'
import { encodeMessage, messageOf, wrap } from '../../../kube/protobuf/protobuf.ts'
import { internalError, type Status } from '../../../kube/status.ts'

export const statusType: TypeMeta = { apiVersion: 'v1', kind: 'Status' }

export function inProtobuf(type: TypeMeta, json: Buffer): Buffer {
  return wrap(type, encoded(type, json))
}

/** The event that ends a watch. */
export function protobufErrorFrame(status: Status): Buffer {
  const json = Buffer.from(printStatus(status))
  return new Enveloping(statusType).frame('ERROR', encoded(statusType, json))
}

/** As Go writes it, `<` and the like escaped: messages quote what was asked. */
export function printStatus(status: Status): string {
  return printJson(fromPlain(status))
}

function encoded({ apiVersion, kind }: TypeMeta, json: Buffer): Buffer {
  // The oldest documents of discovery name no version.
  const message = messageOf(apiVersion === '' ? 'v1' : apiVersion, kind)
  if (message === undefined) throw internalError(`${kind} has no protobuf form`)
  return encodeMessage(message, json)
}
