/**
 * The reads of the corpus through `ake edge`: online beside the API server's own answers, then with the line cut and after a
 * kill while it is cut, against the answers that the API server gave just before. Bytes against bytes; what is not equal is
 * in the table of docs/api.md or fails.
 */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseRequest } from '../../src/kube/request.ts'
import type { Ake } from '../ake.ts'
import { type Case, post } from '../corpus.ts'
import { type Answer, Side, take, type Variables } from '../exchange.ts'
import { putBetween } from '../hubs.ts'
import { startLink } from '../link.ts'
import { admits, type Listed, listedIn } from '../listed/listed.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { type Outcome, verdict } from '../verdict.ts'
import { byteDifferences, isForwarded } from './bytes.ts'
import { type Asked, edgeGroups, startOf } from './cases.ts'
import { startEdge } from './edge.ts'
import { type Phase, peerChecks, preparePeers } from './peers.ts'

/** Watches of two seconds each are most of the time; more at once would queue at the API server. */
const atOnce = 12
/** An idle link to a hub asks for a sign of life every half a minute. */
const stateMsMax = 60_000
const lookAgainMs = 100
/** So long nothing may have moved before it counts as standing still. */
const quietMs = 1_500

/** How soon a change is looked for, and how long at most. */
const [toldLookMs, toldMsMax] = [50, 5_000]
/** How often a read is asked again of which the edge says that the API server, on a busy machine, did not answer in time. */
const lateMax = 3

export const step: Step = { name: 'edge-reads', tier: 'default', minutes: 3, run: (context) => run(context, false) }

/** The same through a hub. */
export const hubStep: Step = { name: 'hub-reads', tier: 'all', minutes: 4, run: (context) => run(context, true) }

async function run(context: StepContext, isBehindHub: boolean): Promise<StepResult> {
  const { dir, signal, progress } = context
  const listed = listedIn('edge differences')
  const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  // Compressed answers are compared too, as clients on other machines get them.
  const args = ['--compress', 'all']
  const between = isBehindHub ? await putBetween({ dir, oracle, link, signal }) : undefined
  const way = between?.way ?? { server: link.url, kubeconfig: oracle.kubeconfig }
  const options = { dir: join(dir, 'edge'), ...way, args, signal }
  let edge = await startEdge(options)
  try {
    const proof = new Proof(oracle, listed, context)
    const peers: Outcome[] = []
    const prove = async (phase: Phase) => {
      peers.push(...(await peerChecks(phase, edge)))
      if (phase !== 'returned') await proof.compare(phase, edge)
    }
    await proof.prepare()
    await preparePeers(oracle, edge, () => untilState(edge, 'reachable'))
    await proof.warm(edge)
    await untilQuiet(edge, signal)
    await proof.live(edge, isBehindHub)
    await untilQuiet(edge, signal)
    await proof.baseline()
    await prove('online')

    await link.set('refuse')
    await untilState(edge, 'unreachable')
    await prove('offline')
    await edge.kill()
    edge = await startEdge({ ...options, port: edge.port })
    await prove('restarted')

    await link.set('up')
    await untilState(edge, 'reachable')
    await untilQuiet(edge, signal)
    await link.set('blackhole')
    await untilState(edge, 'unreachable')
    await ask(oracle, '/api/v1/namespaces/peers/configmaps/ghost', { method: 'DELETE' })
    await prove('blackhole')

    await link.set('up')
    await untilState(edge, 'reachable')
    await untilQuiet(edge, signal)
    await prove('returned')
    const result = verdict(
      [...peers, ...proof.outcomes],
      listed,
      edgeGroups.every(({ name }) => context.only(name)),
    )
    return { ...result, notes: [...(result.notes ?? []), ...proof.figures] }
  } finally {
    await edge.kill()
    await between?.hub.end('kill')
    await link.close()
    oracle.stop()
  }
}

/** Behind a hub what changes twice within a moment is told once (L1), which is no difference worth telling: each is told before the next. */
async function untilTold([real, ours]: readonly { said?(): number }[]): Promise<void> {
  const give = performance.now() + toldMsMax
  do await pause(toldLookMs)
  while (performance.now() < give && (ours?.said?.() ?? 0) < (real?.said?.() ?? 0))
}

function isLate({ headers }: Answer): boolean {
  return /has not answered within/.test(String(headers.warning))
}

type Status = {
  readonly upstream: { readonly state: string }
  readonly interests: readonly { readonly state: string; readonly resourceVersion: number }[]
}

async function statusOf(edge: Ake): Promise<Status> {
  return JSON.parse((await ask(edge, '/ake/status')).body) as Status
}

async function untilState(edge: Ake, state: string): Promise<void> {
  const give = performance.now() + stateMsMax
  while ((await statusOf(edge)).upstream.state !== state) {
    if (performance.now() > give) throw new Error(`the edge did not find its API server ${state}`)
    await pause(lookAgainMs)
  }
}

/** Every interest is synced, and none has moved for a while. */
async function untilQuiet(edge: Ake, signal: AbortSignal): Promise<void> {
  const give = performance.now() + stateMsMax
  let before = ''
  let since = performance.now()
  for (;;) {
    const { interests } = await statusOf(edge)
    const now = JSON.stringify(interests.map(({ state, resourceVersion }) => [state, resourceVersion]))
    if (now !== before) since = performance.now()
    before = now
    const behind = interests.filter(({ state }) => state !== 'synced' && state !== 'fed')
    if (behind.length === 0 && performance.now() - since > quietMs) return
    if (performance.now() > give) throw new Error(`not synced: ${JSON.stringify(behind.slice(0, 3))}`)
    await pause(lookAgainMs, undefined, { signal })
  }
}

/** All groups against one API server and the edge in front of it, with what the API server said. */
class Proof {
  readonly outcomes: Outcome[] = []
  readonly figures: string[] = []
  readonly #oracle: Oracle
  readonly #listed: readonly Listed[]
  readonly #groups: readonly Asked[]
  readonly #context: StepContext
  /** By group, what its writes told; the rest of what the corpus calls by names is taken from the server that is asked. */
  readonly #start = new Map<string, Variables>()
  readonly #answers = new Map<Case, Answer>()

  constructor(oracle: Oracle, listed: readonly Listed[], context: StepContext) {
    this.#oracle = oracle
    this.#listed = listed
    this.#context = context
    this.#groups = edgeGroups.filter(({ name }) => context.only(name))
  }

  async prepare(): Promise<void> {
    const real = new Side(this.#oracle)
    for (const { name, namespaces, writes } of this.#groups) {
      const told: Variables = new Map()
      this.#start.set(name, told)
      for (const namespace of namespaces) {
        await real.exchange(post('', '/api/v1/namespaces', { metadata: { name: namespace } }), new Map())
        const account = { metadata: { name: 'default' } }
        await real.exchange(post('', `/api/v1/namespaces/${namespace}/serviceaccounts`, account), new Map())
      }
      for (const one of writes) await this.#write(real, one, told)
    }
    real.close()
  }

  async #write(real: Side, one: Case, told: Variables): Promise<void> {
    for (let again = 0; ; again++) {
      const answer = await real.exchange(one, told)
      const { status, body } = answer
      if (status < 300 && (one.until === undefined || one.until(body))) return take(one, answer, told)
      if (one.until === undefined || again > stateMsMax / lookAgainMs)
        throw new Error(`the API server did not take ${one.name}: ${status} ${body}`)
      await pause(lookAgainMs)
    }
  }

  /** Everything twice: what a list alone does not begin, its repetition does. */
  async warm(edge: Ake): Promise<void> {
    const { body } = await ask(edge, `${startOf.path}?resourceVersion=0`)
    const { metadata } = JSON.parse(body) as { metadata: { resourceVersion: string } }
    this.#start.get(startOf.group)?.set(startOf.variable, metadata.resourceVersion)
    for (const _ of [1, 2]) await this.#all(new Side(edge), 0, () => {})
  }

  /** Changes are written once, to the API server; both streams are to tell them. */
  async live(edge: Ake, isBehindHub: boolean): Promise<void> {
    const [real, ours] = [new Side(this.#oracle), new Side(edge)]
    for (const { name, live } of this.#groups) {
      for (const one of live) {
        const variables = this.#variablesOf(name)
        const streams = await Promise.all([real.watch(one, variables), ours.watch(one, variables)])
        for (const inner of one.watch?.during ?? []) {
          await real.exchange(inner, variables)
          if (isBehindHub) await untilTold(streams)
        }
        const [told, heard] = await Promise.all(streams.map((stream) => stream.finish()))
        this.#judge(`live/${name}/${one.name}`, one, told as Answer, heard as Answer)
      }
    }
    real.close()
    ours.close()
  }

  async baseline(): Promise<void> {
    await this.#all(new Side(this.#oracle), 0, (_, one, answer) => this.#answers.set(one, answer))
  }

  async compare(phase: string, edge: Ake): Promise<void> {
    const started = performance.now()
    const seen = this.outcomes.length
    let forwarded = 0
    let unknown = 0
    const passed: string[] = []
    const patience = phase === 'online' ? lateMax : 0
    const late = await this.#all(new Side(edge), patience, (group, one, answer) => {
      if (isForwarded(answer)) {
        forwarded++
        if (isCovered(one, answer)) passed.push(one.path)
      }
      if (answer.status === 503) unknown++
      this.#judge(`${phase}/${group}/${one.name}`, one, this.#answers.get(one) as Answer, answer)
    })
    const these = this.outcomes.slice(seen)
    this.outcomes.push({
      name: `${phase}/covered lists and watches cost the API server nothing`,
      open: passed.map((path) => ({ field: 'forwarded', real: 'not asked', ours: path })),
      listed: new Set(),
    })
    const equal = these.filter(({ open, listed }) => open.length + listed.size === 0).length
    const open = these.filter((one) => one.open.length > 0).length
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    this.figures.push(
      `${phase}: ${these.length} reads, ${equal} identical, ${these.length - equal - open} listed, ${open} others; ` +
        `${these.length - forwarded} answered by the edge itself, ${unknown} by 503; ${seconds} s` +
        (late > 0 ? `; ${late} asked again, since the API server was late` : ''),
    )
    this.#context.progress(this.figures.at(-1) as string)
  }

  /** Cases that take something go first, one after the other; the rest depends on nothing. */
  async #all(side: Side, timesMax: number, told: (group: string, one: Case, answer: Answer) => void): Promise<number> {
    let late = 0
    const open: (() => Promise<void>)[] = []
    for (const { name, reads } of this.#groups) {
      const variables = this.#variablesOf(name)
      const one = async (read: Case) => {
        this.#context.signal.throwIfAborted()
        const ask = async () =>
          read.watch === undefined
            ? await side.exchange(read, variables)
            : await (await side.watch(read, variables)).finish()
        let answer = await ask()
        for (let again = 0; again < timesMax && isLate(answer); again++) {
          late++
          answer = await ask()
        }
        take(read, answer, variables)
        told(name, read, answer)
      }
      for (const read of reads.filter(({ take }) => take !== undefined)) await one(read)
      for (const read of reads.filter(({ take }) => take === undefined)) open.push(() => one(read))
    }
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        for (let next = open.shift(); next !== undefined; next = open.shift()) await next()
      }),
    )
    side.close()
    return late
  }

  #variablesOf(group: string): Variables {
    return new Map(this.#start.get(group))
  }

  #judge(name: string, one: Case, real: Answer, ours: Answer): void {
    this.outcomes.push(outcomeOf(name, byteDifferences(one, real, ours), this.#listed))
  }
}

/** Everything was asked before: lists and watches of what is mirrored need nobody else any more. Pages may be another's. */
function isCovered({ path, method }: Case, { status }: Answer): boolean {
  if (method !== 'GET' || status !== 200 || path.includes('continue=')) return false
  const { isResource, resource, verb, query } = parseRequest(method, path)
  // A list at exactly a version from before the copy's history is the API server's to give.
  const isExact = query.get('resourceVersionMatch') === 'Exact' || query.has('limit')
  if (verb === 'list' && isExact && Number(query.get('resourceVersion') ?? 0) > 0) return false
  return isResource && resource !== 'events' && (verb === 'list' || verb === 'watch')
}

function outcomeOf(name: string, found: Outcome['open'], entries: readonly Listed[]): Outcome {
  const listed = new Set<string>()
  const open = found.filter(({ field }) => {
    const admitting = entries.filter((entry) => admits(entry, name, field))
    for (const { id } of admitting) listed.add(id)
    return admitting.length === 0
  })
  return { name, open, listed }
}
