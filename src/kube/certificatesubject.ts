/**
 * What Kubernetes reads of a client certificate's subject: the common name, organizations, and uids, for which it has an object
 * identifier of its own that Node does not tell. For these as much of the certificate (DER) is read as leads there: OpenSSL has
 * parsed all of it when it comes here.
 */

/** As kube-apiserver reads a subject: of several common names the last, every organization. */
export function namesOf({ CN = '', O = [] }: { CN?: string | string[]; O?: string | string[] }): {
  name: string
  organizations: string[]
} {
  return { name: [CN].flat().at(-1) ?? '', organizations: [O].flat() }
}

/** 1.3.6.1.4.1.57683.2 */
const uidType = Buffer.from('2b0601040183c25302', 'hex')
/** UTF8String, PrintableString, TeletexString, IA5String. */
const texts = [0x0c, 0x13, 0x14, 0x16]
const explicitVersion = 0xa0

type Element = { readonly tag: number; readonly content: Buffer; readonly rest: Buffer }

/** Undefined where one of them is no text. */
export function subjectUids(der: Buffer): string[] | undefined {
  const [body] = elements(elements(der)[0]?.content)
  const fields = elements(body?.content)
  // version (if it is told), serial number, algorithm, issuer, validity, subject
  const subject = fields[fields[0]?.tag === explicitVersion ? 5 : 4]
  const uids: string[] = []
  for (const set of elements(subject?.content)) {
    for (const pair of elements(set.content)) {
      const [type, value] = elements(pair.content)
      if (type?.content.equals(uidType) !== true) continue
      if (value === undefined || !texts.includes(value.tag)) return undefined
      uids.push(value.content.toString('utf8'))
    }
  }
  return uids
}

function elements(content: Buffer | undefined): Element[] {
  const found: Element[] = []
  for (let rest = content; rest !== undefined && rest.length > 1; ) {
    const element = elementAt(rest)
    if (element === undefined) break
    found.push(element)
    rest = element.rest
  }
  return found
}

function elementAt(bytes: Buffer): Element | undefined {
  const short = bytes[1] as number
  const lengthBytes = short < 0x80 ? 0 : short & 0x7f
  if (lengthBytes > 4 || bytes.length < 2 + lengthBytes) return undefined
  const length = lengthBytes === 0 ? short : bytes.readUIntBE(2, lengthBytes)
  const start = 2 + lengthBytes
  if (start + length > bytes.length) return undefined
  return {
    tag: bytes[0] as number,
    content: bytes.subarray(start, start + length),
    rest: bytes.subarray(start + length),
  }
}
