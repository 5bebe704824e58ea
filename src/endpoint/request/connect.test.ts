import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isConnection } from '../../kube/addressing.ts'
import { builtinFacts } from '../../kube/builtin.ts'
import { parseRequest } from '../../kube/request.ts'
import { notConnected } from './connect.ts'

const pods = builtinFacts().resources.find((one) => one.resource === 'pods' && one.group === '')!

test('whatever connects is refused by name, and a missing pod is missing', () => {
  const refused = (path: string) => {
    const { status } = notConnected(pods, parseRequest('GET', path), (key) => key === 'a/here')
    return `${status.code} ${status.message}`
  }
  const why = 'this server does not connect to nodes, pods or services'
  assert.equal(refused('/api/v1/namespaces/a/pods/here/log'), `501 pods/log: ${why}`)
  assert.equal(refused('/api/v1/namespaces/a/pods/gone/log'), '404 pods "gone" not found')
})

test('every subresource of a built-in that carries options of a connection is one, and log', () => {
  for (const { subresources } of builtinFacts().resources) {
    for (const { name, kind } of subresources) {
      assert.equal(isConnection(name), name === 'log' || /^(Pod|Node|Service).*Options$/.test(kind), `${name} ${kind}`)
    }
  }
})
