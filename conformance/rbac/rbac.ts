/**
 * What roles and bindings allow, asked of a real kube-apiserver and of `src/access/rbac`: generated roles and bindings beside the
 * default ones, generated questions by SubjectAccessReview, again after each of 200 changes; rules reviews; and the rules of
 * aggregated roles beside those that the controller of Kubernetes writes. `AKE_SEED=N` repeats a run.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { aggregatedRules, readAggregable } from '../../src/access/rbac/aggregation.ts'
import type { RbacResource } from '../../src/access/rbac/rbac.ts'
import { rulesStatus } from '../../src/access/rbac/rulesreview.ts'
import { Random } from '../apply/random.ts'
import { Seat } from '../asking.ts'
import { Findings } from '../findings.ts'
import { startOracle } from '../oracle.ts'
import { chooseSeed } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { pathOf, RbacCopy, type RoleBody, rbacResources } from './copy.ts'
import { makeObject, makeQuestion, makeSubjects, namespaces, pickKey, type Question } from './generate.ts'
import { faultsIn, possible } from './model.ts'

export const step: Step = { name: 'rbac', tier: 'default', minutes: 3, run }

const objectsAtFirst = 120
const changes = 200
const atOnce = 16
/** The API server's authorizer follows its own watch: what was written a moment ago it may not know yet. */
const settledWithinMs = 10_000
const againMs = 50

type Bench = {
  readonly seat: Seat
  readonly copy: RbacCopy
  readonly random: Random
  readonly findings: Findings
  readonly signal: AbortSignal
}

async function run(context: StepContext): Promise<StepResult> {
  const findings = new Findings()
  const seed = chooseSeed({ all: context.all, gate: 297_278 })
  findings.note(`seed ${seed}`)
  context.progress(`seed ${seed}`)
  const { questions, perChange, reviews } = context.all
    ? { questions: 30_000, perChange: 200, reviews: 1_000 }
    : { questions: 5_000, perChange: 25, reviews: 200 }
  await mkdir(context.dir, { recursive: true })
  // Its own, since what is bound here would give rights in other proofs; the controller fills aggregated roles.
  const oracle = await startOracle({
    dir: join(context.dir, 'oracle'),
    controllers: ['--controllers=clusterrole-aggregation-controller'],
    signal: context.signal,
    progress: context.progress,
  })
  const seat = new Seat(oracle, oracle)
  const copy = new RbacCopy(seat)
  const bench: Bench = { seat, copy, random: new Random(seed), findings, signal: context.signal }
  try {
    for (const name of namespaces) {
      await seat.ask('/api/v1/namespaces', { method: 'POST', body: { metadata: { name } } })
    }
    await copy.open()
    for (let i = 0; i < objectsAtFirst; i++) await change(bench, 'make')
    await findings.part('questions', () => askAll(bench, questions))
    context.progress(`${questions} questions asked`)
    await findings.part('questions after each change', async () => {
      for (let i = 0; i < changes; i++) {
        await change(bench, bench.random.pick(['make', 'make', 'remove']))
        await askAll(bench, perChange)
        if (i % 50 === 49) context.progress(`${i + 1} changes`)
      }
    })
    await findings.part('rules reviews', () => inTurns(reviews, () => checkRules(bench)))
    await findings.part('aggregated roles', () => checkAggregated(bench))
  } finally {
    copy.close()
    seat.close()
    oracle.stop()
  }
  return findings.result
}

/** Makes, changes or deletes one object; what is refused (a binding's role cannot change) is made anew. */
async function change({ seat, copy, random }: Bench, how: 'make' | 'remove'): Promise<void> {
  const resource: RbacResource = random.pick(rbacResources)
  const key = pickKey(random, resource)
  const body = makeObject(random, resource, key)
  const path = pathOf(resource, key)
  const collection = path.slice(0, path.lastIndexOf('/'))
  const held = (resource.endsWith('bindings') ? copy.held.bindings : copy.held.roles).get(key)
  if (held === undefined && how === 'remove') return
  if (held !== undefined) {
    const isSame = resource.endsWith('bindings') && random.chance(0.5)
    const changed = isSame ? { ...held, subjects: makeSubjects(random, !key.includes('/')) } : body
    const { metadata, ...rest } = changed
    const put = { ...rest, metadata: { ...metadata, resourceVersion: undefined } }
    const asked = how === 'remove' ? { method: 'DELETE' } : { method: 'PUT', body: put }
    const answer = await seat.ask(path, asked)
    if (answer.status === 200) return await copy.reach(resource, versionOf(answer.body))
    await copy.reach(resource, versionOf((await seat.ask(path, { method: 'DELETE' })).body))
  }
  const made = await seat.ask(collection, { method: 'POST', body })
  if (made.status !== 201) throw new Error(`POST ${collection} ${JSON.stringify(body)}: ${made.status} ${made.body}`)
  await copy.reach(resource, versionOf(made.body))
}

/** Of the object in an answer; a deletion is answered with a Status, and comes by the watch before the next change is asked. */
function versionOf(body: string): number {
  const { metadata } = JSON.parse(body) as { metadata?: { resourceVersion?: string } }
  return Number(metadata?.resourceVersion ?? 0)
}

async function inTurns(count: number, one: () => Promise<void>): Promise<void> {
  let left = count
  const worker = async () => {
    while (left-- > 0) await one()
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

function askAll(bench: Bench, count: number): Promise<void> {
  return inTurns(count, () => checkQuestion(bench, makeQuestion(bench.random, bench.copy.held)))
}

async function checkQuestion(bench: Bench, question: Question): Promise<void> {
  const said = () => differenceOf(bench, question)
  const difference = await settled(bench, said)
  bench.findings.check(difference === '', JSON.stringify(question), difference)
}

/** '' when there is none within the time that the API server may be behind. */
async function settled({ signal }: Bench, look: () => Promise<string>): Promise<string> {
  const end = performance.now() + settledWithinMs
  for (;;) {
    const difference = await look()
    if (difference === '' || performance.now() > end) return difference
    signal.throwIfAborted()
    await pause(againMs)
  }
}

async function differenceOf({ seat, copy }: Bench, { caller, wish }: Question): Promise<string> {
  const { verb, path, ...resource } = wish
  const about =
    wish.resource === '' ? { nonResourceAttributes: { verb, path } } : { resourceAttributes: { verb, ...resource } }
  const { name: user, uid, groups } = caller
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, uid, groups, ...about },
  }
  const answer = await seat.ask('/apis/authorization.k8s.io/v1/subjectaccessreviews', { method: 'POST', body })
  if (answer.status !== 201) return `${answer.status} ${answer.body}`
  const real = (JSON.parse(answer.body) as { status: { allowed: boolean; reason?: string } }).status
  const ours = copy.rbac.judge(caller, wish)
  const { reasons, faults } = possible(copy.held, caller, wish)
  const isSame =
    real.allowed === ours.allowed &&
    [real.reason ?? '', ours.reason].every((reason) =>
      real.allowed ? reasons.has(reason) : sameSet(faultsIn(reason), faults),
    )
  return isSame ? '' : JSON.stringify({ real, ours, reasons: [...reasons], faults: [...faults] })
}

function sameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && a.isSubsetOf(b)
}

/** In the caller's name by impersonation, to which every caller but the anonymous one is authenticated. */
async function checkRules(bench: Bench): Promise<void> {
  const { random, copy, findings } = bench
  let { caller } = makeQuestion(random, copy.held)
  // A header takes no more than these letters, and what is anonymous is told so by more than its name.
  while (!/^[\x20-\x7e]+$/.test(caller.name) || caller.name === 'system:anonymous') {
    caller = makeQuestion(random, copy.held).caller
  }
  const groups = [
    ...new Set([...caller.groups.filter((one) => !one.endsWith('authenticated')), 'system:authenticated']),
  ]
  const namespace = random.pick([...namespaces, 'kube-system'])
  const asked = { ...caller, uid: '', groups }
  const look = () => rulesDifference(bench, asked, namespace)
  findings.check((await settled(bench, look)) === '', `rules of ${JSON.stringify(asked)} in ${namespace}`, await look())
}

async function rulesDifference({ seat, copy }: Bench, caller: Question['caller'], namespace: string): Promise<string> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  }
  const headers = { 'Impersonate-User': caller.name, 'Impersonate-Group': caller.groups as string[] }
  const answer = await seat.ask('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    method: 'POST',
    body,
    headers: headers as unknown as Record<string, string>,
  })
  if (answer.status !== 201) return `${answer.status} ${answer.body}`
  const { status } = JSON.parse(answer.body) as { status: ReturnType<typeof rulesStatus> }
  const [real, ours] = [unordered(status), unordered(rulesStatus(copy.rbac.rulesOf(caller, namespace)))]
  return real === ours ? '' : `${real} and ours ${ours}`
}

function unordered(status: ReturnType<typeof rulesStatus>): string {
  const { resourceRules, nonResourceRules, incomplete, evaluationError = '', ...rest } = status
  const sorted = (rules: readonly object[]) => rules.map((rule) => JSON.stringify(inOrder(rule))).sort()
  const faults = [...faultsIn(evaluationError)].sort()
  return JSON.stringify([sorted(resourceRules), sorted(nonResourceRules), incomplete, faults, rest])
}

function inOrder(rule: object): object {
  return Object.fromEntries(Object.entries(rule).sort(([a], [b]) => (a < b ? -1 : 1)))
}

async function checkAggregated(bench: Bench): Promise<void> {
  const { copy, findings } = bench
  const roles = () => [...copy.held.roles.values()].filter(({ metadata }) => metadata.namespace === undefined)
  const read = (role: RoleBody) => readAggregable(Buffer.from(JSON.stringify(role)))
  for (const { metadata, aggregationRule } of roles()) {
    if (aggregationRule === undefined) continue
    const look = async () => {
      const role = read(copy.held.roles.get(metadata.name) as RoleBody)
      const [real, ours] = [role.rules, aggregatedRules(role, roles().map(read))].map((rules) => JSON.stringify(rules))
      return real === ours ? '' : `${real} and ours ${ours}`
    }
    const difference = await settled(bench, look)
    findings.check(difference === '', `the rules of ${metadata.name}`, difference)
  }
}
