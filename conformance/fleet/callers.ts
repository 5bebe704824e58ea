/**
 * Callers of every kind behind an edge and its hub: what each is given equals what the API server gives it directly, with the rights of
 * `deploy/hub.yaml` in the constrained way and an EdgePolicy that says for whom the edge may speak. Without the cloud they are judged by what the hub
 * told of their rules. An edge that lies about its callers is refused.
 */
import { Seat } from '../asking.ts'
import { Findings } from '../findings.ts'
import { messageOf } from '../hub/kubelet.ts'
import { applyLegacyManifest, shop, state } from '../hub/objects.ts'
import { HubbedWorld } from '../hub/world.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { type Cast, castOf, populateCast } from './cast.ts'
import { asOthers, compareOne, extraHeader, impersonations, questions } from './differential.ts'
import { checkLies } from './hostile.ts'
import { checkOffline, checkWithdrawn } from './offline.ts'
import { checkSpokenLines } from './spokenlines.ts'

export const step: Step = { name: 'fleet-callers', tier: 'default', minutes: 4, run }

/**
 * Whom the hub impersonates, eleven kinds: a node; people with groups, with a uid, with one right, with none, with twenty groups, with a name that is
 * not ASCII; parts of the cluster; an account by a certificate; and one who asks to be others.
 */
const impersonated = [
  ...['kubelet edge-1', 'mary', 'uma', 'robin', 'idle', 'ann', 'zoë'],
  ...['kube-proxy', 'scheduler', 'account', 'lead'],
]
/** Who goes up with what it shows: two accounts by their tokens, one who shows nothing, one who forges. */
const bare = ['keeper', 'bare', 'anonymous', 'forger']

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings(context.progress)
  const world = await HubbedWorld.open(context, populateCast)
  try {
    await play(world, findings)
    return findings.result
  } finally {
    await world.stop()
  }
}

/** Everybody who asks, known to the world by name. */
export async function introduce(world: HubbedWorld): Promise<Cast> {
  const cast = await castOf(world.oracle, world.context.dir)
  for (const [who, person] of cast) world.know(who, person)
  world.know('anonymous', {})
  world.know('forger', { token: 'not-a-token' })
  return cast
}

async function play(world: HubbedWorld, findings: Findings): Promise<void> {
  const cast = await introduce(world)
  await world.startSynced('edge-1')
  await findings.part('the same as directly', () => checkSame(world, findings))
  await findings.part('who impersonates', () => checkImpersonating(world, findings))
  await findings.part('extras', () => checkExtras(world, findings))
  await findings.part('kubectl', () => checkSpokenLines(world, findings))
  await findings.part('who is refused', () => checkRefused(world, findings, cast))
  await findings.part('a right goes', () => checkWithdrawn(world, findings))
  await findings.part('without the cloud', () => checkCut(world, findings))
  await findings.part('lies', () => checkLies(world, findings, { cast, state }))
  await findings.part('an upgraded cluster', () => checkUpgraded(world, findings))
}

/** What an older API server needed is still there: a node that is named alone is one all the same, by which hubs tell that they need it no more. */
async function checkUpgraded(world: HubbedWorld, findings: Findings): Promise<void> {
  await applyLegacyManifest(world.oracle)
  const hub = new Seat(world.oracle, { token: await world.oracle.tokenFor('ake-system', 'ake-hub') })
  const headers = { 'impersonate-user': 'system:node:some' }
  const { body } = await hub.ask('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
    method: 'POST',
    headers,
    body: {},
  })
  hub.close()
  findings.check(body.includes('"system:nodes"'), 'a node named alone, with the older right besides', body)
}

/** Also started again: what a hub told of callers is on the disk. */
async function checkCut(world: HubbedWorld, findings: Findings): Promise<void> {
  await world.links['edge-1'].set('blackhole')
  await world.untilCloudIs('edge-1', 'unreachable')
  await checkOffline(world, findings, 'cut')
  await world.edge('edge-1').restart('kill')
  await world.untilCloudIs('edge-1', 'unreachable')
  await checkOffline(world, findings, 'started again without the cloud')
  await world.links['edge-1'].set('up')
  await world.untilCloudIs('edge-1', 'reachable')
}

export async function checkSame(world: HubbedWorld, findings: Findings): Promise<void> {
  let asked = 0
  for (const who of [...impersonated, ...bare]) {
    const place = { who, here: world.at('edge-1', who), straight: world.straight(who) }
    for (const question of questions) {
      await compareOne(findings, place, question)
      asked++
    }
  }
  const told = `${impersonated.length} kinds of callers whom the hub impersonates and ${bare.length} who go up as they are`
  findings.note(`${asked} requests of ${told}`)
}

export async function checkImpersonating(world: HubbedWorld, findings: Findings): Promise<void> {
  const place = { who: 'lead', here: world.at('edge-1', 'lead'), straight: world.straight('lead') }
  for (const headers of impersonations)
    for (const [path, asked = {}] of asOthers)
      await compareOne(findings, place, [path, { ...asked, headers: { ...asked.headers, ...headers } }])
}

/**
 * An extra that its caller may ask for, and that the hub has no right to: what has to go up is refused, with what to do, and its caller is spoken for as before. With
 * a token it goes up as it is.
 */
export async function checkExtras(world: HubbedWorld, findings: Findings): Promise<void> {
  const whoami = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const headers = { 'Impersonate-User': 'bob', [extraHeader]: 'blue' }
  const asked = { method: 'POST', body: {}, headers }
  const [lead, straight] = [world.at('edge-1', 'lead'), world.straight('lead')]
  findings.equal((await straight.ask(whoami, asked)).status, 201, 'lead may be bob of a team')
  const told = await lead.ask(whoami, asked)
  const sentence =
    /does not let its hub be that caller: the role of the hub .* lacks impersonate.* on userextras\/example\.com\/team: ask with a token, or ask the API server itself$/
  findings.check(told.status === 403 && sentence.test(messageOf(told)), 'lead as bob of a team', told.body)
  await compareOne(findings, { who: 'lead after that', here: lead, straight }, [whoami, { method: 'POST', body: {} }])
  const keeper = { who: 'keeper', here: world.at('edge-1', 'keeper'), straight: world.straight('keeper') }
  await compareOne(findings, keeper, [whoami, asked])
}

/** Members of system:masters, whom no policy names, and certificates that prove nothing. */
async function checkRefused(world: HubbedWorld, findings: Findings, cast: Cast): Promise<void> {
  const making = { method: 'POST', body: { metadata: { name: 'never' } } }
  const maps = `/api/v1/namespaces/${shop}/configmaps`
  for (const [who, sentence] of [
    ['master', /its hub speaks for no member of system:masters, ask with a token/],
    ['stranger', /its hub does not let node "edge-1" speak for it \(no policy lets this edge speak for it\)/],
  ] as const) {
    const told = await world.at('edge-1', who).ask(maps, making)
    findings.check(told.status === 403 && sentence.test(messageOf(told)), `${who} writes nothing`, told.body)
  }
  for (const who of ['expired', 'foreign']) {
    const [told, straight] = await Promise.all([world.at('edge-1', who).ask(maps), world.straight(who).ask(maps)])
    findings.equal([told.status, straight.status], [401, 401], `a certificate that is ${who}`)
  }
  // A token goes before a certificate that no credential goes with.
  const { ake } = world.edge('edge-1')
  const both = new Seat(ake, { ...cast.get('master'), ...world.person('keeper') })
  const { body } = await both.ask('/apis/authentication.k8s.io/v1/selfsubjectreviews', { method: 'POST', body: {} })
  findings.check(body.includes(`system:serviceaccount:${shop}:keeper`), 'a master with a token', body)
  both.close()
}
