/** What is wrong with a message, in the words of kube-apiserver where its clients see them. */

/** The bytes are no message of the form expected, or the object has no such form. */
export class ProtobufFault extends Error {}

export const unexpectedEnd = (): ProtobufFault => new ProtobufFault('unexpected EOF')
export const overflow = (): ProtobufFault => new ProtobufFault('proto: integer overflow')
export const negativeLength = (): ProtobufFault => new ProtobufFault('proto: negative length found during unmarshaling')
