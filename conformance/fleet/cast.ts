/** Callers of one edge of every kind, what each may, and the policy that says for whom the edge may speak. */
import { execFile } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Person } from '../asking.ts'
import { buildKubernetes } from '../build.ts'
import { shop } from '../hub/objects.ts'
import { ask, type Oracle } from '../oracle.ts'
import { makeBriefClient, makeClient, makePki } from '../pki.ts'
import { creatorOf } from '../rights/objects.ts'

const run = promisify(execFile)
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const policies = '/apis/ake.dev/v1alpha1/edgepolicies'
const reading = ['get', 'list', 'watch']

/** For whom edge-1 may speak, by its policy: `stranger` is not among them. */
const speakFor = [
  { users: ['mary'], groups: ['site', 'site:*'] },
  { users: ['uma', 'lead', 'idle', 'robin'] },
  { users: ['system:kube-proxy', 'system:kube-scheduler'] },
  {
    users: [`system:serviceaccount:${shop}:keeper`],
    groups: ['system:serviceaccounts', `system:serviceaccounts:${shop}`],
  },
  { users: ['zoë'], groups: ['site'] },
  { users: ['oidc:*'], groups: ['oidc:*'] },
]

/** As many as a directory of people may give somebody. */
const teams = Array.from({ length: 20 }, (_, at) => `oidc:team-${at}`)

/** The groups of those for whom the edge may speak: an API server that does not constrain impersonation has to be told each. */
export const spokenGroups: readonly string[] = ['site', 'site:slices', ...teams]

type Rule = {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
}

/** By the name of a role: who has it, and what it lets them do, in the shop or in the whole cluster. */
const roles: readonly {
  readonly name: string
  readonly to: { readonly kind: 'User' | 'Group'; readonly name: string }
  readonly namespace?: string
  readonly rules: readonly (Rule | object)[]
}[] = [
  {
    ...{ name: 'site-reads', to: { kind: 'Group', name: 'site' }, namespace: shop },
    rules: [
      {
        ...{ verbs: [...reading, 'create', 'update', 'delete', 'patch'], apiGroups: [''] },
        resources: ['configmaps', 'pods', 'pods/exec', 'pods/attach', 'pods/portforward', 'pods/log'],
      },
    ],
  },
  {
    ...{ name: 'site-slices', to: { kind: 'Group', name: 'site:slices' } },
    rules: [{ verbs: reading, apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'] }],
  },
  {
    ...{ name: 'teams-read', to: { kind: 'Group', name: 'oidc:team-7' }, namespace: shop },
    rules: [{ verbs: ['list', 'watch'], apiGroups: [''], resources: ['configmaps', 'services'] }],
  },
  {
    ...{ name: 'uma-reads', to: { kind: 'User', name: 'uma' }, namespace: shop },
    rules: [{ verbs: reading, apiGroups: [''], resources: ['secrets', 'configmaps'] }],
  },
  {
    ...{ name: 'robin-reads', to: { kind: 'User', name: 'robin' }, namespace: shop },
    rules: [{ verbs: reading, apiGroups: [''], resources: ['services', 'configmaps'] }],
  },
  {
    ...{ name: 'bob-reads', to: { kind: 'User', name: 'bob' }, namespace: shop },
    rules: [{ verbs: reading, apiGroups: [''], resources: ['configmaps'] }],
  },
  {
    ...{ name: 'qa-reads', to: { kind: 'Group', name: 'qa' }, namespace: shop },
    rules: [{ verbs: reading, apiGroups: [''], resources: ['pods'] }],
  },
  {
    ...{ name: 'keeper-is-bob', to: { kind: 'User', name: `system:serviceaccount:${shop}:keeper` } },
    rules: [
      { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['bob'] },
      { verbs: ['impersonate'], apiGroups: ['authentication.k8s.io'], resources: ['userextras/example.com/team'] },
    ],
  },
  // As of old, of one user, one group and one account; and in the narrow way of another user, for lists of pods alone.
  {
    ...{ name: 'lead-is-others', to: { kind: 'User', name: 'lead' } },
    rules: [
      { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['bob'] },
      { verbs: ['impersonate'], apiGroups: [''], resources: ['groups'], resourceNames: ['qa'] },
      { verbs: ['impersonate'], apiGroups: [''], resources: ['serviceaccounts'], resourceNames: ['keeper'] },
      {
        verbs: ['impersonate'],
        apiGroups: ['authentication.k8s.io'],
        resources: ['uids'],
        resourceNames: ['uid-of-bob'],
      },
      {
        ...{ verbs: ['impersonate'], apiGroups: ['authentication.k8s.io'] },
        ...{ resources: ['userextras/example.com/team'], resourceNames: ['blue'] },
      },
      {
        ...{ verbs: ['impersonate:user-info'], apiGroups: ['authentication.k8s.io'], resources: ['users'] },
        resourceNames: ['mary'],
      },
      {
        ...{ verbs: ['impersonate:user-info'], apiGroups: ['authentication.k8s.io'], resources: ['groups'] },
        resourceNames: ['site'],
      },
      { verbs: ['impersonate-on:user-info:list'], apiGroups: [''], resources: ['pods'] },
    ],
  },
]

/** With the policy, before any hub is asked. */
export async function populateCast(oracle: Oracle): Promise<void> {
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
  const definition = join(import.meta.dirname, '..', '..', 'deploy', 'edgepolicy.yaml')
  await run(join(bin, 'kubectl'), ['--kubeconfig', oracle.kubeconfig, 'apply', '-f', definition])
  const make = creatorOf(oracle)
  for (const { name, to, namespace, rules } of roles) {
    const at = namespace === undefined ? rbac : `${rbac}/namespaces/${namespace}`
    const [role, binding] =
      namespace === undefined ? ['clusterroles', 'clusterrolebindings'] : ['roles', 'rolebindings']
    await make(`${at}/${role}`, { metadata: { name }, rules })
    const roleRef = { apiGroup, kind: namespace === undefined ? 'ClusterRole' : 'Role', name }
    await make(`${at}/${binding}`, { metadata: { name }, roleRef, subjects: [{ apiGroup, ...to }] })
  }
  await untilMade(oracle, { nodes: { names: ['edge-1'] }, speakFor })
}

/** A definition that was made a moment ago is served a moment later. */
async function untilMade(oracle: Oracle, spec: object): Promise<void> {
  const body = { apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata: { name: 'site' }, spec }
  for (let tries = 50; ; tries--) {
    const { status, body: told } = await ask(oracle, policies, { method: 'POST', body })
    if (status === 201) return
    if (status !== 404 || tries === 0) throw new Error(`POST ${policies}: ${status} ${told}`)
    await new Promise((done) => setTimeout(done, 200))
  }
}

export async function unbind(oracle: Oracle, name: string): Promise<void> {
  const { status, body } = await ask(oracle, `${rbac}/namespaces/${shop}/rolebindings/${name}`, { method: 'DELETE' })
  if (status !== 200) throw new Error(`${name} was not unbound: ${status} ${body}`)
}

export type Cast = ReadonlyMap<string, Person>

/** Everybody with a certificate, by name. */
export async function castOf(oracle: Oracle, dir: string): Promise<Cast> {
  const cast = new Map<string, Person>()
  const named = async (who: string, user: string, groups: readonly string[], uid?: string) => {
    const file = `cast-${who}`
    await makeClient(oracle.dir, { file, user, groups, ...(uid === undefined ? {} : { uid }) })
    cast.set(who, await pairAt(oracle.dir, file))
  }
  await named('mary', 'mary', ['site', 'site:slices'])
  await named('uma', 'uma', [], 'uid-of-uma')
  await named('lead', 'lead', [])
  await named('idle', 'idle', [])
  await named('robin', 'robin', [])
  await named('stranger', 'stranger', ['site'])
  await named('kube-proxy', 'system:kube-proxy', [])
  await named('scheduler', 'system:kube-scheduler', [])
  await named('zoë', 'zoë', ['site'])
  await named('ann', 'oidc:ann@example.com', teams)
  const account = ['system:serviceaccounts', `system:serviceaccounts:${shop}`]
  await named('account', `system:serviceaccount:${shop}:keeper`, account)
  await named('master', 'master', ['system:masters'])
  await mkdir(join(dir, 'brief'), { recursive: true })
  const brief = { user: 'mary', groups: ['site'], seconds: 1 }
  cast.set('expired', await makeBriefClient(oracle.dir, join(dir, 'brief'), brief))
  // Of an authority of the same name that is not the cluster's.
  await mkdir(join(dir, 'foreign'), { recursive: true })
  await makePki(join(dir, 'foreign'))
  await makeClient(join(dir, 'foreign'), { file: 'mary', user: 'mary', groups: ['site'] })
  cast.set('foreign', await pairAt(join(dir, 'foreign'), 'mary'))
  return cast
}

async function pairAt(dir: string, file: string): Promise<Person> {
  const [cert, key] = await Promise.all(['crt', 'key'].map((end) => readFile(join(dir, `${file}.${end}`), 'utf8')))
  return { cert: cert as string, key: key as string }
}
