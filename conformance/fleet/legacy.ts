/**
 * An API server that does not constrain impersonation, as those before Kubernetes 1.36 do: a hub speaks there for callers with certificates only
 * where its operator says so (`--legacy-impersonation`) and has written the role for it, and then each is given what it gets directly.
 */
import { Findings } from '../findings.ts'
import { messageOf } from '../hub/kubelet.ts'
import { applyLegacyManifest, shop } from '../hub/objects.ts'
import { HubbedWorld } from '../hub/world.ts'
import type { Oracle } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { checkExtras, checkImpersonating, checkSame, introduce } from './callers.ts'
import { populateCast, spokenGroups } from './cast.ts'

export const step: Step = { name: 'fleet-legacy', tier: 'all', minutes: 3, run }

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const maps = `/api/v1/namespaces/${shop}/configmaps`
const older = ['--feature-gates=ConstrainedImpersonation=false']

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  const world = await HubbedWorld.open(context, populate, { apiserver: older, hubs: [[], ['--legacy-impersonation']] })
  try {
    await introduce(world)
    await world.start('edge-1')
    await world.untilCloudIs('edge-1', 'reachable')
    await findings.part('without the flag', () => checkUnspoken(world, findings))
    world.links['edge-1'].lead({ host: '127.0.0.1', port: world.hubs[1].port })
    await world.hubs[0].end('kill')
    await world.until('the other hub speaks', async () => (await world.at('edge-1', 'mary').ask(maps)).status === 200)
    await world.untilState('edge-1', 'services', 'synced')
    await findings.part('the same as directly', () => checkSame(world, findings))
    await findings.part('who impersonates', () => checkImpersonating(world, findings))
    await findings.part('extras', () => checkExtras(world, findings))
    return findings.result
  } finally {
    await world.stop()
  }
}

/** What `deploy/hub-legacy.yaml` gives for nodes, and the role that docs/security.md leaves to the operator, for the groups of this cast. */
async function populate(oracle: Oracle): Promise<void> {
  await applyLegacyManifest(oracle)
  await populateCast(oracle)
  const make = creatorOf(oracle)
  const name = 'ake-hub-as-callers-legacy'
  const verbs = ['impersonate']
  const authentication = { apiGroups: ['authentication.k8s.io'], verbs }
  await make(`${rbac}/clusterroles`, {
    metadata: { name },
    rules: [
      { apiGroups: [''], resources: ['users', 'serviceaccounts'], verbs },
      { apiGroups: [''], resources: ['groups'], resourceNames: [...spokenGroups, 'qa'], verbs },
      { ...authentication, resources: ['uids', 'userextras/authentication.kubernetes.io/credential-id'] },
    ],
  })
  await make(`${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name: 'ake-hub', namespace: 'ake-system' }],
  })
}

/** The node goes on; whom nothing but a certificate names hears what to do about it. */
async function checkUnspoken(world: HubbedWorld, findings: Findings): Promise<void> {
  const node = await world.at('edge-1', 'kubelet edge-1').ask('/api/v1/nodes/edge-1')
  findings.equal(node.status, 200, 'the node itself is spoken for')
  const body = { metadata: { name: 'never' } }
  for (const who of ['mary', 'uma', 'lead', 'kube-proxy']) {
    const told = await world.at('edge-1', who).ask(maps, { method: 'POST', body })
    const isClear = /does not constrain impersonation.*only with --legacy-impersonation/.test(messageOf(told))
    findings.check(told.status === 403 && isClear, `${who} is refused with what to do`, `${told.status} ${told.body}`)
  }
}
