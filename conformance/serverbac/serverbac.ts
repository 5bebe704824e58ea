/**
 * `ake serve --authorization rbac` beside a real kube-apiserver: who may what, by the default roles and by others, as the
 * administrator, as service accounts by their tokens, as others whom the administrator speaks for, and as nobody; what may not be
 * given away; tokens and what they claim; reviews; roles that gather others.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { runCommand } from '../kubectl/shell.ts'
import { startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { type Asking, accounts, impersonations, rbac, readings, reviewings, setup, writings } from './cases.ts'
import { Sides } from './sides.ts'
import { checkEndings, checkTokens, issue } from './tokens.ts'

export const step: Step = { name: 'serve-rbac', tier: 'default', minutes: 2, run }

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  await mkdir(context.dir, { recursive: true })
  const [oracle, ake] = await Promise.all([
    // Its own: what is bound here would give rights in other proofs; the controller fills roles that gather others.
    startOracle({
      dir: join(context.dir, 'oracle'),
      controllers: ['--controllers=clusterrole-aggregation-controller'],
      signal: context.signal,
      progress: context.progress,
    }),
    context.ake({ args: ['--authorization', 'rbac'] }),
  ])
  const sides = new Sides([oracle, ake], findings)
  try {
    await findings.part('default roles', () => compareDefaults(sides))
    for (const one of setup) await sides.compare(`POST ${one.path}`, 'admin', { ...one, of: () => undefined })
    await introduce(sides)
    await findings.part('reads', () => askAll(sides, readings))
    await findings.part('writes', () => askAll(sides, writings))
    await findings.part('speaking for others', () => askAll(sides, impersonations))
    await findings.part('reviews', () => askAll(sides, reviewings))
    await findings.part('tokens', () => checkTokens(sides, findings))
    await findings.part('kubectl', () => checkKubectl(context, findings, [oracle.kubeconfig, ake.kubeconfig]))
    await findings.part('roles that gather others', () => checkAggregation(sides))
    await findings.part('a right that is taken away', async () => {
      await sides.ask('admin', { method: 'DELETE', path: `${rbac}/namespaces/shop/rolebindings/reads` })
      await sides.compare('after its binding went', 'reader', { path: '/api/v1/namespaces/shop/configmaps' })
    })
    await findings.part('ends of tokens', () => checkEndings(sides, findings))
  } finally {
    sides.close()
    oracle.stop()
  }
  return findings.result
}

/** Accounts by their tokens, and others whom nobody has issued a credential. */
async function introduce(sides: Sides): Promise<void> {
  for (const name of accounts) {
    const [real, ours] = await issue(sides, name)
    sides.know(name, [{ token: real }, { token: ours }])
  }
  sides.know('nonsense', [{ token: 'nonsense' }, { token: 'nonsense' }])
  sides.speakAs('lost', { 'impersonate-user': 'lost' })
}

async function askAll(sides: Sides, all: readonly Asking[]): Promise<void> {
  for (const { what, who, request } of all) for (const one of who) await sides.compare(what, one, request)
}

type Listed = {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly namespace?: string } }[]
}

const resources = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings']

/** What each cluster begins with, but for when it was made. */
async function compareDefaults(sides: Sides): Promise<void> {
  for (const resource of resources) {
    const of = (body: unknown) =>
      (body as Listed).items.map((item) => ({ ...item, metadata: { ...item.metadata, resourceVersion: '', uid: '' } }))
    await sides.compare(`the default ${resource}`, 'admin', { path: `${rbac}/${resource}`, of })
  }
}

const toView = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }
const widgets = (...verbs: string[]) => ({ verbs, apiGroups: ['example.com'], resources: ['widgets'] })

async function checkAggregation(sides: Sides): Promise<void> {
  const path = `${rbac}/clusterroles`
  const clusterRoleSelectors = [
    { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['b'] }], matchLabels: { to: 'all' } },
    { matchLabels: { to: 'all' } },
  ]
  const looks = async (when: string) => {
    for (const name of ['view', 'edit', 'admin', 'gatherer', 'loner']) {
      await sides.compare(`${name} ${when}`, 'admin', { path: `${path}/${name}` })
    }
  }
  const make = async (name: string, labels: object, rest: object) => {
    await sides.compare(`make ${name}`, 'admin', {
      method: 'POST',
      path,
      body: { metadata: { name, labels }, ...rest },
    })
  }
  await make('w-a', { ...toView, to: 'all', tier: 'b' }, { rules: [widgets('get', 'list')] })
  await make('w-b', { to: 'all' }, { rules: [widgets('watch'), widgets('get', 'list')] })
  await make('gatherer', {}, { aggregationRule: { clusterRoleSelectors } })
  // Rules of its own stay where none are gathered.
  const none = [{ matchLabels: { to: 'none' } }]
  await make('loner', {}, { rules: [widgets('get')], aggregationRule: { clusterRoleSelectors: none } })
  await looks('when others came')
  const body = { rules: [widgets('get')] }
  const headers = { 'content-type': 'application/merge-patch+json' }
  await sides.compare('change w-a', 'admin', { method: 'PATCH', path: `${path}/w-a`, body, headers })
  await looks('when one changed')
  await sides.ask('admin', { method: 'DELETE', path: `${path}/w-a` })
  await looks('when one went')
}

/** As people ask what they may. */
async function checkKubectl(context: StepContext, findings: Findings, kubeconfigs: readonly string[]): Promise<void> {
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress: context.progress })
  const lines = [
    ...['reader', 'writer', 'nobody'].map(
      (name) => `kubectl auth can-i --list -n shop --as system:serviceaccount:shop:${name} | sort`,
    ),
    'kubectl auth can-i create deployments.apps -n shop --as system:serviceaccount:shop:writer',
    'kubectl auth can-i delete nodes --as system:serviceaccount:shop:writer',
    'kubectl auth whoami --as ann --as-group devs -o yaml',
    'kubectl create token reader -n shop --duration 5m',
    'kubectl get configmaps -n shop --as ann',
    'kubectl create role x -n shop --verb get --resource pods --as ann',
  ]
  for (const line of lines) {
    const [real, ours] = await Promise.all(
      kubeconfigs.map(async (kubeconfig, at) => {
        const shell = { bin, kubeconfig, home: join(context.dir, `home-${at}`), signal: context.signal }
        const said = await runCommand(shell, { line })
        // kube-apiserver has another authorizer beside, which cannot tell.
        return said
          .replace(/^Warning: the list may be incomplete: node authorizer .*\n/gim, '')
          .replace('--- errors\n--- exit', '--- exit')
      }),
    )
    findings.equal(ours, real, line)
  }
}
