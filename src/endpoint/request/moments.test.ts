/** Reads that could fall between two moments: a state and the watch after it, a page of a future, a life too long to time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld } from '../world.test-support.ts'

const maps = '/api/v1/namespaces/default/configmaps'
/** What is missing never comes: that is told after this time. */
const missingMs = 10_000
const map = (name: string) => ({ metadata: { name } })

test('[A3] what is published while a watch is being opened is in its state or follows it', async () => {
  const { copy, open } = await openWorld()
  for (let turns = 0; turns < 12; turns++) {
    const name = `m${turns}`
    const metadata = { name, namespace: 'default' }
    const writing = copy.put('/configmaps', `default/${name}`, () => Buffer.from(JSON.stringify({ metadata })))
    // One of these leads into the very turn between the state and the watcher, if there is one.
    for (let i = 0; i < turns; i++) await Promise.resolve()
    const watch = await open(`${maps}?watch=1`)
    await writing
    let told = ''
    while (!told.includes(`"${name}"`)) {
      const { promise: missing, resolve: miss } = Promise.withResolvers<undefined>()
      const guard = setTimeout(miss, missingMs, undefined)
      const next = await Promise.race([watch.next(), missing])
      clearTimeout(guard)
      assert.ok(next !== undefined && next.done !== true, `${name} is missing`)
      told += next.value.toString()
    }
    await watch.return?.()
  }
})

test('a continue token of a version that was never given out is refused, not answered under that version', async () => {
  const { ask, clock } = await openWorld()
  await ask('POST', maps, map('a'))
  const token = { v: 'meta.k8s.io/v1', rv: 99_999, start: 'A\0' }
  const asking = ask('GET', `${maps}?limit=1&continue=${Buffer.from(JSON.stringify(token)).toString('base64url')}`)
  for (let turns = 0; turns < 20; turns++) await Promise.resolve()
  clock.advance(3_000)
  const { status, json } = await asking
  assert.equal(status, 504)
  assert.match(json.message, /Too large resource version: 99999/)
})

test('a watch that asks for a longer life than a timer can count lives on', async () => {
  const { clock, copy, open } = await openWorld()
  const times: number[] = []
  const setTimer = clock.setTimer.bind(clock)
  clock.setTimer = (ms, fn) => {
    times.push(ms)
    return setTimer(ms, fn)
  }
  const watch = await open(`${maps}?watch=1&timeoutSeconds=9000000000`)
  assert.ok(times.length > 0 && times.every((ms) => ms < 2 ** 31), String(times))
  assert.equal(copy.cache('/configmaps').watchers.size, 1)
  await watch.return?.()
})
