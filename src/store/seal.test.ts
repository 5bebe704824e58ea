import assert from 'node:assert/strict'
import { createCipheriv, hkdfSync } from 'node:crypto'
import { test } from 'node:test'
import { isSealed, objectPlace, parseSealHead, recordPlace, Seal, sealBytes, sealHead } from './seal.ts'
import { encodeHeader, parseHeader } from './segment.ts'
import { StoreUnusable } from './store.ts'

const key = Buffer.alloc(32, 'k')
const other = Buffer.alloc(32, 'o')
const place = objectPlace('shop/token', 7)
const body = Buffer.from('{"data":{"password":"hunter2"}}')

test('[I4] what was sealed is opened again, and looks like nothing else', () => {
  const seal = new Seal([key])
  for (const one of [body, Buffer.alloc(0), Buffer.alloc(70_000, 'x')]) {
    const sealed = seal.seal(one, place)
    assert.equal(sealed.length, one.length + sealBytes)
    assert.ok(isSealed(sealed, 0, sealed.length))
    assert.ok(!sealed.includes('hunter2'))
    assert.deepEqual(new Seal([other, key]).open(sealed, place), one)
  }
  assert.ok(!isSealed(body, 0, body.length))
})

test('[I4] a sealed body is AES-256-GCM under a key of HKDF-SHA256: what any other program can open', () => {
  const sealed = new Seal([key]).seal(body, place)
  const [id, salt, count] = [sealed.readUInt32LE(4), sealed.subarray(8, 24), sealed.subarray(24, 28)]
  assert.equal(id, Buffer.from(hkdfSync('sha256', key, '', 'ake key id', 4)).readUInt32LE())
  assert.equal(sealed.subarray(0, 4).toString('latin1'), '\xffaks')
  const derived = Buffer.from(hkdfSync('sha256', key, salt, 'ake body', 32))
  const cipher = createCipheriv('aes-256-gcm', derived, Buffer.concat([Buffer.alloc(8), count]))
  cipher.setAAD(Buffer.from(['object', 7, 'shop/token'].join('\0')))
  const text = Buffer.concat([cipher.update(body), cipher.final(), cipher.getAuthTag()])
  assert.deepEqual(sealed.subarray(28), text)
})

test('[I4] a body that was moved, turned anywhere by a bit, or cut anywhere is not opened', () => {
  const seal = new Seal([key])
  const sealed = seal.seal(body, place)
  for (const elsewhere of [objectPlace('shop/token', 8), objectPlace('shop/tokens', 7), recordPlace('token', '7')]) {
    assert.equal(seal.open(sealed, elsewhere), undefined)
  }
  for (let at = 0; at < sealed.length; at++) {
    const turned = Buffer.from(sealed)
    turned[at] = (turned[at] as number) ^ (1 << (at % 8))
    if (!isSealed(turned, 0, turned.length)) continue
    // Of the id: no key has it. A checksum is looked at before, so that a disk cannot make a store of another key.
    if (at >= 4 && at < 8) assert.throws(() => seal.open(turned, place), StoreUnusable)
    else assert.equal(seal.open(turned, place), undefined, `byte ${at}`)
  }
  for (let length = sealBytes; length < sealed.length; length++) {
    assert.equal(seal.open(sealed.subarray(0, length), place), undefined)
  }
  assert.ok(!isSealed(sealed, 0, sealBytes - 1))
})

test('[I4] what another key has sealed is refused by name, with what to do', () => {
  const sealed = new Seal([other]).seal(body, place)
  const refusal = (keys: Buffer[]) => {
    try {
      new Seal(keys).open(sealed, place)
    } catch (error) {
      assert.ok(error instanceof StoreUnusable && !error.damaged)
      return error.message
    }
    return undefined
  }
  assert.match(
    refusal([]) ?? '',
    /^it is sealed with the key [0-9a-f]{8}, and none was given: give .*--encryption-key$/,
  )
  assert.match(refusal([key]) ?? '', /, which is not among those given \([0-9a-f]{8}\): add it as a further line/)
})

test('[I4] no salt and count come twice: not in one process, nor in two that begin alike', () => {
  const seen = new Set<string>()
  for (const seal of [new Seal([key]), new Seal([key])]) {
    for (let i = 0; i < 1_000; i++) seen.add(seal.seal(body, place).toString('latin1', 8, 28))
  }
  assert.equal(seen.size, 2_000)
})

test('[I4] segments say with which key they are sealed; damage of that makes them say nothing', () => {
  const { id } = new Seal([key])
  const header = encodeHeader({ segment: 3, sequence: 5, previous: 2, previousEnd: 99, identity: 4, seal: id })
  assert.deepEqual(parseHeader(header)?.seal, id)
  const head = sealHead(id)
  assert.equal(parseSealHead(head), id)
  assert.equal(sealHead(0).length, 0)
  for (let at = 0; at < head.length; at++) {
    const turned = Buffer.from(head)
    turned[at] = (turned[at] as number) ^ 1
    assert.equal(parseSealHead(turned), 0)
  }
})
