/**
 * A real Prometheus scrapes a real edge with the configuration that docs/operations.md prints: promtool takes the rules of
 * deploy/, every alert asks for what the edge tells, the important ones begin and end with what they are about, also while the
 * cloud is cut, and every panel of the board has something to show.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { until } from '../../src/base/until.test-support.ts'
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import { Findings } from '../findings.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Oracle } from '../oracle.ts'
import { buildPrometheus, type Prometheus, type Rule, runPromtool, startPrometheus } from '../prometheus.ts'
import { applyRbac, creatorOf } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { startEdge } from './edge.ts'
import { keepAsking, rulesFile, scrapeConfig, scraperToken } from './scraping.ts'

/** Most of it is the first build of Prometheus. */
export const step: Step = { name: 'edge-prometheus', tier: 'all', minutes: 6, run }

const boardFile = join(import.meta.dirname, '..', '..', 'deploy', 'grafana-board.json')

const node = 'edge-prometheus-1'
const user = 'edge-metrics'
const groups = ['ake:edges']
const pods = '/api/v1/namespaces/default/pods'

/** Some scrapes and evaluations, a second apart, on a busy machine. */
const seenMsMax = 60_000

/** What they are about is this machine, which may be busy. */
const ofMachine: ReadonlySet<string> = new Set(['AkeSlow'])

type RulesDocument = { groups: { rules: { alert: string; expr: string }[] }[] }
type Board = {
  templating: { list: { name: string; query: string }[] }
  panels: { title: string; targets: { expr: string }[] }[]
}

/** What the parts below share; the edge is another one after it was killed. */
type World = {
  readonly oracle: Oracle
  readonly link: Link
  readonly prometheus: Prometheus
  readonly findings: Findings
  edge: Ake
  readonly startAgain: () => Promise<Ake>
}

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  await mkdir(dir, { recursive: true })
  const findings = new Findings()
  const promtool = await buildPrometheus('promtool', progress)
  const program = await buildPrometheus('prometheus', progress)
  await findings.part('promtool', () => checkRules(promtool, findings))
  // Prometheus would not start with them, and say less.
  if (findings.result.failed > 0) return findings.result
  const oracle = await context.oracle()
  await applyRbac(oracle)
  const { kubeconfig } = await oracle.userCredential(user, groups)
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const args = ['--mirror', 'configmaps', '--node', node, '--probe-every', '1s']
  const options = { dir: join(dir, 'edge'), server: link.url, kubeconfig, args, signal }
  const ending = new AbortController()
  let world: World | undefined
  let edge: Ake | undefined
  try {
    edge = await startEdge(options)
    const { port } = edge
    const config = await scrapeConfig(dir, edge, await scraperToken(oracle))
    const prometheus = await startPrometheus({ program, dir, config, signal })
    world = { oracle, link, prometheus, findings, edge, startAgain: () => startEdge({ ...options, port }) }
    const shared = world
    const traffic = keepAsking(() => shared.edge, ending.signal)
    for (const [name, part] of parts) {
      progress(name)
      await findings.part(name, () => part(shared))
    }
    await findings.part('metrics', () => checkMetrics(promtool, shared))
    ending.abort()
    await traffic
    return findings.result
  } finally {
    ending.abort()
    await world?.prometheus.stop()
    await (world?.edge ?? edge)?.kill()
    await link.close()
  }
}

const parts: readonly (readonly [name: string, part: (world: World) => Promise<void>])[] = [
  ['all is well', allIsWell],
  ['the line is cut', lineIsCut],
  ['the board', board],
  ['a credential ends', credentialEnds],
  ['a pod whose token is not kept', tokenNotKept],
  ['the edge is killed', edgeIsKilled],
]

async function checkRules(promtool: string, findings: Findings): Promise<void> {
  const { code, said } = await runPromtool(promtool, ['check', 'rules', '--lint-fatal', rulesFile])
  findings.equal(code, 0, `promtool check rules: ${said}`)
  findings.check(said.includes(`SUCCESS: ${(await alertRules()).length} rules found`), 'it finds every rule', said)
}

/** Names, types and help as Prometheus would have them. */
async function checkMetrics(promtool: string, { edge, findings }: World): Promise<void> {
  const administrator = new Seat(edge, edge)
  const { body } = await administrator.ask('/metrics')
  administrator.close()
  const { code, said } = await runPromtool(promtool, ['check', 'metrics'], body)
  findings.equal(code, 0, `promtool check metrics: ${said}`)
}

async function alertRules(): Promise<readonly { alert: string; expr: string }[]> {
  return (load(await readFile(rulesFile, 'utf8')) as RulesDocument).groups.flatMap(({ rules }) => rules)
}

async function allIsWell({ prometheus, findings }: World): Promise<void> {
  const survives = async () => (await prometheus.query('ake_survives_reboot == 1')).samples.length === 1
  await settles('scraped, and the node would survive', survives)
  const { samples } = await prometheus.query('up{job="ake"} == 1')
  findings.equal(samples.length, 1, 'every line of /metrics is understood')
  const wanted = await alertRules()
  await settles('every rule was evaluated', async () =>
    (await prometheus.rules()).every(({ health }) => health !== 'unknown'),
  )
  const rules = await prometheus.rules()
  findings.equal(rules.map(({ name }) => name).sort(), wanted.map(({ alert }) => alert).sort(), 'every rule is loaded')
  for (const { name, health, lastError = '' } of rules) findings.equal(health, 'ok', `${name} evaluates: ${lastError}`)
  // What waited for its first list may have been pending for a moment.
  const isQuiet = async () =>
    (await prometheus.rules()).every(({ name, state }) => state === 'inactive' || ofMachine.has(name))
  await settles('every alert is inactive while all is well', isQuiet)
  for (const { alert, expr } of wanted) {
    await checkUnderstood(prometheus, findings, alert, expr)
    for (const selector of selectorsIn(expr)) {
      // What a hub tells no edge does: test/metrics.test.ts holds those alerts against a hub.
      if (selector.startsWith('ake_hub_')) continue
      const found = (await prometheus.query(selector)).samples.length
      findings.check(found > 0, `${alert}: the edge tells ${selector}`)
    }
  }
}

/** Firing, it also tells that the edge knows its scraper without the API server. */
async function lineIsCut(world: World): Promise<void> {
  const { link, prometheus, findings } = world
  await link.set('refuse')
  const alert = await firing(world, 'AkeCloudUnreachable')
  findings.equal(alert.labels.state, 'unreachable', 'the alert names the state')
  const refused = 'sum(increase(ake_refused_writes_total{resource="configmaps"}[5m]))'
  const isCounted = async () => Number((await prometheus.query(refused)).samples[0]?.value[1] ?? 0) > 0
  await settles('writes that are refused are counted by resource', isCounted)
  await link.set('up')
  await inactive(world, 'AkeCloudUnreachable')
}

/** After an outage every panel has had its cause. */
async function board({ prometheus, findings }: World): Promise<void> {
  const { panels, templating } = JSON.parse(await readFile(boardFile, 'utf8')) as Board
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      const expression = expr.replaceAll('$instance', '.*')
      await checkUnderstood(prometheus, findings, title, expression)
      const { samples } = await prometheus.query(expression)
      findings.check(samples.length > 0, `the panel "${title}" has something to show`, expr)
    }
  }
  for (const { name, query } of templating.list) {
    const [, selector = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? []
    if (selector === '') continue
    const values = await prometheus.labelValues(label, selector)
    findings.check(values.length > 0, `the variable ${name} has values to choose from`, query)
  }
}

async function credentialEnds(world: World): Promise<void> {
  const { oracle, findings } = world
  // The kubeconfig of the edge is written anew in its place, as a renewal does it.
  await oracle.userCredential(user, groups, 1)
  const { labels } = await firing(world, 'AkeCredentialExpires')
  findings.equal(labels.use, 'edge', 'it says whose credential ends')
  await oracle.userCredential(user, groups)
  await inactive(world, 'AkeCredentialExpires')
}

/** No kubelet asks for its token here, as one does that does not use this edge. */
async function tokenNotKept(world: World): Promise<void> {
  const { oracle } = world
  const spec = { nodeName: node, containers: [{ name: 'c', image: 'i' }] }
  await creatorOf(oracle)(pods, { metadata: { name: node }, spec })
  await firing(world, 'AkeRebootNotSurvived')
  const { status, body } = await ask(oracle, `${pods}/${node}?gracePeriodSeconds=0`, { method: 'DELETE' })
  if (status !== 200) throw new Error(`the pod is not deleted: ${status} ${body}`)
  await inactive(world, 'AkeRebootNotSurvived')
}

async function edgeIsKilled(world: World): Promise<void> {
  await world.edge.kill()
  await firing(world, 'AkeNotScraped')
  world.edge = await world.startAgain()
  await inactive(world, 'AkeNotScraped')
}

/** From inactive to firing, with texts that were filled in; throws if it does not come. */
async function firing({ prometheus, findings }: World, name: string): Promise<Rule['alerts'][number]> {
  const found = await settles(`${name} fires`, async () =>
    (await ruleOf(prometheus, name))?.alerts.find(({ state }) => state === 'firing'),
  )
  const texts = Object.values(found.annotations).join(' ')
  findings.check(
    texts !== '' && !/<error|<no value>|\{\{/.test(texts),
    `${name} fires, and its texts are filled in`,
    texts,
  )
  return found
}

async function inactive({ prometheus, findings }: World, name: string): Promise<void> {
  await settles(`${name} is over`, async () => (await ruleOf(prometheus, name))?.state === 'inactive')
  findings.check(true, `${name} ends with its cause`)
}

async function ruleOf(prometheus: Prometheus, name: string): Promise<Rule | undefined> {
  return (await prometheus.rules()).find((rule) => rule.name === name)
}

async function checkUnderstood(
  prometheus: Prometheus,
  findings: Findings,
  where: string,
  expression: string,
): Promise<void> {
  const { notes } = await prometheus.query(expression)
  findings.equal(notes, [], `${where} is understood as it is meant`)
}

/** Each metric that an expression names, with its matchers and without what is computed of it. */
function selectorsIn(expression: string): string[] {
  return [...expression.matchAll(/\b(?:(?:ake|process)_\w+|up\b)(?:\{[^}]*\})?/g)].map(String)
}

function settles<Found>(what: string, look: () => Promise<Found>): Promise<Exclude<Found, false | undefined>> {
  return until(look, what, { withinMs: seenMsMax, everyMs: 500 })
}
