import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { LinkFault } from '../../link/frames/bytes.ts'
import {
  decodeRulesQuestion,
  decodeToldRules,
  encodeRulesQuestion,
  encodeToldRules,
  hearMessages,
  type RulesQuestion,
  type ToldRules,
} from './rules.ts'

const name = fc.string({ unit: 'grapheme', maxLength: 40 })
const groups = fc.array(name, { maxLength: 5 })
const rules = fc.uint8Array({ maxLength: 300 }).map((one) => Buffer.from(one))
const meant = fc.constantFrom<RulesQuestion['meant']>('credential', 'node', 'anonymous', 'subject')
const saying = fc.constantFrom<ToldRules['saying']>('none', 'rules', 'standing')
const questions = fc.record({ meant, name, groups }, { noNullPrototype: true })
const tellings = fc.record(
  { saying, current: fc.nat(1), sentence: name, name, groups, rules },
  { noNullPrototype: true },
)

async function taken(bytes: Buffer, pieces: number): Promise<Buffer[]> {
  const size = Math.max(1, Math.ceil(bytes.length / pieces))
  const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )
  const found: Buffer[] = []
  const stream = Readable.from(parts)
  await new Promise<void>((done, fail) => {
    stream.once('end', done)
    hearMessages(stream, { take: (one) => void found.push(one), failed: fail })
  })
  return found
}

test('[L10, L29] questions and what is told are read as they were written, in whatever pieces they come', async () => {
  await fc.assert(
    fc.asyncProperty(
      questions,
      fc.array(tellings, { maxLength: 4 }),
      fc.integer({ min: 1, max: 50 }),
      async (asked, all, pieces) => {
        const [question] = await taken(encodeRulesQuestion(asked), pieces)
        assert.deepEqual(decodeRulesQuestion(question as Buffer), asked)
        const found = await taken(Buffer.concat(all.map(encodeToldRules)), pieces)
        assert.deepEqual(found.map(decodeToldRules), all)
      },
    ),
    { numRuns: 50 },
  )
})

test('[L11, L29] hostile bytes are a message or a fault, and a length that is only claimed is not waited for', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), async (bytes) => {
      for (const decode of [decodeRulesQuestion, decodeToldRules])
        try {
          for (const one of await taken(Buffer.from(bytes), 3)) decode(one)
        } catch (error) {
          assert.ok(error instanceof LinkFault, String(error))
        }
    }),
    { numRuns: 500 },
  )
  await assert.rejects(taken(Buffer.from([0xff, 0xff, 0xff, 0x7f]), 1), LinkFault)
  assert.throws(
    () =>
      encodeToldRules({
        saying: 'rules',
        current: 0,
        sentence: '',
        name: '',
        groups: [],
        rules: Buffer.alloc(300 * 1024),
      }),
    LinkFault,
  )
})

test('[L29] a stream that is silent keeps nothing of what came over it', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const stream = new PassThrough()
  let taken = 0
  hearMessages(stream, { take: () => void taken++, failed: () => assert.fail() })
  // As of a socket, which reads much more at once than a question takes.
  const held = (() => {
    const chunk = Buffer.allocUnsafeSlow(65_536)
    const message = encodeRulesQuestion({ meant: 'node', name: '', groups: [] })
    message.copy(chunk)
    stream.write(chunk.subarray(0, message.length))
    return new WeakRef(chunk.buffer)
  })()
  for (let turns = 0; turns < 5; turns++) {
    await new Promise((done) => setImmediate(done))
    collect()
  }
  assert.equal(taken, 1)
  assert.equal(held.deref(), undefined)
})
