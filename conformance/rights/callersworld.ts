/** The cluster of `callers.ts`: a node with a pod for each account, two namespaces, and who may read in one of them. */
import type { Person } from '../asking.ts'
import type { Oracle } from '../oracle.ts'
import { applyRbac, creatorOf } from './objects.ts'

export const nodeName = 'callers-n1'
export const own = 'callers-a'
export const other = 'callers-b'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
export const bindings = `${rbac}/namespaces/${own}/rolebindings`

/** Accounts that may read in their own namespace, and all that have a pod; users have a certificate, and the same right. */
const readers = ['robot', 'fickle', 'hasty', 'newcomer', 'later']
export const accounts: readonly string[] = [...readers, 'bare', 'bare-newcomer', 'bare-later']
export const users: readonly string[] = ['visitor', 'later-visitor']

/** The tokens are those of pods, as a kubelet would have them mounted. */
export async function populateCallers(oracle: Oracle): Promise<ReadonlyMap<string, Person>> {
  const make = creatorOf(oracle)
  const apiGroup = 'rbac.authorization.k8s.io'
  await applyRbac(oracle)
  await make('/api/v1/nodes', { metadata: { name: nodeName } })
  for (const name of [own, other]) await make('/api/v1/namespaces', { metadata: { name } })
  await make(`/api/v1/namespaces/${own}/configmaps`, { metadata: { name: 'shown' }, data: { a: 'b' } })
  await make(`/api/v1/namespaces/${other}/secrets`, { metadata: { name: 'hidden' }, stringData: { word: 'sesame' } })
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
  await make(`${rbac}/namespaces/${own}/roles`, { metadata: { name: 'reads' }, rules })
  const bind = (name: string, subject: object) =>
    make(bindings, {
      metadata: { name },
      roleRef: { apiGroup, kind: 'Role', name: 'reads' },
      subjects: [subject],
    })
  for (const name of readers) await bind(name, { kind: 'ServiceAccount', name, namespace: own })
  for (const name of users) await bind(name, { kind: 'User', name, apiGroup })
  const persons = new Map<string, Person>([['anonymous', {}]])
  for (const name of accounts) {
    await make(`/api/v1/namespaces/${own}/serviceaccounts`, { metadata: { name } })
    const spec = { nodeName, serviceAccountName: name, containers: [{ name: 'main', image: 'none' }] }
    const { metadata } = await make(`/api/v1/namespaces/${own}/pods`, { metadata: { name }, spec })
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name, uid: metadata.uid }
    persons.set(name, { token: await oracle.tokenFor(own, name, { boundObjectRef }) })
  }
  return persons
}
