/**
 * What a caller may do, told by a hub as a stream of a link: an edge opens one for each caller that it has seen, and as long as it is open
 * hears the rules that apply to that caller, whole each time they change. Which caller is meant goes beside the stream, as with
 * requests: the credential of the caller; or it is the link's own node, a client without a credential, or a subject that this
 * node's kubelet has asked the API server about over this link.
 */
import type { Readable } from 'node:stream'
import { ByteReader, ByteWriter, LinkFault } from '../../link/frames/bytes.ts'
import { bytes, count, type Layout, list, oneOf, record, text, type ValueOf } from '../../link/frames/layouts.ts'

export const rulesPurpose = 'rules'

const nameBytesMax = 1_024
const groupsMax = 256
/** Of what a subject, or what is told of one, has besides rules. */
const headBytesMax = 64 * 1024
/** Of the rules of one caller as they travel, packed: what `subjectRulesBytesMax` becomes at worst. */
const packedBytesMax = 260 * 1024

const name = text(nameBytesMax)
const groups = list(name, { entriesMax: groupsMax, bytesMax: nameBytesMax + 2 })

/** A word that an older hub does not know is a credential, and there is none. */
const meant = oneOf(['credential', 'node', 'anonymous', 'subject'], 'credential')

const question = record({ meant, name, groups })

/**
 * `rules`: those of this caller, packed (raw deflate); `current`: the hub hears of their changes now. `none`: they are not told, for the reason
 * in the sentence. An older edge takes what it does not know for that.
 */
const saying = oneOf(['none', 'rules', 'standing'], 'none')

const told = record({
  ...{ saying, current: count, sentence: text(nameBytesMax), name, groups, rules: bytes(packedBytesMax) },
})

export type RulesQuestion = ValueOf<typeof question>
export type ToldRules = ValueOf<typeof told>

export const encodeRulesQuestion = (asked: RulesQuestion): Buffer => encode(question, asked, headBytesMax)
export const decodeRulesQuestion = (from: Buffer): RulesQuestion => question.read(new ByteReader(from))
export const encodeToldRules = (one: ToldRules): Buffer => encode(told, one, headBytesMax + packedBytesMax)
export const decodeToldRules = (from: Buffer): ToldRules => told.read(new ByteReader(from))

/** Behind its length. */
function encode<Value>(layout: Layout<Value>, value: Value, bytesMax: number): Buffer {
  const to = new ByteWriter(bytesMax)
  to.sized(() => layout.write(to, value))
  return to.whole()
}

/**
 * Hands on each message without its length, as they come. `failed` hears of one that is too long (`LinkFault`), of what `take` throws, and of a stream that
 * breaks off; nothing more is taken then. Not an iterator: such a stream is silent for weeks, and a function that waits for its next bytes
 * would keep the last ones, with the whole chunk of which they are a part.
 */
export function hearMessages(
  stream: Readable,
  { take, failed }: { readonly take: (bytes: Buffer) => void; readonly failed: (error: unknown) => void },
): void {
  let come: Buffer = nothing
  let isOver = false
  const fail = (error: unknown) => {
    if (isOver) return
    isOver = true
    come = nothing
    failed(error)
  }
  stream.on('error', fail)
  stream.on('data', (chunk: Buffer) => {
    if (isOver) return
    try {
      come = come.length === 0 ? chunk : Buffer.concat([come, chunk])
      for (let next = messageIn(come); next !== undefined && !isOver; next = messageIn(come)) {
        come = next.end === come.length ? nothing : come.subarray(next.end)
        take(next.bytes)
      }
    } catch (error) {
      fail(error)
    }
  })
}

const nothing = Buffer.alloc(0)

function messageIn(come: Buffer): { readonly bytes: Buffer; readonly end: number } | undefined {
  let [length, scale] = [0, 1]
  for (let at = 0; at < come.length; at++, scale *= 0x80) {
    const byte = come[at] as number
    length += (byte & 0x7f) * scale
    if (at > 3 || length > headBytesMax + packedBytesMax) throw new LinkFault('a message about rules that is too long')
    if (byte >= 0x80) continue
    const end = at + 1 + length
    return end <= come.length ? { bytes: come.subarray(at + 1, end), end } : undefined
  }
  return undefined
}
