/** Compact JSON spread over lines for human eyes, as Go's json.Indent does; numbers and strings keep their spelling. */

const quote = 0x22
const backslash = 0x5c

export function indent(bytes: Buffer): Buffer {
  const parts: string[] = []
  let depth = 0
  let copied = 0
  const flush = (upTo: number) => {
    if (upTo > copied) parts.push(bytes.toString('utf8', copied, upTo))
  }
  const newline = () => parts.push(`\n${'  '.repeat(depth)}`)
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte === quote) {
      at = stringEnd(bytes, at)
    } else if (byte === 0x7b || byte === 0x5b) {
      flush(at + 1)
      const next = bytes[at + 1]
      if (next === 0x7d || next === 0x5d) {
        parts.push(String.fromCharCode(next))
        at++
      } else {
        depth++
        newline()
      }
      copied = at + 1
    } else if (byte === 0x7d || byte === 0x5d) {
      flush(at)
      depth--
      newline()
      copied = at
    } else if (byte === 0x2c) {
      flush(at + 1)
      newline()
      copied = at + 1
    } else if (byte === 0x3a) {
      flush(at + 1)
      parts.push(' ')
      copied = at + 1
    }
  }
  flush(bytes.length)
  return Buffer.from(parts.join(''))
}

function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}
