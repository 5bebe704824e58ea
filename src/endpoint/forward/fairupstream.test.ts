/** What is passed on to the API server, divided among those who ask for it. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import type { Access } from '../../access/access.ts'
import { StatusError } from '../../kube/status.ts'
import type { Identity, Upstream, UpstreamResponse } from '../../upstream/upstream.ts'
import { FairUpstream, tokenCallers } from './fairupstream.ts'

const access: Pick<Access, 'held' | 'caller'> = {
  held: (identity) => {
    const known = identity.kind === 'token' && identity.token.startsWith('good')
    return known ? { name: identity.token.slice(0, 5), uid: '', groups: [] } : undefined
  },
  caller: async (identity) => access.held(identity),
}

function world(passedMax: number) {
  const upstream = {
    ask: async ({ path }: { path: string }): Promise<UpstreamResponse> => {
      if (path === '/breaks') throw new Error('no answer')
      const body = (async function* () {
        yield Buffer.from('one')
        if (path === '/breaks-off') throw new Error('broke off')
      })()
      return { status: 200, headers: {}, body, heardAt: () => 0 }
    },
    connect: async () => ({ status: 101, rawHeaders: [], socket: new PassThrough(), head: Buffer.alloc(0) }),
  } as unknown as Upstream
  return new FairUpstream({ upstream, access, limits: { passedMax, requestBytes: 20 * 1024 } })
}

const ask = (passed: FairUpstream, identity: Identity, path = '/') => passed.ask({ method: 'GET', path, identity })
const token = (name: string): Identity => ({ kind: 'token', token: name })
const is429 = (error: unknown) => error instanceof StatusError && error.status.code === 429

async function fill(passed: FairUpstream, identity: (n: number) => Identity): Promise<UpstreamResponse[]> {
  const open: UpstreamResponse[] = []
  for (;;) {
    try {
      open.push(await ask(passed, identity(open.length)))
    } catch (error) {
      assert.ok(is429(error))
      return open
    }
  }
}

test('[A8] one caller’s streams leave the others theirs, whatever tokens it shows; so do any number of invented ones', async () => {
  const passed = world(160)
  const greedy = await fill(passed, (n) => token(`good1 token ${n}`))
  assert.equal(greedy.length, 75)
  const invented = await fill(passed, (n) => token(`invented ${n}`))
  assert.ok(invented.length > 0 && invented.length < 20, `${invented.length}`)
  for (const identity of [token('good2'), { kind: 'certificate', name: 'node' }, { kind: 'edge' }] as Identity[]) {
    assert.equal((await ask(passed, identity)).status, 200)
  }
})

test('a place is free again once its answer is read, left, broken off, or never came', async () => {
  const passed = world(160)
  const one = token('good1')
  for (let n = 0; n < 300; n++) {
    const answers = await Promise.all([ask(passed, one), ask(passed, one), ask(passed, one, '/breaks-off')])
    await assert.rejects(ask(passed, one, '/breaks'))
    await Array.fromAsync((answers[0] as UpstreamResponse).body)
    await (answers[1] as UpstreamResponse).body.return?.()
    await assert.rejects(Array.fromAsync((answers[2] as UpstreamResponse).body))
    const { socket } = await passed.connect({ method: 'GET', path: '/', identity: one })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.destroy()
    await closed
  }
})

test('callers by their tokens: as one where the API server says so, nobody where it does not', async () => {
  const whose = tokenCallers(access)
  const request = (authorization?: string) => ({ peer: {}, headers: { authorization } }) as never
  assert.equal(
    whose.held(request('Bearer good1-a x')),
    whose.held(request('Bearer good1-a')),
    'the first word is the token',
  )
  assert.equal(whose.held(request('Bearer good1-a')), whose.held(request('Bearer good1-b')))
  assert.notEqual(whose.held(request('Bearer good1-a')), whose.held(request('Bearer good2-a')))
  assert.equal(await whose.ask(request('Bearer bad')), undefined)
  assert.equal(await whose.ask(request()), undefined)
})

test('[A8] what is passed on with a long selector takes the places of many, and gives them back', async () => {
  const passed = world(400)
  const path = `/?labelSelector=${'!a,'.repeat(20_000)}`
  const first = await ask(passed, token('good1'), path)
  await assert.rejects(ask(passed, token('good1'), path), is429)
  assert.equal((await ask(passed, token('good1'))).status, 200)
  await first.body.return?.()
  assert.equal((await ask(passed, token('good1'), path)).status, 200)
})
