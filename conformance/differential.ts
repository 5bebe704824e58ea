/**
 * The differential step: every case of the corpus to `ake serve` and to a real kube-apiserver, answer by answer. Reads are
 * asked over HTTP/1.1 and HTTP/2, writes and watches over one of them in turn.
 */
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { differences, read } from './compare.ts'
import { groups } from './corpus/groups.ts'
import { type Case, type Group, post } from './corpus.ts'
import { type Answer, Side, take, type Variables } from './exchange.ts'
import { admits, type Listed, listedIn } from './listed/listed.ts'
import { Mapping } from './mapping.ts'
import { startOracle } from './oracle.ts'
import type { Protocol } from './protocols.ts'
import type { Step, StepContext, StepResult } from './step.ts'
import { type Outcome, verdict } from './verdict.ts'

/** For what the real server's controllers do; ours has done it before it answers. */
const awaitMsMax = 10_000
const awaitEveryMs = 100

export const step: Step = {
  name: 'differential',
  tier: 'default',
  minutes: 4,
  async run(context: StepContext): Promise<StepResult> {
    const listed = listedIn()
    const chosen = groups.filter(({ name }) => context.only(name))
    if (chosen.length === 0) throw new Error(`the groups are ${groups.map(({ name }) => name).join(', ')}`)
    // Not the shared one: lists across a whole cluster are compared too, so both sides begin empty.
    const oracle = await startOracle({ dir: join(context.dir, 'oracle'), ...parts(context) })
    const real = new Side(oracle)
    // Compressed answers are compared too, as clients on other machines get them.
    const ours = new Side(await context.ake({ args: ['--compress', 'all'] }))
    const outcomes: Outcome[] = []
    try {
      for (const group of chosen) {
        context.signal.throwIfAborted()
        const comparison = new Comparison(real, ours, listed, true)
        outcomes.push(...(await comparison.run(group)))
        const open = outcomes.filter((one) => one.open.length > 0).length
        context.progress(`${group.name}: ${outcomes.length} cases so far, ${open} with unlisted differences`)
      }
    } finally {
      real.close()
      ours.close()
      oracle.stop()
    }
    return verdict(outcomes, listed, chosen.length === groups.length)
  },
}

function parts({ signal, progress }: StepContext): Pick<StepContext, 'signal' | 'progress'> {
  return { signal, progress }
}

/** In whatever form it speaks to its server. */
type Speaking = Pick<Side, 'exchange' | 'watch'>

/** One group against both servers, with what each has said so far. */
export class Comparison {
  readonly #sides: readonly [Speaking, Speaking]
  readonly #listed: readonly Listed[]
  readonly #http2: boolean
  readonly #mappings: readonly [Mapping, Mapping]
  readonly #variables: readonly [Variables, Variables] = [new Map(), new Map()]
  readonly #outcomes: Outcome[] = []
  /** Writes and watches so far: every second one goes over HTTP/2. */
  #turns = 0

  constructor(real: Speaking, ours: Speaking, listed: readonly Listed[], http2 = false) {
    this.#sides = [real, ours]
    this.#listed = listed
    this.#http2 = http2
    this.#mappings = [new Mapping(Date.now()), new Mapping(Date.now())]
  }

  async run(group: Group): Promise<readonly Outcome[]> {
    for (const namespace of group.namespaces ?? [group.name]) {
      const account = { metadata: { name: 'default' } }
      await this.#both(post('', '/api/v1/namespaces', { metadata: { name: namespace } }), 'HTTP/1.1')
      await this.#both(post('', `/api/v1/namespaces/${namespace}/serviceaccounts`, account), 'HTTP/1.1')
    }
    for (const one of group.cases) await this.#case(one, group.name)
    return this.#outcomes
  }

  async #case(one: Case, group: string): Promise<void> {
    if (one.until !== undefined) return this.#await(one)
    const changes = one.watch !== undefined || (one.method !== 'GET' && one.method !== 'HEAD')
    const protocol: Protocol = this.#http2 && changes && this.#turns++ % 2 === 1 ? 'HTTP/2' : 'HTTP/1.1'
    if (one.watch === undefined) {
      this.#judge(one, group, await this.#both(one, protocol), protocol)
      if (this.#http2 && !changes) this.#judge(one, group, await this.#both(one, 'HTTP/2'), 'HTTP/2')
      return
    }
    const [real, ours] = this.#sides
    const [realVariables, ourVariables] = this.#variables
    const streams = await Promise.all([
      real.watch(one, realVariables, protocol),
      ours.watch(one, ourVariables, protocol),
    ])
    for (const inner of one.watch.during) await this.#case(inner, group)
    const answers = await Promise.all([streams[0].finish(), streams[1].finish()])
    this.#judge(one, group, answers, protocol)
  }

  async #await(one: Case): Promise<void> {
    const give = performance.now() + awaitMsMax
    for (;;) {
      const answers = await this.#both(one, 'HTTP/1.1')
      if (answers.every(({ body }) => one.until?.(body))) return
      if (performance.now() > give) return
      await pause(awaitEveryMs)
    }
  }

  #both(one: Case, protocol: Protocol): Promise<[Answer, Answer]> {
    const [real, ours] = this.#sides
    const [realVariables, ourVariables] = this.#variables
    return Promise.all([real.exchange(one, realVariables, protocol), ours.exchange(one, ourVariables, protocol)])
  }

  #judge(one: Case, group: string, answers: readonly [Answer, Answer], protocol: Protocol): void {
    for (const at of [0, 1] as const) take(one, answers[at], this.#variables[at])
    const name = `${group}/${one.name}`
    const removed = this.#mappings.map((mapping) => mapping.removed)
    const [real, ours] = answers.map((answer, at) =>
      read(answer, this.#mappings[at] as Mapping, one.watch !== undefined),
    )
    const listed = new Set<string>()
    const open = differences(real, ours).filter((difference) => {
      const admitting = this.#listed.filter((entry) => admits(entry, name, difference.field))
      for (const { id } of admitting) listed.add(id)
      return admitting.length === 0
    })
    for (const id of removed.flatMap((ids) => [...ids])) listed.add(id)
    for (const ids of removed) ids.clear()
    this.#outcomes.push({ name: protocol === 'HTTP/2' ? `${name} over HTTP/2` : name, open, listed })
  }
}
