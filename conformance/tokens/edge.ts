/**
 * Tokens at an edge in front of a real API server: with the cloud there none that can be verified is reviewed, and one whose
 * pod is deleted opens nothing soon after; without it a token that was never shown is its caller, and one whose account or
 * pod is gone is refused.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import { startEdge } from '../edge/edge.ts'
import type { Findings } from '../findings.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { startLink } from '../link.ts'
import { ask, type Oracle } from '../oracle.ts'
import { applyRbac, creatorOf } from '../rights/objects.ts'
import { checkPages } from '../secrecy.ts'
import type { EdgeStatus } from '../site.ts'
import type { StepContext } from '../step.ts'

const space = 'tokens-edge'
const core = `/api/v1/namespaces/${space}`
const lists = `${core}/configmaps?resourceVersion=0`
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const reviews = 10

export async function checkEdge(context: StepContext, oracle: Oracle, findings: Findings): Promise<void> {
  await mkdir(context.dir, { recursive: true })
  const make = creatorOf(oracle)
  await applyRbac(oracle)
  await make('/api/v1/namespaces', { metadata: { name: space } })
  for (const name of ['till', 'short']) await make(`${core}/serviceaccounts`, { metadata: { name } })
  await make(`${core}/configmaps`, { metadata: { name: 'c1' }, data: { a: 'b' } })
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
  await make(`${rbac}/namespaces/${space}/roles`, { metadata: { name: 'reads' }, rules })
  await make(`${rbac}/namespaces/${space}/rolebindings`, {
    metadata: { name: 'reads' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reads' },
    subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: `system:serviceaccounts:${space}` }],
  })
  const pod = { serviceAccountName: 'till', containers: [{ name: 'main', image: 'none' }] }
  const bound = await make(`${core}/pods`, { metadata: { name: 'p1' }, spec: pod })
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p1', uid: bound.metadata.uid }
  const token = (account: string, spec: object = {}) => oracle.tokenFor(space, account, spec)

  const own = await oracle.userCredential('edge-tokens', ['ake:edges'])
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const kubeconfig = join(context.dir, 'edge.kubeconfig')
  await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, cert: own.cert, key: own.key })
  const mirrors = ['serviceaccounts', 'pods', 'configmaps'].flatMap((one) => ['--mirror', `${one}@${space}`])
  const edge = await startEdge({
    ...{ dir: join(context.dir, 'edge'), server: link.url, kubeconfig, signal: context.signal, args: mirrors },
  })
  const status = async (text: string) => {
    const seat = new Seat(edge, { token: text })
    const told = await seat.ask(lists)
    seat.close()
    return told.status
  }
  try {
    const first = await token('till')
    await until(async () => (await status(first)) === 200, 'the edge serves', { withinMs: 30_000, everyMs: 200 })
    await until(() => isSynced(edge), 'the edge has its accounts', { withinMs: 30_000, everyMs: 200 })
    await pause(500)

    const before = await reviewsOf(oracle)
    for (let at = 0; at < reviews; at++) findings.equal(await status(await token('till')), 200, 'a new token')
    const asked = (await reviewsOf(oracle)) - before
    findings.check(asked <= 2, `of ${reviews} new tokens hardly one is reviewed`, asked)

    const podToken = await token('till', { boundObjectRef })
    findings.equal(await status(podToken), 200, 'the token of a pod')
    const [unseen, ofPod] = [await token('till'), await token('till', { boundObjectRef })]
    const [ofAccount, elsewhere] = [await token('short'), await token('till', { audiences: ['vault'] })]
    await ask(oracle, `${core}/pods/p1?gracePeriodSeconds=0`, { method: 'DELETE' })
    await ask(oracle, `${core}/serviceaccounts/short`, { method: 'DELETE' })
    const refused = async () => (await status(podToken)) === 401
    const withinMs = 30_000
    findings.check(
      await until(refused, 'refused', { withinMs, everyMs: 500 }).then(
        () => true,
        () => false,
      ),
      'the token of a pod that was deleted is refused within half a minute',
    )
    await link.set('refuse')
    const isAway = async () => (await statusOf(edge)).upstream.state === 'unreachable'
    await until(isAway, 'the edge has noticed the cut', { withinMs: 30_000, everyMs: 200 })
    findings.equal(await status(unseen), 200, 'cut: a token that was never shown')
    findings.equal(await status(ofPod), 401, 'cut: the token of a pod that is gone')
    findings.equal(await status(ofAccount), 401, 'cut: the token of an account that is gone')
    findings.equal(await status(elsewhere), 401, 'cut: a token for another audience')
    findings.equal(await status(`${unseen.slice(0, -8)}AAAAAAAA`), 401, 'cut: a forged token')
    findings.equal(await status(`${unseen.split('.').slice(0, 2).join('.')}.`), 401, 'cut: a token without a signature')
    await checkPages(findings, (path) => pageOf(edge, path))
  } finally {
    await edge.kill()
    await link.close()
  }
}

async function isSynced(edge: Ake): Promise<boolean> {
  const { interests } = await statusOf(edge)
  return ['serviceaccounts', 'pods'].every((name) => {
    return interests.some(({ resource, state }) => resource === name && (state === 'synced' || state === 'fed'))
  })
}

async function statusOf(edge: Ake): Promise<EdgeStatus> {
  return JSON.parse(await pageOf(edge, '/ake/status')) as EdgeStatus
}

/** As its administrator. */
async function pageOf(edge: Ake, path: string): Promise<string> {
  const seat = new Seat(edge, edge)
  const { body } = await seat.ask(path)
  seat.close()
  return body
}

/** How often the API server was asked who somebody is. */
async function reviewsOf(oracle: Oracle): Promise<number> {
  const { body } = await ask(oracle, '/metrics')
  let count = 0
  for (const [, value] of body.matchAll(
    /^apiserver_request_total\{[^}]*resource="selfsubjectreviews"[^}]*\} (\S+)$/gm,
  )) {
    count += Number(value)
  }
  return count
}
