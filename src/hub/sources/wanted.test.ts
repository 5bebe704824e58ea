/** What edges may call an interest. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wantedOf } from './wanted.ts'

test('a name is read as it was spelled', () => {
  const wanted = wantedOf('apps/v1/deployments@shop?app=web,tier in (a,b)&metadata.name=x\\=y&z')
  assert.equal(wanted?.group, 'apps')
  assert.equal(wanted?.namespace, 'shop')
  assert.deepEqual(wanted?.labels.toString(), 'app=web,tier in (a,b)')
  assert.equal(wanted?.fields.required('metadata.name'), 'x=y&z')
  for (const name of ['v1/pods', 'v1/pods@a', 'v1/pods?&spec.nodeName=n1', 'v1/pods@a%2Fb', 'v1/pods?a=b&'])
    assert.equal(wantedOf(name)?.name, name)
})

test('[L8] what no interest is called, or another spelling of one, is none', () => {
  const names = ['', 'pods', '/', 'v1/', '/pods', 'a/b/c/d', 'v1/pods?', 'v1/pods@', 'v1/pods@%', 'v1/pods?b=1,a=1&']
  for (const name of [...names, 'v1/pods?=&', 'v1/pods?&x', 'v1/pods@a@b', 'v1/pods?(&', 'v1/pods?&']) {
    assert.equal(wantedOf(name), undefined, name)
  }
})
