import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LinkFault } from '../frames/bytes.ts'
import { comparisonBytesMax } from '../frames/frames.ts'
import { answerComparison, readDifferingChildren, readGone } from './answer.ts'
import { type DigestEntry, DigestTree } from './digest.ts'
import { encodeRequest } from './messages.ts'
import { DigestWalk } from './walk.ts'

const secret = Buffer.from('the secret of one hub')
const seed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 2 ** 31))

const entries = (count: number): DigestEntry[] =>
  Array.from({ length: count }, (_, at) => ({ key: `space-${at % 7}/object-${at}`, uid: `u-${at}`, version: at + 1 }))

const treeOf = (all: Iterable<DigestEntry>, of = secret): DigestTree => {
  const tree = new DigestTree(of)
  for (const entry of all) tree.put(entry)
  return tree
}

/** The whole conversation: what the hub sends, what the edge forgets, and what that cost. */
function compare(edge: DigestTree, hub: DigestTree) {
  const walk = new DigestWalk(edge)
  const differing: string[] = []
  let [bytes, rounds] = [0, 0]
  for (let request = walk.next(); request !== undefined; rounds++) {
    assert.ok(rounds < 1_000, `seed ${seed}: it does not end`)
    assert.ok(request.length <= comparisonBytesMax)
    const answered = answerComparison(hub, request)
    assert.ok(answered.answer.length <= comparisonBytesMax)
    bytes += request.length + answered.answer.length
    differing.push(...answered.differing)
    request = walk.next(answered.answer)
  }
  return { differing, gone: walk.gone, bytes, rounds }
}

const change = fc.record(
  { at: fc.nat(60), uid: fc.nat(1), version: fc.nat(3), removed: fc.boolean() },
  { noNullPrototype: true },
)

test('[L15] a digest follows every change and depends on nothing but what is held at the end', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
      const tree = new DigestTree(secret)
      const model = new Map<string, DigestEntry>()
      for (const { at, uid, version, removed } of changes) {
        const entry = { key: `a/${at}`, uid: `u${uid}`, version }
        if (removed) {
          tree.remove(entry.key)
          model.delete(entry.key)
        } else {
          tree.put(entry)
          model.set(entry.key, entry)
        }
      }
      const again = treeOf([...model.values()].reverse())
      assert.deepEqual([tree.size, tree.root], [model.size, again.root])
      assert.deepEqual([...tree.children(0, 0, 5)], [...again.children(0, 0, 5)])
      assert.deepEqual([...tree.entries(0, 0)].map(({ key }) => key).sort(), [...model.keys()].sort())
    }),
    { seed },
  )
})

test('[L15] key, uid, version and content each count, and so does where one ends and the next begins', () => {
  const one = { key: 'a/b', uid: 'u', version: 12 }
  const others = [
    { ...one, key: 'a/c' },
    { ...one, uid: 'v' },
    { ...one, version: 13 },
    { ...one, content: 7 },
    { key: '2 a/b', uid: 'u', version: 1 },
    { key: '2a/b', uid: 'u', version: 1 },
    { key: 'a/b', uid: 'u1', version: 2 },
    { key: 'b', uid: 'u', version: 12 },
  ]
  const roots = [one, ...others].map((entry) => treeOf([entry]).root)
  assert.equal(new Set(roots).size, roots.length)
  assert.notEqual(treeOf([one], Buffer.from('another secret')).root, roots[0])
  assert.equal(new DigestTree(secret).root, 0)
})

test('[L15] a walk finds exactly the keys that differ, whichever they are and however many', () => {
  const lives = fc.tuple(fc.constantFrom(0, 1, 9, 40, 300, 3_000), fc.array(fc.tuple(fc.nat(), fc.nat(3))))
  fc.assert(
    fc.property(lives, ([count, changes]) => {
      const all = entries(count)
      const [edge, hub] = [new Map(all.map((one) => [one.key, one])), new Map(all.map((one) => [one.key, one]))]
      for (const [at, what] of changes) {
        const { key } = all[at % Math.max(1, count)] ?? { key: 'new/one' }
        if (what === 0) edge.delete(key)
        else if (what === 1) hub.delete(key)
        else
          hub.set(what === 2 ? key : `${key}-${at}`, { key: what === 2 ? key : `${key}-${at}`, uid: 'n', version: at })
      }
      const [edgeTree, hubTree] = [treeOf(edge.values()), treeOf(hub.values())]
      const { differing, gone } = compare(edgeTree, hubTree)
      const expected = [...hub.values()].filter((one) => edge.get(one.key) !== one).map(({ key }) => key)
      assert.deepEqual([...differing].sort(), expected.sort())
      assert.deepEqual([...gone].sort(), [...edge.keys()].filter((key) => !hub.has(key)).sort())
      for (const key of differing) edgeTree.put(hub.get(key) as DigestEntry)
      for (const key of gone) edgeTree.remove(key)
      assert.equal(edgeTree.root, hubTree.root)
    }),
    { seed, numRuns: 60 },
  )
})

test('[L15] what a comparison costs grows with what differs', () => {
  const [count, changed] = [5_000, 50]
  const all = entries(count)
  const edge = treeOf(all)
  const hubWith = (differing: number) => {
    const step = count / differing
    return treeOf(all.map((one, at) => (at % step === 0 ? { ...one, version: one.version + 10_000 } : one)))
  }
  const [one, some, everything] = [1, changed, count].map((differing) => compare(edge, hubWith(differing)))
  assert.ok(one!.bytes < 1_500 && one!.rounds === 3, `one of them: ${one!.bytes} bytes, ${one!.rounds} rounds`)
  assert.ok(some!.bytes < 6_000 && some!.rounds === 3, `1 %: ${some!.bytes} bytes, ${some!.rounds} rounds`)
  assert.ok(everything!.bytes < 20 * count, `all: ${everything!.bytes} bytes`)
  assert.equal(everything!.differing.length, count)
  const [empty, full] = [compare(new DigestTree(secret), edge), compare(edge, new DigestTree(secret))]
  assert.deepEqual([empty.rounds, empty.bytes < 20, empty.differing.length], [1, true, count])
  assert.equal(full.gone.length, count)
})

test('[L11] a hostile request is a fault or an answer within its limits', () => {
  const tree = treeOf(entries(2_000))
  const sums = Array.from({ length: 256 }, (_, at) => at)
  const samples = [
    encodeRequest({ form: 'children', bits: 0, fan: 8, nodes: [{ prefix: 0, sums }] }),
    encodeRequest({
      form: 'entries',
      bits: 8,
      nodes: [1, 2, 200].map((prefix) => ({ prefix, entries: [{ position: prefix * 2 ** 40 + 77, sum: 5 }] })),
    }),
    new DigestWalk(tree).next() as Buffer,
  ]
  const damaged = fc.tuple(fc.constantFrom(...samples), fc.array(fc.tuple(fc.nat(), fc.nat(255))), fc.nat())
  const any = fc.oneof(
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
    damaged.map(([sample, turned, length]) => {
      const bytes = Buffer.from(sample)
      for (const [at, value] of turned) bytes[at % bytes.length] = value
      return length % 3 === 0 ? bytes.subarray(0, length % bytes.length) : bytes
    }),
  )
  const harmless = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      assert.ok(error instanceof LinkFault, `seed ${seed}: ${error}`)
    }
  }
  fc.assert(
    fc.property(any, (bytes) => {
      harmless(() => answerComparison(tree, bytes))
      harmless(() => readGone(bytes, 10))
      harmless(() => readDifferingChildren(bytes, 64))
      const walk = new DigestWalk(tree)
      walk.next()
      harmless(() => walk.next(bytes))
    }),
    { seed, numRuns: 3_000 },
  )
  for (const claim of [
    [0, 0, 13, 1, 0],
    [0, 33, 1, 1, 0],
    [1, 33, 1, 0],
    [2, 0, 1, 0],
    [1, 1, 3, 0, 0, 0, 0, 0, 0],
    [1, 0, 1, 0, 0xff, 0xff, 0x7f],
    [1, 20, 0xff, 0xff, 0x7f],
  ])
    assert.throws(() => answerComparison(tree, Buffer.from(claim)), LinkFault, `${claim}`)
  assert.throws(() => answerComparison(tree, Buffer.alloc(comparisonBytesMax + 1)), LinkFault)
})
