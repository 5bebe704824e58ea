import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HubDocuments } from './documents.ts'

const answer = { status: 200, headers: { etag: '"x"' }, body: Buffer.from('{}') }

function open(isAllowed: (path: string) => boolean | undefined) {
  const asked: string[] = []
  const held = new HubDocuments({
    documents: {
      answer: (path, query) => {
        asked.push(`${path} ${query.get('hash') ?? ''}`)
        return Promise.resolve(path === '/apis/none' ? 'forward' : answer)
      },
    },
    nodes: {
      judge: (node, { verb, path = '' }) => {
        const allowed = node === 'n1' && verb === 'get' ? isAllowed(path) : undefined
        return Promise.resolve(allowed === undefined ? undefined : { allowed, reason: '' })
      },
    },
  })
  return { held, asked }
}

test('a node that may read a document has it from the hub; what is none, or cannot be had, is the API server’s to say', async () => {
  const { held, asked } = open(() => true)
  assert.equal(await held.answer('n1', '/openapi/v3/apis/apps/v1?hash=ab', {}), answer)
  assert.equal(await held.answer('n1', '/apis', {}), answer)
  assert.deepEqual(asked, ['/openapi/v3/apis/apps/v1 ab', '/apis '])
  assert.equal(await held.answer('n1', '/apis/none', {}), undefined)
  for (const path of ['/readyz', '/apisx', '/metrics', '/']) assert.equal(await held.answer('n1', path, {}), undefined)
  assert.equal(asked.length, 3)
})

test('[I1] a node that may not read a document, or of whom that is not known, is judged by the API server', async () => {
  for (const isAllowed of [false, undefined]) {
    const { held, asked } = open(() => isAllowed)
    assert.equal(await held.answer('n1', '/apis', {}), undefined)
    assert.deepEqual(asked, [])
    assert.equal(await held.answer('n1', '/openid/v1/jwks', {}), answer)
  }
})
