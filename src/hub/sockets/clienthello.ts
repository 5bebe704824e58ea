/**
 * What a connection asks for before any cryptography: whether its ClientHello (RFC 8446, 4.1.2) shows a ticket. It may show one
 * that is worth nothing, so this decides only which connection waits in which line.
 */

export type HelloKind =
  /** Not all of it is there. */
  | 'part'
  | 'full'
  | 'resuming'
  /** No TLS. */
  | 'other'

const recordHead = 5
const recordBytesMax = 16 * 1024
const handshakeRecord = 22
const clientHello = 1
const preSharedKey = 41

export function helloKind(bytes: Buffer): HelloKind {
  if (bytes.length > 0 && bytes[0] !== handshakeRecord) return 'other'
  if (bytes.length < recordHead) return 'part'
  const length = bytes.readUInt16BE(3)
  if (length === 0 || length > recordBytesMax) return 'other'
  if (bytes.length < recordHead + length) return 'part'
  const hello = bytes.subarray(recordHead, recordHead + length)
  return hello[0] === clientHello ? (showsTicket(hello) ? 'resuming' : 'full') : 'other'
}

/** Where lengths lead beyond the end it is OpenSSL's to refuse. */
function showsTicket(hello: Buffer): boolean {
  let at = 4 + 2 + 32 // head, version, random
  at += 1 + (hello[at] ?? 0) // session id
  at += 2 + (at + 2 <= hello.length ? hello.readUInt16BE(at) : 0) // cipher suites
  at += 1 + (hello[at] ?? 0) // compression
  at += 2 // length of the extensions
  while (at + 4 <= hello.length) {
    if (hello.readUInt16BE(at) === preSharedKey) return true
    at += 4 + hello.readUInt16BE(at + 2)
  }
  return false
}
