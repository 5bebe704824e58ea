import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstSeed as seed } from '../../base/lives.test-support.ts'
import { seeded } from '../../base/seeded.test-support.ts'
import { ByteReader, ByteWriter, LinkFault } from './bytes.ts'
import { decodeChange, encodeChange, type LinkChange } from './change.ts'
import { changeBytesMax, chooseProtocol, decodeFrame, encodeFrame, frameBytesMax, type LinkFrame } from './frames.ts'
import { count, later, list, record, text } from './layouts.ts'

/** A million are a minute's work; every run does what fits into its two seconds. */
/** The conformance step `link-long` sets more. AKE_SEED repeats a run. */
const hostileFrames = Number(process.env.AKE_FRAMES ?? 100_000)

const number = fc.oneof(fc.nat(300), fc.maxSafeNat())
const words = (maxLength: number) => fc.string({ unit: 'grapheme', maxLength: Math.floor(maxLength / 32) })
const key = words(512)
const name = words(253)
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((found) => Buffer.from(found))
/** Objects as a reader makes them. */
const fields = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(of, { noNullPrototype: true })
const some = <T>(of: fc.Arbitrary<T>) => fc.array(of, { maxLength: 5 })

/** One of each kind: a kind that is added to the layouts and not here does not compile. */
const arbitraries: { readonly [Kind in LinkFrame['kind']]: fc.Arbitrary<Omit<LinkFrame & { kind: Kind }, 'kind'>> } = {
  hello: fields({
    ...{ oldest: number, newest: number, edge: name, release: name, cluster: name, epoch: number, window: number },
    counts: number,
  }),
  welcome: fields({
    ...{ protocol: number, hub: name, release: name, cluster: name, epoch: number, window: number },
    digestKey: bytes(64),
    trusts: number,
    counts: number,
  }),
  refused: fields({
    interest: number,
    reason: fc.constantFrom('other', 'protocol', 'frame', 'limit', 'identity', 'forbidden', 'replaced', 'never'),
    retryAfterMs: number,
    sentence: words(1_024),
  }),
  subscribe: fields({
    interests: some(
      fields({
        ...{ interest: number, name: words(4_096), version: number, partial: number, after: key },
        wish: fc.constantFrom('resume', 'compare', 'anew'),
      }),
    ),
    epoch: number,
  }),
  unsubscribe: fields({ interests: some(number) }),
  accepted: fields({
    interests: some(
      fields({
        interest: number,
        source: number,
        start: fc.constantFrom('replay', 'compare', 'snapshot', 'wait'),
        version: number,
      }),
    ),
  }),
  block: fields({
    ...{
      interest: number,
      version: number,
      after: key,
      size: fc.nat(4 << 20),
      offset: fc.nat(4 << 20),
      piece: bytes(300),
    },
  }),
  complete: fields({ interest: number, version: number, root: number }),
  events: fields({ position: number, events: some(fields({ interest: number, change: bytes(300) })) }),
  acknowledge: fields({ position: number, bulk: number }),
  progress: fields({ marks: some(fields({ source: number, version: number })) }),
  compare: fields({ interest: number, version: number, request: bytes(300) }),
  compared: fields({ interest: number, version: number, answer: bytes(300) }),
  lost: fields({ interest: number, epoch: number, version: number }),
  ping: fields({ number }),
  pong: fields({ number, ageMs: number, stale: some(number) }),
  drain: fields({ withinMs: number, sentence: words(1_024) }),
  terms: fields({ trusts: number, tokenAgeMs: number, serveAgeMs: number }),
  documents: fields({ signs: fc.array(bytes(32), { maxLength: 8 }) }),
  tunnel: fields({ type: fc.integer({ min: 0x80, max: 0xbf }), payload: bytes(300) }),
}
const frames = fc.oneof(
  ...Object.entries(arbitraries).map(([kind, fields]) =>
    (fields as fc.Arbitrary<object>).map((values) => ({ kind, ...values }) as LinkFrame),
  ),
)
const changes: fc.Arbitrary<LinkChange> = fc.oneof(
  fields({ type: fc.constant('remove' as const), key: key.filter(Boolean), version: number }),
  fields({
    ...{ type: fc.constant('put' as const), key: key.filter(Boolean), version: number, base: key, delta: bytes(300) },
  }),
)

test('[L10] every frame and every change is read as it was written', () => {
  fc.assert(
    fc.property(frames, (frame) => assert.deepEqual(decodeFrame(encodeFrame(frame)), frame)),
    { seed },
  )
  fc.assert(
    fc.property(changes, (change) => assert.deepEqual(decodeChange(encodeChange(change, changeBytesMax)), change)),
    { seed },
  )
})

test('[L10] a byte is written wherever it stands, also where the writer has to grow for it', () => {
  for (let before = 0; before < 600; before++) {
    const to = new ByteWriter(1_000)
    to.raw(Buffer.alloc(before))
    to.byte(7)
    assert.equal(to.whole()[before], 7, `behind ${before} bytes`)
  }
})

test('[L11] hostile bytes are a fault or a frame within its limits, and nothing else', () => {
  const random = seeded(seed)
  const samples = fc.sample(frames, { numRuns: 400, seed }).map(encodeFrame)
  let [faults, passed] = [0, 0]
  const { stackTraceLimit } = Error
  // Most of the time would go into traces that no reader sees.
  Error.stackTraceLimit = 0
  for (let at = 0; at < hostileFrames; at++) {
    const bytes = damage(samples[at % samples.length] as Buffer, random)
    try {
      const frame = decodeFrame(bytes)
      if (frame?.kind === 'events') for (const { change } of frame.events) decodeChange(change)
      passed++
    } catch (error) {
      assert.ok(error instanceof LinkFault, `seed ${seed}, frame ${at}, ${bytes.toString('hex')}: ${error}`)
      faults++
    }
  }
  Error.stackTraceLimit = stackTraceLimit
  assert.ok(faults > hostileFrames / 10 && passed > hostileFrames / 100, `${faults} faults, ${passed} frames`)
})

test('[L11] every truncation of a frame is a fault, or says less than the whole', () => {
  for (const frame of fc.sample(frames, { numRuns: 300, seed })) {
    const whole = encodeFrame(frame)
    for (let length = 0; length < whole.length; length++) {
      const cut = attempt(() => decodeFrame(whole.subarray(0, length)))
      // A field that was added later is missing where the frame is of an older release: only WebSocket knows that it is cut.
      if (cut !== 'fault')
        assert.match(
          cut?.kind ?? '',
          /tunnel|hello|welcome|subscribe|complete|pong/,
          `seed ${seed}: ${whole.toString('hex')} to ${length}`,
        )
    }
  }
})

test('[L11] what is claimed is not believed: lengths, counts and common beginnings beyond what came', () => {
  const huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]
  const claims: [what: string, bytes: number[]][] = [
    ['a count of events', [0x09, 1, ...huge]],
    ['a count just within its limit', [0x09, 1, 0x80, 0x08]],
    ['the length of an entry', [0x09, 1, 1, ...huge]],
    ['the length of a change', [0x09, 1, 1, 9, 1, ...huge]],
    ['the length of a text', [0x11, 1, ...huge]],
    ['a common beginning of a first name', [0x04, 1, 4, 1, 2, 0, 5]],
    ['the size of a block', [0x07, 1, 1, 0, 0x81, 0x80, 0x80, 0x02, 0, 0]],
    ['a piece', [0x07, 1, 1, 0, 1, 0, ...huge]],
    ['a number beyond the safe ones', [0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['a number without an end', [0x0f, ...Array.from({ length: 20 }, () => 0xff)]],
    ['a number that is longer than needed', [0x0f, 0x80, 0x00]],
    ['a text that is not UTF-8', [0x11, 1, 2, 0xc3, 0x28]],
    ['nothing at all', []],
  ]
  for (const [what, bytes] of claims)
    assert.throws(() => decodeFrame(Buffer.from(bytes)), LinkFault, `${what} was taken for a frame`)
  assert.throws(() => decodeFrame(Buffer.alloc(frameBytesMax + 1, 0x80)), LinkFault)
  assert.equal(decodeFrame(Buffer.alloc(frameBytesMax, 0x80))?.kind, 'tunnel')
})

test('[L11] names that begin alike stay within the limit of a name, however much they share', () => {
  const plain = { version: 0, wish: 'resume', partial: 0, after: '' } as const
  const long = (more: string) => ({ interest: 1, name: `${'x'.repeat(4_090)}${more}`, ...plain })
  const many = Array.from({ length: 1_024 }, () => long('abcdef'))
  const frame: LinkFrame = { kind: 'subscribe', interests: many, epoch: 0 }
  const encoded = encodeFrame(frame)
  assert.ok(encoded.length < 11_000, `${encoded.length} bytes`)
  assert.deepEqual(decodeFrame(encoded), frame)
  // The second name is made one byte longer than a name may be.
  const two = encodeFrame({ kind: 'subscribe', interests: [long('abcdef'), long('abcdef')], epoch: 0 })
  const tail = two.subarray(two.length - 5)
  assert.deepEqual([...tail], [1, 0x80, 0x20, 0, 0])
  const longer = Buffer.concat([two.subarray(0, two.length - 6), Buffer.from([6, 1, 0x80, 0x20, 1, 0x78, 0])])
  assert.throws(() => decodeFrame(longer), /4097 where at most 4096/)
})

test('[L12] what the other side would refuse is not sent', () => {
  const refused: LinkFrame[] = [
    { kind: 'ping', number: -1 },
    { kind: 'ping', number: 0.5 },
    { kind: 'ping', number: 2 ** 53 },
    { kind: 'drain', withinMs: 1, sentence: 'x'.repeat(1_025) },
    { kind: 'unsubscribe', interests: Array.from({ length: 1_025 }, (_, at) => at) },
    { kind: 'tunnel', type: 0x7f, payload: Buffer.alloc(0) },
    { kind: 'tunnel', type: 0x80, payload: Buffer.alloc(frameBytesMax) },
    { kind: 'block', interest: 1, version: 1, after: '', size: 1, offset: 0, piece: Buffer.alloc(32 * 1024 + 1) },
    {
      kind: 'events',
      position: 3,
      events: Array.from({ length: 3 }, () => ({ interest: 1, change: Buffer.alloc(30_000) })),
    },
  ]
  for (const frame of refused) assert.throws(() => encodeFrame(frame), LinkFault, frame.kind)
  const put = { type: 'put', key: 'a/b', version: 1, base: '', delta: Buffer.alloc(100) } as const
  assert.throws(() => encodeChange(put, 100), LinkFault)
})

test('[L13] a frame of an unknown type is passed over where its release said so, and a fault where it did not', () => {
  for (let type = 0; type < 0x100; type++) {
    const found = attempt(() => decodeFrame(Buffer.from([type, 1, 2, 3])))
    const known = (type >= 0x01 && type <= 0x11) || type === 0x40 || type === 0x50
    if (known) continue
    if (type < 0x40 || type > 0xbf) assert.equal(found, 'fault', `type ${type}`)
    else if (type < 0x80) assert.equal(found, undefined, `type ${type}`)
    else assert.deepEqual(found, { kind: 'tunnel', type, payload: Buffer.from([1, 2, 3]) })
  }
})

test('[L13] a hub of a release that does not say whether it trusts its edges does not', () => {
  const welcome: LinkFrame = {
    ...{ kind: 'welcome', protocol: 1, hub: 'h', release: '1', cluster: 'c', epoch: 1, window: 1 },
    ...{ digestKey: Buffer.of(7), trusts: 1, counts: 0 },
  }
  const bytes = encodeFrame(welcome)
  assert.deepEqual(decodeFrame(bytes), welcome)
  assert.deepEqual(decodeFrame(bytes.subarray(0, -1)), { ...welcome, trusts: 0 })
})

test('[L13] what a later release adds to a frame is passed over, and is its default where an older one is read', () => {
  const added = Buffer.concat([encodeFrame({ kind: 'acknowledge', position: 7, bulk: 9 }), Buffer.from([1, 2, 3])])
  assert.deepEqual(decodeFrame(added), { kind: 'acknowledge', position: 7, bulk: 9 })
  const word: LinkFrame = { kind: 'refused', interest: 1, reason: 'busy', retryAfterMs: 0, sentence: 'later' }
  const unknown = encodeFrame(word)
  unknown[2] = 99
  assert.deepEqual(decodeFrame(unknown), { ...word, reason: 'other' })

  const limits = { entriesMax: 10, bytesMax: 100 }
  const older = record({ position: count, marks: list(record({ source: count }), limits) })
  const mark = record({ source: count, size: later(count, 5) })
  const newer = record({ position: count, marks: list(mark, limits), note: later(text(10), 'none') })
  const write = <T>(layout: { write(to: ByteWriter, value: T): void }, value: T) => {
    const to = new ByteWriter(1_000)
    layout.write(to, value)
    return new ByteReader(to.whole())
  }
  const ofOlder = { position: 1, marks: [{ source: 2 }, { source: 300 }] }
  const ofNewer = {
    position: 1,
    marks: [
      { source: 2, size: 8 },
      { source: 300, size: 9 },
    ],
    note: 'new',
  }
  assert.deepEqual(older.read(write(newer, ofNewer)), ofOlder)
  assert.deepEqual(newer.read(write(older, ofOlder)), {
    position: 1,
    marks: [
      { source: 2, size: 5 },
      { source: 300, size: 5 },
    ],
    note: 'none',
  })
})

test('[L13] a hello is answered with the newest protocol that both speak, or none', () => {
  const cases: [oldest: number, newest: number, chosen: number | undefined][] = [
    [1, 1, 1],
    [1, 3, 1],
    [0, 5, 1],
    [2, 3, undefined],
    [0, 0, undefined],
    [3, 1, undefined],
  ]
  for (const [oldest, newest, chosen] of cases) assert.equal(chooseProtocol({ oldest, newest }), chosen)
})

test('[L13] the bytes of protocol 1 stay what they are', () => {
  const hex = (frame: LinkFrame) => encodeFrame(frame).toString('hex')
  const put: LinkChange = { type: 'put', key: 'a/b', version: 300, base: 'a/b', delta: Buffer.from('d') }
  assert.equal(encodeChange(put, 100).toString('hex'), '0203612f62ac0264')
  assert.equal(encodeChange({ ...put, base: 'a/c' }, 100).toString('hex'), '0303612f62ac0203612f6364')
  assert.equal(encodeChange({ ...put, base: '' }, 100).toString('hex'), '0103612f62ac0264')
  assert.equal(encodeChange({ type: 'remove', key: 'a/b', version: 1 }, 100).toString('hex'), '0003612f6201')
  const change = Buffer.from([7])
  assert.equal(hex({ kind: 'events', position: 5, events: [{ interest: 4, change }] }), '09050103040107')
  const plain = { version: 200, wish: 'resume', partial: 0, after: '' } as const
  const interests = ['v1/pods@a', 'v1/pods@b'].map((name, at) => ({ interest: at + 1, name, ...plain }))
  const subscribe: LinkFrame = { kind: 'subscribe', interests, epoch: 0 }
  assert.equal(hex(subscribe), '04020e01000976312f706f64734061c8010602080162c801')
  // What was added since is written only where it says something.
  const resumed: LinkFrame = { ...subscribe, interests: [{ ...interests[0]!, partial: 7, after: 'a/b' }], epoch: 2 }
  assert.equal(hex(resumed), '04011401000976312f706f64734061c801000703612f6202')
  assert.equal(
    hex({ kind: 'hello', oldest: 1, newest: 2, edge: 'n', release: 'r', cluster: 'c', epoch: 3, window: 4, counts: 0 }),
    '010102016e017201630304',
  )
  assert.equal(
    hex({ kind: 'hello', oldest: 1, newest: 2, edge: 'n', release: 'r', cluster: 'c', epoch: 3, window: 4, counts: 1 }),
    '010102016e01720163030401',
  )
  assert.equal(hex({ kind: 'terms', trusts: 1, tokenAgeMs: 300, serveAgeMs: 0 }), '4001ac0200')
  assert.equal(hex({ kind: 'refused', interest: 1, reason: 'never', retryAfterMs: 0, sentence: '' }), '03010a0000')
})

function attempt<T>(run: () => T): T | 'fault' {
  try {
    return run()
  } catch (error) {
    assert.ok(error instanceof LinkFault, `seed ${seed}: ${error}`)
    return 'fault'
  }
}

/** A frame cut, with bits turned, repeated in itself, with a huge number put in; or random bytes. */
function damage(frame: Buffer, random: (below: number) => number): Buffer {
  const how = random(5)
  if (how === 0) return frame.subarray(0, random(frame.length + 1))
  const bytes = Buffer.from(frame)
  const at = random(bytes.length)
  if (how === 1) {
    for (let turned = random(4); turned >= 0; turned--) {
      const place = random(bytes.length)
      bytes[place] = (bytes[place] as number) ^ (1 << random(8))
    }
    return bytes
  }
  if (how === 2) return Buffer.concat([bytes, bytes.subarray(at)])
  if (how === 3) {
    for (let place = at; place < Math.min(bytes.length, at + 1 + random(8)); place++) bytes[place] = 0xff
    return bytes
  }
  for (let place = 0; place < bytes.length; place++) bytes[place] = random(256)
  // Half of them of a known type: others end at their first byte.
  if (random(2) === 0 && bytes.length > 0) bytes[0] = 1 + random(17)
  return bytes
}
