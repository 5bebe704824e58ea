import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alreadyExists, conflict, forbidden, invalid, notFound } from './status.ts'

test('a name is quoted as Go quotes it, whatever is in it', () => {
  const of = { group: 'apps', resource: 'deployments' }
  const shown = '"a\\x00\\"b\\u2028"'
  const name = 'a\0"b\u2028'
  assert.equal(notFound(of, name).message, `deployments.apps ${shown} not found`)
  assert.equal(alreadyExists(of, name).message, `deployments.apps ${shown} already exists`)
  assert.equal(conflict(of, name, 'why').message, `Operation cannot be fulfilled on deployments.apps ${shown}: why`)
  assert.equal(forbidden(of, name, 'why').message, `deployments.apps ${shown} is forbidden: why`)
  assert.equal(invalid('apps', 'Deployment', name, []).message.split(':')[0], `Deployment.apps ${shown} is invalid`)
  assert.equal(notFound(of, name).status.details?.name, name)
})
