/**
 * EdgePolicies in a real cluster: its API server takes the definition, refuses what makes no sense and explains the rest; what an edge may have
 * changes with them while it runs and while objects change; and `ake hub policy test` says what the hub does.
 */
import { badSpecs, goodSpecs, pastSpecs } from '../../src/policy/policies.test-support.ts'
import { Findings } from '../findings.ts'
import { shop } from '../hub/objects.ts'
import { ask } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { maps, node, PolicyWorld, policies } from './policyworld.ts'

export const step: Step = { name: 'fleet-policy', tier: 'default', minutes: 2, run }

const mapsOfShop = { apiGroups: [''], resources: ['configmaps'], namespaces: [shop] }
const limitsOfShop = { ...mapsOfShop, resources: ['limitranges'] }
const site = 'node-restriction.kubernetes.io/site'

async function run(context: StepContext): Promise<StepResult> {
  const world = await PolicyWorld.open(context)
  const findings = new Findings(context.progress)
  try {
    const part = (name: string, body: (world: PolicyWorld, findings: Findings) => Promise<void>) =>
      findings.part(name, () => body(world, findings))
    await part('without a definition', checkWithout)
    await part('the definition', checkDefinition)
    await part('interests come and go', checkInterests)
    await part('trust comes and goes', checkTrust)
    await part('never mirrored', checkNever)
    await part('labels', checkLabels)
    await part('status', checkStatus)
    await part('offline limits', checkOffline)
    return findings.result
  } finally {
    await world.stop()
  }
}

/** As it was before there were policies: the node's own, and no more. */
async function checkWithout(world: PolicyWorld, findings: Findings): Promise<void> {
  await world.untilKept('refused')
  const why = (await world.kept())?.why ?? ''
  findings.check(/may not read v1\/configmaps@shop by its own name/.test(why), 'the node may not read it', why)
  findings.check(/policies for it: none/.test(await tested(world)), 'without a definition there is no policy')
}

async function checkDefinition(world: PolicyWorld, findings: Findings): Promise<void> {
  const applied = await world.kubectl('apply', '-f', world.deployed('edgepolicy.yaml'))
  findings.check(/edgepolicies.ake.dev created/.test(applied), 'the API server takes the definition', applied)
  await world.until('policies are served', async () => (await ask(world.oracle, policies)).status === 200)
  const tried = async (spec: object) => {
    const object = { apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata: { name: 'tried' }, spec }
    const { status, body } = await ask(world.oracle, `${policies}?dryRun=All`, { method: 'POST', body: object })
    return { status, message: (JSON.parse(body) as { message?: string }).message ?? '' }
  }
  for (const [what, spec] of [...Object.entries(goodSpecs), ...Object.entries(pastSpecs)]) {
    const { status, message } = await tried(spec)
    findings.equal(status, 201, `a policy with ${what} is taken (${message})`)
  }
  for (const [what, [spec, says]] of Object.entries(badSpecs)) {
    const { status, message } = await tried(spec)
    findings.check(status === 422 && says.test(message), `a policy with ${what} is refused`, `${status} ${message}`)
  }
  const explained = await world.kubectl('explain', 'edgepolicy.spec.speakFor')
  findings.check(
    /system:masters is spoken for by nobody/.test(explained.replace(/\s+/g, ' ')),
    'kubectl explain',
    explained,
  )
  const first = await world.kubectl('apply', '-f', world.deployed('edgepolicy-default.yaml'))
  findings.check(/edgepolicy.ake.dev\/default created/.test(first), 'the policy to begin with', first)
}

/** While its objects change all the time: nothing is missed, nothing comes that is not allowed any more. */
async function checkInterests(world: PolicyWorld, findings: Findings): Promise<void> {
  const writing = new AbortController()
  const written = write(world, writing.signal)
  await world.put('more', { nodes: { names: [node] }, interests: [mapsOfShop] })
  findings.note(`an interest is had ${await world.untilKept('synced')} ms after its policy was made`)
  findings.equal((await world.at('keeper', `${maps}/first`)).status, 200, 'its caller reads it')
  findings.check(
    /may mirror configmaps@shop: yes, by policy\/more spec.interests\[0\]/.test(
      await tested(world, '--interest', `configmaps@${shop}`),
    ),
    'which rule gives it',
  )

  await world.put('more', { nodes: { names: [node] }, interests: [{ ...mapsOfShop, namespaces: ['elsewhere'] }] })
  findings.note(`it ends ${await world.untilKept('refused')} ms after its policy has changed`)
  const kept = await world.kept()
  findings.check(/by its own name/.test(kept?.why ?? ''), 'a sentence says why', kept?.why)
  const line = await tested(world, '--interest', `configmaps@${shop}`)
  findings.check(
    /may mirror configmaps@shop: no, no policy lets this edge hold it/.test(line),
    'and that none gives it',
    line,
  )

  await world.put('more', { nodes: { names: ['edge-*'] }, interests: [mapsOfShop] })
  await world.untilKept('synced')
  writing.abort()
  const last = await written
  const same = async () => {
    const [here, there] = await Promise.all([world.at('keeper', maps), ask(world.oracle, maps)])
    return here.status === 200 && wordsIn(here.body) === wordsIn(there.body) && here.body.includes(`word ${last}`)
  }
  await world.until('the edge has what was written last', same)
  findings.check(true, `${last} changes later the edge has what the API server has`)
}

async function checkTrust(world: PolicyWorld, findings: Findings): Promise<void> {
  const asAdministrator = async () => (await world.at('administrator', '/api/v1/namespaces/kube-public/secrets')).status
  findings.equal(await asAdministrator(), 403, 'the administrator of an edge is not passed on')
  await world.put('trusted', { nodes: { names: [node] }, trust: true })
  await world.until('it is trusted', async () => (await asAdministrator()) === 200)
  findings.check(/trusted: yes, by policy\/trusted spec.trust/.test(await tested(world)), 'which rule trusts it')
  await world.remove('trusted')
  await world.until('it is trusted no more', async () => (await asAdministrator()) === 403)
  findings.check(true, 'trust was given and taken away')
}

async function checkNever(world: PolicyWorld, findings: Findings): Promise<void> {
  await world.put('never', { neverMirrored: [mapsOfShop] })
  const gone = async () => {
    const kept = await world.kept()
    return kept?.state === 'refused' && kept.objects === 0
  }
  findings.note(`what is never mirrored is gone from the edge ${await world.until('it is gone', gone)} ms after`)
  const why = (await world.kept())?.why ?? ''
  findings.check(why.includes('policy/never spec.neverMirrored[0]'), 'a sentence says why', why)
  findings.equal((await world.at('keeper', `${maps}/first`)).status, 200, 'its callers are passed on')
  const lines = await tested(world, '--interest', `configmaps@${shop}`, '--never', 'configmaps')
  findings.check(
    /may mirror configmaps@shop: no, by policy\/never spec.neverMirrored\[0\]/.test(lines),
    'forbidding wins',
    lines,
  )
  findings.check(
    /never keeps configmaps: yes, by policy\/never/.test(lines),
    'all namespaces have it among them',
    lines,
  )
  await world.remove('never')
  findings.note(`it is back ${await world.untilKept('synced')} ms after the policy was deleted`)
}

/** Labels that choose a policy are the administrator's to give. */
async function checkLabels(world: PolicyWorld, findings: Findings): Promise<void> {
  await world.put('more', { nodes: { selector: { matchLabels: { [site]: 'berlin' } } }, interests: [limitsOfShop] })
  await world.untilKept('refused', 'limitranges')
  const { cert, key } = await world.oracle.nodeCredential(node)
  const path = `/api/v1/nodes/${node}`
  const own = await ask({ ...world.oracle, cert, key }, path, {
    ...{ method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' } },
    body: { metadata: { labels: { [site]: 'berlin' } } },
  })
  findings.equal(own.status, 403, `a node does not label itself into a policy (${own.body.slice(0, 200)})`)
  const labelled = await world.patch(path, [{ op: 'add', path: '/metadata/labels', value: { [site]: 'berlin' } }])
  findings.equal(labelled.status, 200, 'its administrator does')
  const withinMs = await world.untilKept('synced', 'limitranges')
  findings.note(`an interest is had ${withinMs} ms after the Node was labelled`)
}

async function checkStatus(world: PolicyWorld, findings: Findings): Promise<void> {
  const [, past] = Object.entries(pastSpecs)[0] as [string, object]
  await world.put('wrong', { ...past, trust: true })
  const rows = async () =>
    (await world.kubectl('get', 'edgepolicies'))
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/))
  const told = async () =>
    (await rows())
      .slice(1)
      .map(([name, edges, accepted]) => `${name} ${edges} ${accepted}`)
      .join()
  await world.until(
    'each policy has its status',
    async () => (await told()) === 'default 1 True,more 1 True,wrong 0 False',
  )
  findings.equal((await rows())[0], ['NAME', 'EDGES', 'ACCEPTED', 'AGE'], 'what kubectl prints')
  const wide = await world.kubectl('get', 'epol', '-o', 'wide')
  findings.check(/allows nothing: spec\.nodes\.selector/.test(wide), 'what is wrong with it', wide)
  findings.check(/policy\/wrong allows nothing/.test(await tested(world)), 'as the command says')
  const metrics = await world.hub.metrics()
  findings.check(/ake_hub_policies\{accepted="false"\} 1/.test(metrics), 'and the metrics of the hub')
  // What it writes is not what it goes by.
  const writes = /writes_total\{result="written"\} (\d+)/.exec(metrics)?.[1]
  findings.check(Number(writes) <= 12, 'statuses are written seldom', writes)
  await world.remove('wrong')
}

/** A limit outlives the end of its edge without the cloud. */
async function checkOffline(world: PolicyWorld, findings: Findings): Promise<void> {
  const status = async (path = `${maps}/first?resourceVersion=0`) => (await world.at('keeper', path)).status
  findings.equal(await status(), 200, 'a caller reads with the cloud')
  await world.put('offline', { offline: { serveAge: '4s' } })
  // It is told over the link, and there is no other sign of it than that it counts.
  await world.until('it was told', async () => /serveAge: 4s, by policy\/offline/.test(await tested(world)))
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  await world.link.set('blackhole')
  const isLate = async () => {
    const { status: code, body } = await world.at('keeper', `${maps}/first?resourceVersion=0`)
    return code === 503 && body.includes('spec.offline.serveAge')
  }
  findings.note(`answers end ${await world.until('answers end', isLate)} ms after the cut`)
  await world.edge.restart('kill')
  findings.check(await isLate(), 'started again without the cloud it remembers')
  await world.link.set('up')
  await world.until('it answers with the cloud', async () => (await status()) === 200)
  await world.put('offline', { offline: { tokenAge: '4s' } })
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  await world.link.set('blackhole')
  findings.note(`tokens end ${await world.until('tokens end', async () => (await status()) === 401)} ms after the cut`)
  const administrator = await world.at('administrator', `${maps}/first?resourceVersion=0`)
  findings.equal(administrator.status, 200, 'who needs no token goes on')
  await world.link.set('up')
  await world.until('tokens count with the cloud', async () => (await status()) === 200)
}

function tested(world: PolicyWorld, ...question: string[]): Promise<string> {
  return world.ake('hub', 'policy', 'test', '--node', node, ...question)
}

/** Until the signal; answers the last word. */
async function write(world: PolicyWorld, signal: AbortSignal): Promise<number> {
  for (let at = 0; ; at++) {
    const { status, body } = await world.patch(`${maps}/first`, [
      { op: 'replace', path: '/data/word', value: `word ${at}` },
    ])
    if (status !== 200) throw new Error(`a write: ${status} ${body}`)
    if (signal.aborted) return at
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function wordsIn(list: string): string {
  const { items } = JSON.parse(list) as { items: { metadata: { name: string }; data?: { word?: string } }[] }
  return items.map(({ metadata, data }) => `${metadata.name}=${data?.word ?? ''}`).join()
}
