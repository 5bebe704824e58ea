import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

/** An apply against another owner of so many fields: its answer, and how often the name of an owner was read. */
async function conflicting(fields: number): Promise<{ message: string; causes: number; read: number }> {
  const world = new FakeWorld()
  const object = (value: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a' },
    data: Object.fromEntries(Array.from({ length: fields }, (_, at) => [`k${at}`, value])),
  })
  const url = '/api/v1/namespaces/default/configmaps/a?fieldManager='
  await world.send('PATCH', `${url}x`, object('v'), 'application/apply-patch+yaml')
  const { parse } = JSON
  let read = 0
  JSON.parse = (text, reviver) => {
    read++
    return parse(text, reviver)
  }
  try {
    const { body } = await world.send('PATCH', `${url}y`, object('w'), 'application/apply-patch+yaml')
    return { message: body.message, causes: body.details.causes.length, read }
  } finally {
    JSON.parse = parse
  }
}

test('[A8] an owner is named once, however many fields of it an apply conflicts with', async () => {
  const [few, many] = [await conflicting(2), await conflicting(50)]
  assert.equal(few.message, 'Apply failed with 2 conflicts: conflicts with "x":\n- .data.k0\n- .data.k1')
  assert.equal(many.causes, 50)
  assert.equal(many.read, few.read)
})
