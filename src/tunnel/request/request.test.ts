import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteReader, LinkFault } from '../../link/frames/bytes.ts'
import { takeHead } from './head.ts'
import {
  decodeReplyHead,
  decodeRequestHead,
  encodeReplyHead,
  encodeRequestHead,
  headBytesMax,
  headerLines,
  headersByName,
  likenessOf,
  type RequestHead,
} from './request.ts'

const word = fc.string({ unit: 'grapheme', maxLength: 30 })
const fields = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(of, { noNullPrototype: true })
const headers = fc.array(fields({ name: word, value: word }), { maxLength: 6 })
const requests: fc.Arbitrary<RequestHead> = fields({
  method: fc.constantFrom('GET', 'PUT', 'PROPFIND'),
  path: word,
  actor: fc.constantFrom('anonymous', 'token', 'node', 'administrator'),
  hasBody: fc.nat(1),
  headers,
  version: fc.nat(),
  uid: word,
})
/** Without the length that stands before it. */
const bare = (bytes: Buffer) => new ByteReader(bytes).bytes(headBytesMax)

test('[L10, L20] heads are read as they were written', () => {
  fc.assert(fc.property(requests, (head) => assert.deepEqual(decodeRequestHead(bare(encodeRequestHead(head))), head)))
  fc.assert(
    fc.property(fields({ status: fc.nat(599), headers, same: fc.nat(1), unspoken: fc.nat(1) }), (head) =>
      assert.deepEqual(decodeReplyHead(bare(encodeReplyHead(head))), head),
    ),
  )
})

test('[L11, L20] hostile bytes are a head or a fault, and one in whose name nothing is known is anonymous', () => {
  const bytes = fc.uint8Array({ maxLength: 100 }).map((found) => Buffer.from(found))
  fc.assert(
    fc.property(bytes, (bytes) => {
      for (const decode of [decodeRequestHead, decodeReplyHead])
        try {
          decode(bytes)
        } catch (error) {
          assert.ok(error instanceof LinkFault, String(error))
        }
    }),
    { numRuns: 2_000 },
  )
  const asked = {
    method: 'G',
    path: '/',
    actor: 'administrator',
    hasBody: 0,
    headers: [],
    version: 0,
    uid: '',
  } as const
  const head = bare(encodeRequestHead(asked))
  assert.equal(head[4], 3)
  head[4] = 5
  assert.equal(decodeRequestHead(head).actor, 'anonymous')
})

test('[L13, L20] a head that says nothing of what is held is written as before it could', () => {
  const asked = { method: 'G', path: '/', actor: 'node', hasBody: 0, headers: [] } as const
  assert.equal(encodeRequestHead({ ...asked, version: 0, uid: '' }).toString('hex'), '0701470' + '12f020000')
  assert.equal(
    encodeRequestHead({ ...asked, version: 5, uid: 'u' }).toString('hex'),
    '0a01470' + '12f020000' + '050175',
  )
  assert.equal(encodeReplyHead({ status: 100, headers: [], same: 0, unspoken: 0 }).toString('hex'), '026400')
  assert.equal(encodeReplyHead({ status: 100, headers: [], same: 1, unspoken: 0 }).toString('hex'), '03640001')
})

test('[L20] a head is taken from a stream in whatever pieces it comes, and what follows stays', async () => {
  const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 10 })
  await fc.assert(
    fc.asyncProperty(requests, pieces, word, async (head, sizes, body) => {
      const stream = new PassThrough()
      const taking = takeHead(stream)
      let rest = Buffer.concat([encodeRequestHead(head), Buffer.from(body)])
      for (const size of sizes) {
        stream.write(rest.subarray(0, size))
        rest = rest.subarray(size)
        await new Promise(setImmediate)
      }
      stream.end(rest)
      assert.deepEqual(decodeRequestHead((await taking) as Buffer), head)
      const left: Buffer[] = []
      for await (const chunk of stream) left.push(chunk)
      assert.equal(Buffer.concat(left).toString(), body)
    }),
  )
})

test('[L20] a stream that ends or breaks off within its head has none, and a head that is too long is a fault', async () => {
  for (const end of ['end', 'destroy'] as const) {
    const stream = new PassThrough()
    const taking = takeHead(stream)
    stream.write(Buffer.from([5, 1, 2]))
    setImmediate(() => stream[end]())
    assert.equal(await taking, undefined)
  }
  for (const bytes of [
    [0x81, 0x80, 0x06],
    [0xff, 0xff, 0xff, 0xff],
  ]) {
    const stream = new PassThrough()
    stream.write(Buffer.from(bytes))
    await assert.rejects(takeHead(stream), LinkFault)
  }
})

test('[L20] header lines by name and back, repeated ones apart', () => {
  const byName = { warning: ['a', 'b', 'c'], accept: 'x', none: undefined }
  const lines = headerLines(byName)
  assert.equal(lines.length, 4)
  assert.deepEqual(headersByName(lines), { warning: ['a', 'b', 'c'], accept: 'x' })
  const odd = headersByName([
    { name: '__proto__', value: 'a' },
    { name: 'constructor', value: 'b' },
  ])
  assert.deepEqual(Object.entries(odd), [
    ['__proto__', 'a'],
    ['constructor', 'b'],
  ])
})

test('[L25] only what is asked of one object by one caller is compared with its body', () => {
  const asked = (method: string, path: string, more: Partial<RequestHead> = {}, token?: string) =>
    likenessOf({ method, path, actor: 'node', hasBody: 0, headers: [], version: 0, uid: '', ...more }, token, 9)
  const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1'
  assert.deepEqual(asked('PUT', lease), asked('PUT', `${lease}?timeout=10s`))
  assert.equal(asked('PUT', lease).isWhole, true)
  for (const [method, path] of [
    ['POST', '/apis/authentication.k8s.io/v1/tokenreviews'],
    ['POST', '/api/v1/namespaces/a/secrets'],
    ['POST', '/api/v1/namespaces/a/serviceaccounts/s/token'],
    ['GET', '/api/v1/namespaces/a/secrets?labelSelector=a'],
    ['GET', '/readyz'],
    ['GET', '/api/%zz/x'],
  ] as const)
    assert.deepEqual([asked(method, path).isWhole, asked(method, path).subject], [false, method], path)
  const spoken = (value: string) => asked('PUT', lease, { headers: [{ name: 'Impersonate-User', value }] })
  const callers = [
    ...[asked('PUT', lease), asked('PUT', lease, { actor: 'administrator' }), spoken('a'), spoken('b')],
    ...[asked('PUT', lease, { actor: 'token' }, 'x'), asked('PUT', lease, { actor: 'token' }, 'y')],
  ].map(({ caller }) => caller)
  assert.equal(new Set(callers).size, callers.length)
})
