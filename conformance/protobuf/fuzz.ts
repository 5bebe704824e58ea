/**
 * Messages with something wrong in them: real ones, mutated by chance that a seed repeats. Reading one either makes of it
 * what kube-apiserver's own decoder does (asked for a share of them), or refuses it by a fault of its own kind; it never
 * does anything else, never takes long, and keeps nothing. AKE_SEED repeats a run.
 */
import { setImmediate as breathe } from 'node:timers/promises'
import { endOfJson } from '../../src/kube/json/wellformed.ts'
import { decodeMessage, encodeMessage, ProtobufFault, readEnvelope, wrap } from '../../src/kube/protobuf/protobuf.ts'
import { openProtobuf } from '../../src/write/protobufbody.ts'
import { Random } from '../apply/random.ts'
import { chooseSeed } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { Judge } from './judge.ts'
import { allKinds, type Kind } from './kinds.ts'
import { Maker } from './objects.ts'

const mutations = 25_000
const mutationsOfAll = 1_000_000
/** One in so many is also shown to the judge: that costs as much as all the others. */
const judgedEvery = 10
/** One in so many has its envelope mutated, too. */
const openedEvery = 5
/** A message is at most some hundred KB here: a thousand times what it should take. */
const decodeMsMax = 2_000
/** What a process may have more at the end than it had after the first part. */
const growthBytesMax = 256 * 1024 * 1024
const faultsShown = 10
const progressEvery = 10_000

export const step: Step = {
  name: 'protobuf-fuzz',
  tier: 'default',
  minutes: 2,
  run: (context) => run(context, mutations),
}
export const longStep: Step = {
  name: 'protobuf-fuzz-long',
  tier: 'all',
  minutes: 15,
  run: (context) => run(context, mutationsOfAll),
}

type Origin = Kind & { readonly raw: Buffer }

async function run({ progress, signal }: StepContext, total: number): Promise<StepResult> {
  const seed = chooseSeed()
  progress(`AKE_SEED=${seed}`)
  const judge = await Judge.start(progress)
  const random = new Random(seed)
  const origins = await originsOf(random)
  const tried = new Tried(judge)
  let settledBytes = 0
  try {
    for (let count = 0; count < total && tried.faults.length < faultsShown; count++) {
      const origin = random.pick(origins)
      const raw = mutated(random, origin.raw, origins)
      const what = `AKE_SEED=${seed}, number ${count}, ${origin.apiVersion} ${origin.kind}`
      if (count % openedEvery === 1) tried.open(what, origin, mutated(random, wrap(origin, raw), origins))
      else await tried.one(what, origin, raw, count % judgedEvery === 0)
      if (count % progressEvery === 0) {
        signal.throwIfAborted()
        await breathe()
        if (count === 2 * progressEvery) settledBytes = process.memoryUsage.rss()
        progress(`${count} of ${total}: ${tried.figures()}`)
      }
    }
  } finally {
    judge.stop()
  }
  const grown = settledBytes === 0 ? 0 : process.memoryUsage.rss() - settledBytes
  if (grown > growthBytesMax) tried.faults.push(`it has grown by ${Math.round(grown / 2 ** 20)} MB`)
  const failed = tried.faults.length
  const notes = [...tried.faults, `AKE_SEED=${seed}: ${tried.figures()}, grown by ${Math.round(grown / 2 ** 20)} MB`]
  return { passed: tried.count - failed, failed, notes }
}

/** Some objects of every kind: whole ones are large, most mutations of them are alike. */
async function originsOf(random: Random): Promise<Origin[]> {
  const origins: Origin[] = []
  for (const kind of await allKinds()) {
    if (kind.kind === 'WatchEvent') continue
    for (const manner of ['some', 'some', 'odd'] as const) {
      const made = new Maker(random.below(1 << 30), manner).object(kind.message, kind, { name: 'fuzzed' })
      origins.push({ ...kind, raw: encodeMessage(kind.message, Buffer.from(JSON.stringify(made))) })
    }
  }
  return origins
}

class Tried {
  count = 0
  readonly faults: string[] = []
  readonly #judge: Judge
  #read = 0
  #judged = 0
  #slowestMs = 0

  constructor(judge: Judge) {
    this.#judge = judge
  }

  figures(): string {
    const refused = this.count - this.#read
    return `${this.count} messages, ${this.#read} read, ${refused} refused, ${this.#judged} judged, the slowest in ${Math.round(this.#slowestMs)} ms`
  }

  async one(what: string, kind: Kind, raw: Buffer, isJudged: boolean): Promise<void> {
    this.count++
    const before = performance.now()
    let json: Buffer | undefined
    let fault = ''
    try {
      const envelope = wrap(kind, raw)
      json = decodeMessage(kind.message, readEnvelope(envelope).raw, kind)
    } catch (error) {
      if (!(error instanceof ProtobufFault)) this.#fails(`${what}: ${(error as Error).stack}`, raw)
      fault = (error as Error).message
    }
    const tookMs = performance.now() - before
    this.#slowestMs = Math.max(this.#slowestMs, tookMs)
    if (tookMs > decodeMsMax && isSlow(kind, raw)) this.#fails(`${what}: it took ${Math.round(tookMs)} ms`, raw)
    if (json !== undefined) {
      this.#read++
      if (endOfJson(json, 0) !== json.length) this.#fails(`${what}: what was read is no JSON`, raw)
      this.#writeAgain(what, kind, json, raw)
    }
    if (isJudged) await this.#compare(what, kind, raw, json, fault)
  }

  /** The body of a request, as it is opened: whatever is wrong with it is told, and nothing is thrown. */
  open(what: string, kind: Kind, body: Buffer): void {
    this.count++
    try {
      const opened = openProtobuf(body, kind)
      if (!('json' in opened)) return
      this.#read++
      if (endOfJson(opened.json, 0) !== opened.json.length) this.#fails(`${what}: what was read is no JSON`, body)
    } catch (error) {
      this.#fails(`${what}: ${(error as Error).stack}`, body)
    }
  }

  /**
   * What could be read can be written. The first time some is lost that JSON cannot say (bytes that are no text, a time that
   * is there and empty); from then on nothing changes any more.
   */
  #writeAgain(what: string, kind: Kind, json: Buffer, raw: Buffer): void {
    const again = (from: Buffer) => decodeMessage(kind.message, encodeMessage(kind.message, from), kind)
    try {
      const once = again(json)
      if (!again(once).equals(once)) this.#fails(`${what}: written and read again it is another`, raw)
    } catch (error) {
      if (!(error instanceof ProtobufFault)) this.#fails(`${what}: ${(error as Error).stack}`, raw)
    }
  }

  async #compare(what: string, kind: Kind, raw: Buffer, json: Buffer | undefined, fault: string): Promise<void> {
    this.#judged++
    const real = await this.#judge.json(wrap(kind, raw))
    if ('fault' in real) {
      // What JSON cannot hold is refused by the server that writes JSON: in the real one that is later.
      if (unprintable.test(real.fault)) return
      if (json !== undefined) this.#fails(`${what}: the real one refuses it: ${real.fault}`, raw)
      else if (fault !== real.fault) {
        this.#fails(`${what}: refused in other words:\n  real ${real.fault}\n  ours ${fault}`, raw)
      }
    } else if (json === undefined) this.#fails(`${what}: we alone refuse it: ${fault}`, raw)
    else if (!Buffer.concat([json, Buffer.from('\n')]).equals(real.bytes)) {
      let at = 0
      while (json[at] === real.bytes[at]) at++
      const part = (bytes: Buffer) => JSON.stringify(bytes.toString('utf8', Math.max(0, at - 40), at + 40))
      this.#fails(`${what}: another reading\n  real ${part(real.bytes)}\n  ours ${part(json)}`, raw)
    }
  }

  #fails(what: string, raw: Buffer): void {
    const shown =
      raw.length > 600 ? `${raw.subarray(0, 600).toString('hex')}… (${raw.length} bytes)` : raw.toString('hex')
    this.faults.push(`${what}\n  ${shown}`)
  }
}

/** Once may be the machine's doing. */
function isSlow(kind: Kind, raw: Buffer): boolean {
  const took = [1, 2, 3].map(() => {
    const before = performance.now()
    try {
      decodeMessage(kind.message, raw, kind)
    } catch (error) {
      if (!(error instanceof ProtobufFault)) throw error
    }
    return performance.now() - before
  })
  return Math.min(...took) > decodeMsMax
}

const unprintable = /error calling MarshalJSON|year outside of range|invalid character/

/** One to three things go wrong. */
function mutated(random: Random, message: Buffer, origins: readonly Origin[]): Buffer {
  let bytes = Buffer.from(message)
  for (let times = random.pick([1, 1, 1, 2, 3]); times > 0; times--) {
    const at = random.below(bytes.length + 1)
    const size = random.below(Math.min(32, bytes.length - at + 1))
    const [before, behind] = [bytes.subarray(0, at), bytes.subarray(at)]
    switch (random.below(14)) {
      case 0:
        bytes = Buffer.from(before)
        break
      case 1:
        if (bytes.length > 0) bytes[at % bytes.length] = (bytes[at % bytes.length] as number) ^ (1 << random.below(8))
        break
      case 2:
        if (bytes.length > 0) bytes[at % bytes.length] = random.pick([0, 1, 0x7f, 0x80, 0xff, random.below(256)])
        break
      case 3:
        bytes = Buffer.concat([before, behind.subarray(size)])
        break
      case 4:
        bytes = Buffer.concat([before, behind.subarray(0, size), behind])
        break
      case 5:
        bytes = Buffer.concat([before, Buffer.from(random.pick(lies), 'hex'), behind])
        break
      case 6: {
        const other = random.pick(origins).raw
        const from = random.below(other.length + 1)
        bytes = Buffer.concat([before, other.subarray(from, from + 1 + random.below(64)), behind])
        break
      }
      case 7:
        bytes = Buffer.concat([before, nested(random), behind])
        break
      case 8: {
        // A field of any number and wire type, with the bytes that follow for its value.
        const tag = (random.below(50) << 3) | random.below(8)
        bytes = Buffer.concat([before, Buffer.from(tag < 128 ? [tag] : [(tag & 0x7f) | 0x80, tag >> 7]), behind])
        break
      }
      case 9:
        bytes = Buffer.concat([bytes, bytes.subarray(at)])
        break
      default: {
        // Inside of a text, where the message stays one.
        const letter = bytes.findIndex((byte, index) => index >= at && byte > 0x60 && byte < 0x7b)
        if (letter >= 0) bytes[letter] = random.pick([0x7a, 0x22, 0x5c, 0x3c, 0x00, 0x0a, 0xc3, 0xff])
      }
    }
    if (bytes.length > bytesMax) bytes = Buffer.from(bytes.subarray(0, bytesMax))
  }
  return bytes
}

const bytesMax = 200_000
/** Varints at their limits, lengths that lie, ends of groups. */
const lies = [
  'ffffffff0f',
  'ffffffffffffffffff01',
  'ffffffffffffffffffff01',
  '8080808080808080808000',
  '0affffffff07',
  '12ffffffffffffffff7f',
  '0b',
  '0c',
  '0b0b0b0b0c0c0c0c',
  'fd01',
  '0d00000000',
  '090000000000000000',
  '00',
  '0a00',
  '1200',
]

/** The same field inside of itself, deeper than any message is. */
function nested(random: Random): Buffer {
  const tag = ((1 + random.below(12)) << 3) | 2
  let inner = Buffer.alloc(0)
  for (let depth = random.pick([3, 50, 2_000]); depth > 0; depth--) {
    const head: number[] = []
    let length = inner.length
    for (; length > 0x7f; length >>= 7) head.push((length & 0x7f) | 0x80)
    inner = Buffer.concat([Buffer.from([tag, ...head, length]), inner])
  }
  return inner
}
