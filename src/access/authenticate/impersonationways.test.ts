import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../kube/caller.ts'
import { type ImpersonationWay, impersonationWays } from './impersonationways.ts'

const robot: Caller = { name: 'system:serviceaccount:shop:robot', uid: '', groups: [] }
const onNode: Caller = { ...robot, extra: { 'authentication.kubernetes.io/node-name': ['n1'] } }
const wanted = (name: string, more: object = {}) => ({ name, uid: '', groups: [], extra: {}, ...more })

const shortly = ({ on, asked, caller, never }: ImpersonationWay) => {
  const parts = asked.map(({ verb, group, resource, name }) => `${verb} ${resource}.${group}/${name}`)
  return [
    on,
    ...parts,
    ...(never === undefined ? [] : [`never ${never.asked.resource}: ${never.why}`]),
    caller.groups.join(),
  ]
}

test('[I1] narrow ways come first, each with a verb for the request and one for each part of the other', () => {
  assert.deepEqual(impersonationWays(wanted('ann', { groups: ['devs'] }), robot).map(shortly), [
    [
      'impersonate-on:user-info:',
      'impersonate:user-info users.authentication.k8s.io/ann',
      'impersonate:user-info groups.authentication.k8s.io/devs',
      'devs,system:authenticated',
    ],
    ['', 'impersonate users./ann', 'impersonate groups./devs', 'devs,system:authenticated'],
  ])
  assert.deepEqual(
    impersonationWays(wanted('system:serviceaccount:shop:till'), robot).map(({ name }) => name),
    ['serviceaccount', ''],
  )
  assert.deepEqual(
    impersonationWays(wanted('system:serviceaccount:shop:till', { groups: ['x'] }), robot).map(({ name }) => name),
    [''],
  )
})

test('[I1] a node is impersonated with the group of nodes; an account on it needs no right to others', () => {
  const node = wanted('system:node:n1')
  assert.deepEqual(impersonationWays(node, onNode).map(shortly), [
    [
      'impersonate-on:associated-node:',
      'impersonate:associated-node nodes.authentication.k8s.io/*',
      'system:nodes,system:authenticated',
    ],
    [
      'impersonate-on:arbitrary-node:',
      'impersonate:arbitrary-node nodes.authentication.k8s.io/n1',
      'system:nodes,system:authenticated',
    ],
    ['', 'impersonate users./system:node:n1', 'system:authenticated'],
  ])
  assert.deepEqual(
    impersonationWays(node, robot).map(({ name }) => name),
    ['arbitrary-node', ''],
  )
})

test('[I1] the administrators group and keys of extra without a domain are for the verb of old alone', () => {
  const [narrow] = impersonationWays(wanted('ann', { groups: ['system:masters'] }), robot)
  assert.deepEqual(shortly(narrow as ImpersonationWay).slice(1, 3), [
    'impersonate:user-info users.authentication.k8s.io/ann',
    'never groups: impersonating the system:masters group is not allowed',
  ])
  const [other] = impersonationWays(wanted('ann', { extra: { scopes: ['a'] } }), robot)
  assert.match(
    other?.never?.why ?? '',
    /^impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes"/,
  )
})
