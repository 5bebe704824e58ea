import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeded } from '../../base/seeded.test-support.ts'
import type { Caller } from '../../kube/caller.ts'
import { Rbac, type RbacResource } from './rbac.ts'
import { readSubjectRules, subjectKey, subjectRulesBytesMax, writeSubjectRules } from './subjectrules.ts'

const put = (rbac: Rbac, resource: RbacResource, key: string, object: object) =>
  rbac.put(resource, key, Buffer.from(JSON.stringify(object)))

/** Repeatable: the seed is printed where it fails. */
function dice(seed: number) {
  const roll = seeded(seed)
  return { roll, pick: <T>(of: readonly T[]): T => of[roll(of.length)] as T }
}

const namespaces = ['a', 'b', 'c']
const users = ['ann', 'bob', 'system:serviceaccount:a:robot']
const groups = ['devs', 'ops', 'system:authenticated']
const verbs = ['get', 'list', 'watch', '*']
const resources = ['pods', 'secrets', 'pods/log', '*']

test('[L29] the rules of one caller say of it what all roles say, in the same words, and name no other subject', () => {
  const seed = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
  const { roll, pick } = dice(seed)
  for (let round = 0; round < 40; round++) {
    const rbac = new Rbac()
    const rule = () => {
      if (roll(5) === 0) return { verbs: [pick(verbs)], nonResourceURLs: [pick(['/healthz', '/met*', '*'])] }
      const names = roll(4) === 0 ? { resourceNames: [pick(['x', 'y'])] } : {}
      return { verbs: [pick(verbs)], apiGroups: [pick(['', 'apps', '*'])], resources: [pick(resources)], ...names }
    }
    for (let at = 0; at < 6; at++) {
      const rules = Array.from({ length: roll(3) }, rule)
      put(rbac, 'clusterroles', `r${at}`, { rules })
      put(rbac, 'roles', `${pick(namespaces)}/r${at}`, { rules: [rule()] })
    }
    for (let at = 0; at < 20; at++) {
      const subject = () => {
        if (roll(3) === 0) return { kind: 'Group', name: pick(groups) }
        if (roll(3) === 0) return { kind: 'ServiceAccount', name: 'robot', ...(roll(2) ? { namespace: 'a' } : {}) }
        return { kind: 'User', name: pick(['ann', 'bob']) }
      }
      const subjects = Array.from({ length: 1 + roll(3) }, subject)
      const roleRef = { kind: pick(['ClusterRole', 'Role', 'Odd']), name: `r${roll(8)}` }
      if (roll(2)) put(rbac, 'rolebindings', `${pick(namespaces)}/b${at}`, { roleRef, subjects })
      else put(rbac, 'clusterrolebindings', `b${at}`, { roleRef: { ...roleRef, kind: 'ClusterRole' }, subjects })
    }
    const caller: Caller = { name: pick(users), uid: '', groups: groups.filter(() => roll(2) === 0) }
    const text = writeSubjectRules(rbac, caller)
    assert.ok(text !== undefined)
    for (const other of ['ann', 'bob', ...groups])
      if (other !== caller.name && !caller.groups.includes(other))
        assert.ok(!text.includes(` ${other}"`), `${other} in ${text}`)
    const alone = readSubjectRules(text)
    assert.ok(alone !== undefined)
    assert.equal(writeSubjectRules(alone, caller), text)
    for (let at = 0; at < 60; at++) {
      const isPath = roll(6) === 0
      const wish = {
        ...{
          verb: pick(['get', 'list', 'watch', 'delete']),
          group: pick(['', 'apps']),
          subresource: pick(['', '', 'log']),
        },
        ...{
          namespace: pick(['', ...namespaces]),
          name: pick(['', 'x', 'y', 'z']),
          path: isPath ? pick(['/healthz', '/metrics']) : '',
        },
        resource: isPath ? '' : pick(['pods', 'secrets']),
      }
      const told = `seed ${seed}: ${JSON.stringify([caller, wish])}`
      assert.deepEqual(alone.judge(caller, wish), rbac.judge(caller, wish), told)
    }
    for (const namespace of namespaces)
      assert.deepEqual(alone.rulesOf(caller, namespace), rbac.rulesOf(caller, namespace))
  }
})

test('[L29, A8] a caller with 10,000 bindings, or rules without end, is not told of', () => {
  const rbac = new Rbac()
  const caller = { name: 'ann', uid: '', groups: [] }
  put(rbac, 'clusterroles', 'r', { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] })
  const bound = { roleRef: { kind: 'ClusterRole', name: 'r' }, subjects: [{ kind: 'User', name: 'ann' }] }
  for (let at = 0; at < 10_000; at++) put(rbac, 'rolebindings', `n${at}/b`, bound)
  assert.equal(writeSubjectRules(rbac, caller), undefined)
  const wide = new Rbac()
  const many = Array.from({ length: 5_000 }, (_, at) => ({
    verbs: ['get'],
    apiGroups: [''],
    resources: ['pods'],
    resourceNames: [`a-rather-long-name-of-a-pod-${at}`],
  }))
  put(wide, 'clusterroles', 'r', { rules: many })
  put(wide, 'clusterrolebindings', 'b', bound)
  assert.equal(writeSubjectRules(wide, caller), undefined)
  put(wide, 'clusterroles', 'r', { rules: many.slice(0, 100) })
  const text = writeSubjectRules(wide, caller)
  assert.ok(text !== undefined && text.length < subjectRulesBytesMax)
})

test('[L29] hostile texts are rules or none; a caller is told apart by its name and groups in any order', () => {
  for (const text of ['', '{}', '[]', 'null', '{"roles":[["a",[[1]]]],"bindings":[]}', '{"roles":1,"bindings":2}'])
    assert.equal(readSubjectRules(text), undefined, text)
  assert.equal(subjectKey({ name: 'a', groups: ['b', 'c'] }), subjectKey({ name: 'a', groups: ['c', 'b', 'b'] }))
  assert.notEqual(subjectKey({ name: 'a', groups: ['b'] }), subjectKey({ name: 'a', groups: [] }))
  assert.notEqual(subjectKey({ name: 'a', groups: ['b'] }), subjectKey({ name: 'b', groups: ['a'] }))
})
