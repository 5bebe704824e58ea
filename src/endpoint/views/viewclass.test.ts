import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ViewClass } from './viewclass.ts'

/** A class over records that outlive it. */
function world() {
  const stored = new Map<string, Buffer>()
  let newest = 10
  const write = (changes: readonly { key: string; value: Buffer | undefined }[]) => {
    for (const { key, value } of changes) {
      if (value === undefined) stored.delete(key)
      else stored.set(key, value)
    }
  }
  const open = () =>
    new ViewClass({
      name: 'kubelet',
      callers: ['k'],
      stored: [...stored].map(([key, value]) => ({ key, value })),
      records: { write },
      newest: () => newest,
    })
  return { open, stored, reach: (version: number) => (newest = version) }
}

const views = new Map()

test('[A3] a version from before the change is another view’s until its caller has listed that scope, over restarts', () => {
  const { open, reach } = world()
  let one = open()
  assert.equal(one.isSeeing, false)
  one.show({ mark: 'a', views })
  assert.deepEqual([one.isOther('k', 's', 10), one.isOther('k', 's', 11)], [true, false])
  one = open()
  one.show({ mark: 'a', views })
  assert.equal(one.isOther('k', 's', 10), true)
  one.listed('k', 's')
  assert.deepEqual(
    [one.isOther('k', 's', 10), one.isOther('k', 't', 10), one.isOther('l', 's', 10)],
    [false, true, true],
  )
  one = open()
  one.show({ mark: 'a', views })
  assert.equal(one.isOther('k', 's', 10), false)
  reach(20)
  one.show({ mark: 'b', views })
  assert.deepEqual([one.isOther('k', 's', 20), one.isOther('k', 's', 21)], [true, false])
  one = open()
  assert.deepEqual([one.isSeeing, one.isOther('k', 's', 20)], [true, true])
})

test('who was told is forgotten with the change, and is never without a limit', () => {
  const { open, stored } = world()
  const one = open()
  one.listed('k', 'before')
  assert.equal(stored.size, 0, 'there is nothing to be told apart yet')
  one.show({ mark: 'a', views })
  for (let at = 0; at < 3_000; at++) one.listed('k', String(at))
  assert.equal(stored.size, 2_001)
  assert.deepEqual([one.isOther('k', '0', 1), one.isOther('k', '2999', 1)], [true, false])
  one.show({ mark: '', views })
  assert.deepEqual([...stored.keys()], ['kubelet'])
})

test('open watches fail when something else is shown, those that have ended do not', () => {
  const one = world().open()
  const failed: (number | undefined)[] = []
  one.opened({ fail: ({ code }) => failed.push(code) })
  one.opened({ fail: () => assert.fail('it has ended') })()
  one.show({ mark: 'a', views })
  one.show({ mark: 'a', views })
  assert.deepEqual(failed, [410])
})
