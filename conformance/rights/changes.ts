/** Rights that come and go: taken away while the cloud is there, they stay away when it is not; given, they count at once. */
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import type { Findings } from '../findings.ts'
import type { RightsWorld } from './world.ts'

/** The API server itself follows its roles by watches. */
const followed = 'the API server follows its own roles'

const a = '/api/v1/namespaces/rights-a'
const lists = `${a}/configmaps?resourceVersion=0`
const secret = `${a}/secrets/s1`
const bindings = '/apis/rbac.authorization.k8s.io/v1/namespaces/rights-a/rolebindings'
/** The edge sees roles change and asks again at once; an account is asked for after half of 30 s. */
const goneMsMax = 30_000 + 4_000
/** By the second look at the latest: the API server's authorizer may be behind its own watch of the bindings. */
const watchMsMax = 15_000
const askAgainMs = 200

export async function changeRights(world: RightsWorld, findings: Findings): Promise<void> {
  const fickle = world.through('fickle')
  const gone = world.through('gone')
  for (const path of [lists, `${secret}?resourceVersion=0`, secret]) {
    findings.equal((await fickle.ask(path)).status, 200, `fickle has ${path} while its role is bound`)
  }
  findings.equal((await gone.ask(lists)).status, 200, 'the account that will be gone lists')
  await grant(world, findings)

  let watchEndedAt = 0
  const watched = fickle.watch(`${lists}&watch=1`, watchMsMax).finally(() => {
    watchEndedAt = performance.now()
  })
  await pause(1_000)
  await world.remove(`${bindings}/fickle`)
  await world.remove(`${a}/serviceaccounts/gone`)
  await until(async () => (await world.direct('fickle').ask(lists)).status === 403, followed, { everyMs: 50 })
  const revokedAt = performance.now()
  // One that asks for the most recent state is judged by the API server itself: its 403 is the answer, not the copy.
  findings.equal((await fickle.ask(secret)).status, 403, 'kubeedge 1.2: a GET that the API server forbids, right after')
  const statuses = new Map([
    ['fickle', 0],
    ['gone', 0],
  ])
  const seconds = (at = performance.now()) => Math.round((at - revokedAt) / 100) / 10
  while (performance.now() - revokedAt < goneMsMax) {
    const before = statuses.get('fickle')
    for (const who of statuses.keys()) statuses.set(who, (await world.through(who).ask(lists)).status)
    if (statuses.get('fickle') === 403 && before !== 403)
      findings.note(`denied ${seconds()} s after the role was unbound`)
    if (statuses.get('fickle') === 403 && statuses.get('gone') === 401) break
    await pause(askAgainMs)
  }
  findings.note(`unknown ${seconds()} s after the account was deleted`)
  const { status, ended, body } = await watched
  findings.equal([status, ended, body.includes('"ERROR"')], [200, true, false], 'a watch that is open ends in order')
  findings.note(`its watch ended ${seconds(watchEndedAt)} s after the role was unbound`)
  findings.equal(
    [...statuses],
    [
      ['fickle', 403],
      ['gone', 401],
    ],
    'rights and accounts taken away',
  )
  const cached = `${secret}?resourceVersion=0`
  await fickle.ask(cached)
  await pause(500)
  await checkTakenAway(world, findings, 'right after')
}

/** Without the cloud: what nobody has asked before, and what is allowed because more is. */
export async function checkParts(world: RightsWorld, findings: Findings): Promise<void> {
  const reader = world.through('reader')
  for (const selector of ['labelSelector=never%3Dasked', 'labelSelector=never&fieldSelector=metadata.name%3Dc1']) {
    findings.equal((await reader.ask(`${lists}&${selector}`)).status, 200, `a part of what is allowed: ${selector}`)
  }
  findings.equal((await reader.ask('/api/v1/configmaps?resourceVersion=0')).status, 403, 'not what contains it')
  findings.equal((await reader.ask(`${a}/secrets?resourceVersion=0&labelSelector=x`)).status, 403, 'nothing else')
  const first = `${a}/pods?resourceVersion=0&labelSelector=first`
  findings.equal(
    (await world.through('other').ask(first.replace('-a/', '-b/'))).status,
    200,
    'asked first, as roles say',
  )
  findings.equal((await world.through('other').ask(first)).status, 403, 'and not where they say nothing')
}

/** In every state of the link from then on. */
export async function checkTakenAway(world: RightsWorld, findings: Findings, when: string): Promise<void> {
  const fickle = world.through('fickle')
  for (const path of [lists, secret, `${secret}?resourceVersion=0`]) {
    findings.equal((await fickle.ask(path)).status, 403, `${when}: fickle ${path}`)
  }
  findings.equal((await fickle.watch(`${lists}&watch=1`, 100)).status, 403, `${when}: fickle watches`)
  findings.equal((await world.through('gone').ask(lists)).status, 401, `${when}: an account that was deleted`)
  findings.equal((await world.through('late').ask(lists)).status, 200, `${when}: what was granted`)
}

async function grant(world: RightsWorld, findings: Findings): Promise<void> {
  const late = world.through('late')
  findings.equal((await late.ask(lists)).status, 403, 'late has no role yet')
  findings.equal((await late.ask(lists)).status, 403, 'late has no role yet, asked again')
  await world.create(bindings, {
    metadata: { name: 'late-reads' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
    subjects: [{ kind: 'ServiceAccount', name: 'late', namespace: 'rights-a' }],
  })
  await until(async () => (await world.direct('late').ask(lists)).status === 200, followed, { everyMs: 50 })
  findings.equal((await late.ask(lists)).status, 200, 'what is granted counts at once')
}
