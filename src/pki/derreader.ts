/** A reader for DER as far as requests for certificates need it: strict, so that whatever is spelled in another way is none. */

/** Not DER, or not what was expected. */
export class DerFault extends Error {}

type DerElement = {
  readonly tag: number
  readonly content: Buffer
  /** With tag and length, as it is signed. */
  readonly whole: Buffer
}

export const derTags = {
  ...{ integer: 0x02, bitString: 0x03, oid: 0x06, utf8: 0x0c, printable: 0x13, sequence: 0x30, set: 0x31 },
  /** `[0]`, constructed. */
  first: 0xa0,
}

/** All elements of `bytes`, one behind the other. Throws `DerFault`. */
export function elementsOf(bytes: Buffer): readonly DerElement[] {
  const found: DerElement[] = []
  for (let at = 0; at < bytes.length; ) {
    const element = elementAt(bytes, at)
    found.push(element)
    at += element.whole.length
  }
  return found
}

/** The elements within one of this tag. */
export function within(element: DerElement | undefined, tag: number): readonly DerElement[] {
  return elementsOf(contentOf(element, tag))
}

export function contentOf(element: DerElement | undefined, tag: number): Buffer {
  if (element?.tag !== tag) throw new DerFault(`no element of tag ${tag}`)
  return element.content
}

function elementAt(bytes: Buffer, at: number): DerElement {
  const [tag, first] = [bytes[at], bytes[at + 1]]
  if (tag === undefined || first === undefined) throw new DerFault('it ends early')
  // Tags of several bytes are of nothing that is read here.
  if ((tag & 0x1f) === 0x1f) throw new DerFault('a tag of several bytes')
  const digits = first & 0x80 ? first & 0x7f : 0
  // Two bytes of length are 64 KiB, far above what is read here; none at all is a length that is not told.
  if (digits > 2 || first === 0x80) throw new DerFault('a length that is none')
  const head = 2 + digits
  if (at + head > bytes.length) throw new DerFault('it ends early')
  const length = digits === 0 ? first : bytes.readUIntBE(at + 2, digits)
  const isShortest = digits === 0 || (length >= 0x80 && (digits === 1 || length > 0xff))
  if (!isShortest) throw new DerFault('a length that is not in its shortest form')
  const end = at + head + length
  if (end > bytes.length) throw new DerFault('it ends early')
  return { tag, content: bytes.subarray(at + head, end), whole: bytes.subarray(at, end) }
}
