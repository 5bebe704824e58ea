/** What there is in the cluster in which rights are tested: objects to hide, accounts, their roles and their tokens. */
import { execFile } from 'node:child_process'
import { createPrivateKey, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { buildKubernetes } from '../build.ts'
import { ask, type Oracle } from '../oracle.ts'

const run = promisify(execFile)
const rbac = join(import.meta.dirname, '..', '..', 'deploy', 'edge-rbac.yaml')

export const nodes = ['rights-n1', 'rights-n2'] as const
export const widgets = '/apis/rights.example.com/v1/namespaces/rights-a/widgets'

/** Service accounts of rights-a (unless told) and what their role in their own namespace allows. */
const accounts: Readonly<Record<string, { readonly namespace?: string; readonly rules: readonly object[] }>> = {
  reader: {
    rules: [
      { apiGroups: [''], resources: ['configmaps', 'pods'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['rights.example.com'], resources: ['widgets'], verbs: ['get', 'list', 'watch'] },
    ],
  },
  named: {
    rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['c1'], verbs: ['get', 'list', 'watch'] }],
  },
  nobody: { rules: [] },
  other: { namespace: 'rights-b', rules: [{ apiGroups: [''], resources: ['*'], verbs: ['get', 'list', 'watch'] }] },
  fickle: { rules: [{ apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['get', 'list', 'watch'] }] },
  late: { rules: [] },
  gone: { rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }] },
  robot: { rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }] },
  minter: { rules: [{ apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] }] },
}

export type Account = { readonly namespace: string; readonly name: string; readonly uid: string }

export type Make = (path: string, body: object) => Promise<{ metadata: { uid: string; resourceVersion: string } }>

/** On a busy machine; usually a moment. */
const accountWithinMs = 30_000

/** A pod waits for the service account that a controller makes in each new namespace, as what makes pods in a cluster does. */
export function creatorOf(oracle: Oracle): Make {
  return async (path, body) => {
    for (const giveUpMs = performance.now() + accountWithinMs; ; await pause(100)) {
      const answer = await ask(oracle, path, { method: 'POST', body })
      if (answer.status === 201) return JSON.parse(answer.body)
      const isEarly = answer.status === 403 && answer.body.includes('error looking up service account')
      if (!isEarly || performance.now() > giveUpMs) throw new Error(`POST ${path}: ${answer.status} ${answer.body}`)
    }
  }
}

/** As an operator would; several steps may do it to one cluster. */
export async function applyRbac(oracle: Oracle): Promise<void> {
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
  const kubectl = (...args: string[]) => run(join(bin, 'kubectl'), ['--kubeconfig', oracle.kubeconfig, ...args])
  await kubectl('apply', '-f', rbac)
  // Edges of these tests are trusted with every secret.
  const binding = ['ake-edge-secrets', '--clusterrole=ake-edge-secrets', '--group=ake:edges']
  await kubectl('create', 'clusterrolebinding', ...binding).catch((error: Error) => {
    if (!error.message.includes('already exists')) throw error
  })
}

export async function populate(make: Make): Promise<void> {
  for (const name of ['rights-a', 'rights-b']) await make('/api/v1/namespaces', { metadata: { name } })
  for (const name of nodes) await make('/api/v1/nodes', { metadata: { name } })
  for (const number of [1, 2]) {
    const secret = { metadata: { name: `s${number}` }, stringData: { word: `hidden-${number}` } }
    await make('/api/v1/namespaces/rights-a/secrets', secret)
    await make('/api/v1/namespaces/rights-a/configmaps', { metadata: { name: `c${number}` }, data: { a: 'b' } })
  }
  await make('/api/v1/namespaces/rights-b/configmaps', { metadata: { name: 'elsewhere' }, data: { a: 'b' } })
  await make('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  const widget = { apiVersion: 'rights.example.com/v1', kind: 'Widget', metadata: { name: 'w1' } }
  // The API server takes a moment to serve what it has just been told of.
  for (let tries = 100; ; tries--) {
    const made = await make(widgets, widget).catch((error: unknown) => error)
    if (!(made instanceof Error)) return
    if (tries === 0) throw made
    await pause(100)
  }
}

/** One on each node, with a secret, a ConfigMap and two tokens; answers their uids. */
export async function makePods(make: Make): Promise<string[]> {
  const uids: string[] = []
  for (const [at, node] of nodes.entries()) {
    const number = at + 1
    const volumes = [
      { name: 'hidden', secret: { secretName: `s${number}` } },
      { name: 'shown', configMap: { name: `c${number}` } },
      { name: 'vault', projected: { sources: [{ serviceAccountToken: { audience: 'vault', path: 'token' } }] } },
    ]
    const containers = [{ name: 'main', image: 'none' }]
    const spec = { nodeName: node, serviceAccountName: 'robot', volumes, containers }
    const made = await make('/api/v1/namespaces/rights-a/pods', { metadata: { name: `p${number}` }, spec })
    uids.push(made.metadata.uid)
  }
  return uids
}

const definition = {
  metadata: { name: 'widgets.rights.example.com' },
  spec: {
    group: 'rights.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}

/** By name: each with its role, its binding of the same name, and a token. */
export async function accountsOf(make: Make): Promise<ReadonlyMap<string, Account>> {
  const found = new Map<string, Account>()
  for (const [name, { namespace = 'rights-a', rules }] of Object.entries(accounts)) {
    found.set(name, await account(make, { name, namespace, rules }))
  }
  return found
}

type Wanted = { readonly name: string; readonly namespace: string; readonly rules: readonly object[] }

async function account(make: Make, { name, namespace, rules }: Wanted): Promise<Account> {
  const { metadata } = await make(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } })
  await make(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles`, { metadata: { name }, rules })
  await make(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  })
  return { namespace, name, uid: metadata.uid }
}

export async function signedToken(oracle: Oracle, { namespace, name, uid }: Account, seconds: number): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  const issuer = 'https://kubernetes.default.svc'
  const claims = {
    ...{ iss: issuer, aud: [issuer], sub: `system:serviceaccount:${namespace}:${name}` },
    ...{ iat: now, nbf: now, exp: now + seconds },
    'kubernetes.io': { namespace, serviceaccount: { name, uid } },
  }
  const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${base64({ alg: 'RS256' })}.${base64(claims)}`
  const key = createPrivateKey(await readFile(join(oracle.dir, 'accounts.key'), 'utf8'))
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`
}
