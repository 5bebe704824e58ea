/**
 * Edges behind hubs that do not trust them: everybody behind such an edge is to the API server who they are there, and an edge has
 * what its node may have and what its callers have proved, with the rights of `deploy/hub.yaml` and no others. Online, cut, started again
 * without the cloud, with a right taken back, when the token that the hub's pod has mounted is replaced, and when a hub dies.
 */
import { Findings } from '../findings.ts'
import { creatorOf } from '../rights/objects.ts'
import { checkPages } from '../secrecy.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { countFirstStart, countIdle, countReconnect } from './bytes.ts'
import { checkBothEdges, checkCaller, checkProvedAgain, checkServedOffline, checkUnbound } from './callers.ts'
import { checkKubelet, checkWhoami, ownReads } from './kubelet.ts'
import { checkLines } from './lines.ts'
import { shopSlices, slice } from './objects.ts'
import { checkPeople } from './people.ts'
import { checkTakeover } from './takeover.ts'
import { HubbedWorld } from './world.ts'

export const step: Step = { name: 'hub-identity', tier: 'default', minutes: 4, run }

async function run(context: StepContext): Promise<StepResult> {
  const world = await HubbedWorld.open(context, undefined, { hasPod: true })
  const findings = new Findings(context.progress)
  try {
    await play(world, findings)
    return findings.result
  } finally {
    await world.stop()
  }
}

async function play(world: HubbedWorld, findings: Findings): Promise<void> {
  await findings.part('first start', async () => {
    await checkManifest(world, findings)
    await countFirstStart(world, findings, 'edge-2')
    await world.startSynced('edge-1')
  })
  const idle = countIdle(world, findings, 'edge-2')
  await findings.part('the kubelet', () => checkKubelet(world, findings))
  let watches = 0
  await findings.part('a caller', async () => {
    watches = await checkCaller(world, findings)
  })
  await findings.part('people', () => checkPeople(world, findings))
  await findings.part('the line is cut', () => checkCut(world, findings))
  await findings.part('the line is back', () => checkBack(world, findings))
  await idle
  await findings.part('a reconnection', () => countReconnect(world, findings, 'edge-2'))
  await findings.part('both edges', () => checkBothEdges(world, findings, watches))
  await findings.part('a token is replaced', () => checkReplacedToken(world, findings))
  const lines = () => findings.part('kubectl', () => checkLines(world, findings))
  await findings.part('a binding goes', () => checkUnbound(world, findings, lines))
  await findings.part('a hub dies', () => checkTakeover(world, findings))
  const pages = world.at('edge-1', 'administrator')
  await findings.part('pages', () => checkPages(findings, async (path) => (await pages.ask(path)).body))
}

/** One hub made the state in the Secret, the other took it over, and both may read all they need. */
async function checkManifest(world: HubbedWorld, findings: Findings): Promise<void> {
  type Status = { readonly open: boolean; readonly trustsEdges: boolean; readonly cluster: { readonly epoch: number } }
  const [one, other] = await Promise.all(world.hubs.map((hub) => hub.status<Status>()))
  findings.equal([one?.open, other?.open], [true, true], 'both hubs are open')
  findings.equal([one?.trustsEdges, other?.trustsEdges], [false, false], 'neither trusts its edges')
  findings.equal(one?.cluster.epoch, other?.cluster.epoch, 'both speak of one epoch')
}

/** The token that the first hub started with counts no more: it stands for its nodes with the one that has taken its place. */
async function checkReplacedToken(world: HubbedWorld, findings: Findings): Promise<void> {
  const { account } = world
  if (account === undefined) {
    findings.note('left out: no hub had the account of a pod, since mounting one takes root and unshare')
    return
  }
  world.know('the hub before', { token: await account.replaceToken() })
  const before = world.straight('the hub before')
  const isRefused = async () => (await before.ask('/api/v1/nodes?limit=1')).status === 401
  await world.until('the token before counts no more', isRefused)
  await checkWhoami(world.at('edge-1', 'kubelet edge-1'), findings, 'edge-1')
}

async function checkCut(world: HubbedWorld, findings: Findings): Promise<void> {
  const served = async (when: string) => {
    for (const path of ownReads) {
      const { status, body } = await world.at('edge-1', 'kubelet edge-1').ask(path)
      findings.equal(status, 200, `${when}: the kubelet reads ${path} (${body.slice(0, 200)})`)
    }
    await checkServedOffline(world, findings, when)
  }
  await world.links['edge-1'].set('blackhole')
  await world.untilCloudIs('edge-1', 'unreachable')
  await served('cut')
  await world.edge('edge-1').restart('kill')
  await world.untilCloudIs('edge-1', 'unreachable')
  await served('started again without the cloud')
}

async function checkBack(world: HubbedWorld, findings: Findings): Promise<void> {
  const make = creatorOf(world.oracle)
  await make(shopSlices, slice('meanwhile'))
  await make('/api/v1/namespaces', { metadata: { name: 'meanwhile' } })
  await world.links['edge-1'].set('up')
  await world.untilCloudIs('edge-1', 'reachable')
  await checkProvedAgain(world, findings)
  await checkWhoami(world.at('edge-1', 'kubelet edge-1'), findings, 'edge-1')
}
