/** The texts were taken from kube-apiserver 1.36.3. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequest } from '../kube/request.ts'
import { questionOf } from './question.ts'
import { forbiddenStatus } from './refusal.ts'

const user = { name: 'system:serviceaccount:shop:till', uid: '', groups: [] }
const said = (url: string, reason?: string) => {
  const { message, details, code } = forbiddenStatus(user, questionOf(parseRequest('GET', url)), reason).status
  assert.equal(code, 403)
  return [message, details]
}
const who = 'User "system:serviceaccount:shop:till" cannot'

test('refusals read like those of kube-apiserver', () => {
  assert.deepEqual(said('/api/v1/namespaces/x/pods'), [
    `pods is forbidden: ${who} list resource "pods" in API group "" in the namespace "x"`,
    { kind: 'pods' },
  ])
  assert.deepEqual(said('/apis/apps/v1/deployments?watch=1'), [
    `deployments.apps is forbidden: ${who} watch resource "deployments" in API group "apps" at the cluster scope`,
    { group: 'apps', kind: 'deployments' },
  ])
  assert.deepEqual(said('/api/v1/namespaces/x/pods/p/log'), [
    `pods "p" is forbidden: ${who} get resource "pods/log" in API group "" in the namespace "x"`,
    { name: 'p', kind: 'pods' },
  ])
  assert.deepEqual(said('/api/v1/namespaces/x/secrets?fieldSelector=metadata.name%3Da', 'no relationship found'), [
    `secrets "a" is forbidden: ${who} list resource "secrets" in API group "" in the namespace "x": no relationship found`,
    { name: 'a', kind: 'secrets' },
  ])
  assert.deepEqual(said('/metrics'), [`forbidden: ${who} get path "/metrics"`, {}])
  assert.deepEqual(said('/a%3Cb%26'), [`forbidden: ${who} get path "/a&lt;b&amp;"`, {}])
})
