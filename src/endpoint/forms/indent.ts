/**
 * Compact JSON spread over lines for human eyes, as Go's json.Indent does; numbers and strings keep their spelling. It is
 * made piece by piece: a text in which much lies deep grows a thousandfold.
 */

const quote = 0x22
const backslash = 0x5c
const lineEnd = 0x0a
const space = 0x20
/** What is made at once. */
const pieceBytes = 32 * 1024
/** The longest indentation: nothing that is stored or served has more than 10,000 levels (kube/json/wellformed). */
const marginBytesMax = 2 * 10_000
/** What one byte can become: itself, a line's end and an indentation. */
const growthMax = marginBytesMax + 2

/** The text may be cut anywhere; the newline that may end it is left out. */
export function* indented(compact: Iterable<Buffer>): Generator<Buffer, void, void> {
  let made = Buffer.allocUnsafeSlow(pieceBytes + growthMax)
  let size = 0
  let depth = 0
  let isInString = false
  let isEscaped = false
  // An object or a list was just opened: it may be empty.
  let isOpening = false
  const breakLine = () => {
    made[size++] = lineEnd
    const end = size + Math.min(2 * depth, marginBytesMax)
    if (end - size > 64) made.fill(space, size, end)
    else for (let at = size; at < end; at++) made[at] = space
    size = end
  }
  for (const bytes of compact) {
    for (let at = 0; at < bytes.length; at++) {
      if (size >= pieceBytes) {
        yield made.subarray(0, size)
        made = Buffer.allocUnsafeSlow(pieceBytes + growthMax)
        size = 0
      }
      const byte = bytes[at] as number
      if (isInString) {
        made[size++] = byte
        if (isEscaped) isEscaped = false
        else if (byte === backslash) isEscaped = true
        else if (byte === quote) isInString = false
        continue
      }
      const isClosing = byte === 0x7d || byte === 0x5d
      if (isClosing && !isOpening) {
        depth--
        breakLine()
      } else if (isOpening && !isClosing) {
        depth++
        breakLine()
      }
      isOpening = false
      if (byte === lineEnd) continue
      made[size++] = byte
      if (byte === quote) isInString = true
      else if (byte === 0x7b || byte === 0x5b) isOpening = true
      else if (byte === 0x2c) breakLine()
      else if (byte === 0x3a) made[size++] = space
    }
  }
  yield made.subarray(0, size)
}

export function indent(bytes: Buffer): Buffer {
  return Buffer.concat([...indented([bytes])])
}
