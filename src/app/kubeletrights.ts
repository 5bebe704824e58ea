/**
 * What the kubelet of this node may read of what the node needs, asked before it asks: nothing is read without a decision, and
 * what came while the kubelet was down, or just before the cloud went away, it has never asked for. In its own name, with the
 * credential that is configured for it; without one it has to ask itself.
 */
import type { Access, Verdict } from '../access/access.ts'
import { makeQuestion, type Question } from '../access/question.ts'
import { Bell } from '../base/bell.ts'
import type { Clock } from '../base/clock.ts'
import type { Interest } from '../mirror/interest.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { NodeNeeds } from './node.ts'

/** After one that the API server could not be asked, or whose credential it did not take. */
const retryMs = 30_000
/** The API server's authorizer of nodes may hear of a pod a moment after the edge; what is still denied then is denied. */
const triesMax = 3

type Parts = {
  readonly needs: Pick<NodeNeeds, 'needed' | 'observe'>
  readonly access: Pick<Access, 'recheck'>
  readonly node: string
  readonly reachability: Pick<Reachability, 'observe'>
  readonly clock: Clock
}

/** How often it was denied, and when it is to be asked again; an allowance is never. */
type KubeletAnswer = { readonly denials: number; readonly dueAt: number }

export class KubeletRights {
  readonly #parts: Parts
  /** Of what the node needs now, by question. */
  #answers: ReadonlyMap<string, KubeletAnswer> = new Map()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { needs, reachability, clock } = this.#parts
    const bell = new Bell(clock)
    const stops = [needs.observe(() => bell.ring()), reachability.observe(() => bell.ring())]
    while (!signal.aborted) {
      const isDone = await this.#ask(signal)
      await bell.wait(signal, isDone ? undefined : retryMs)
    }
    for (const stop of stops) stop()
  }

  /** One after the other. Answers whether none is left. */
  async #ask(signal: AbortSignal): Promise<boolean> {
    const { needs, access, node, clock } = this.#parts
    const identity = { kind: 'certificate', name: `system:node:${node}` } as const
    const answers = new Map<string, KubeletAnswer>()
    for (const question of needs.needed.flatMap(({ interest }) => questionsOf(interest))) {
      if (signal.aborted) return true
      const { denials, dueAt } = this.#answers.get(question.key) ?? { denials: 0, dueAt: 0 }
      const now = clock.steady()
      if (now < dueAt) answers.set(question.key, { denials, dueAt })
      else answers.set(question.key, answerOf(await access.recheck(identity, question), denials, now))
    }
    this.#answers = answers
    return answers.values().every(({ dueAt }) => dueAt === Infinity)
  }
}

function answerOf(verdict: Verdict, before: number, now: number): KubeletAnswer {
  const denials = before + (verdict === 'denied' ? 1 : 0)
  const isSettled = verdict === 'allowed' || denials >= triesMax
  return { denials, dueAt: isSettled ? Infinity : verdict === 'denied' ? now + retryMs : 0 }
}

/** What it gets and may not list, nor watch. */
const gotOnly = ['persistentvolumeclaims', 'persistentvolumes', 'resourceclaims', 'volumeattachments']

/** As a kubelet asks: by name it gets, lists and watches; the rest it lists and watches. */
function questionsOf({ group, version, resource, namespace, labels, fields }: Interest): Question[] {
  const name = fields.required('metadata.name') ?? ''
  const of = { group, version, resource, namespace, name }
  if (gotOnly.includes(resource)) return [makeQuestion({ ...of, verb: 'get' })]
  const selected = { ...of, labels: labels.toString(), fields: fields.toString() }
  const listing = ['list', 'watch'].map((verb) => makeQuestion({ ...selected, verb }))
  return name === '' ? listing : [makeQuestion({ ...of, verb: 'get' }), ...listing]
}
