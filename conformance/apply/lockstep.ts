/**
 * Many scenarios at once on two servers, step by step together: all do their first request, then all their second. No two
 * steps share a second of the clock, so a time in an answer tells the step that set it, and "changed or not" is compared
 * although times differ.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Difference, differences, read } from '../compare.ts'
import type { Answer, Side, Variables } from '../exchange.ts'
import { inOrder, Mapping } from '../mapping.ts'
import type { Fields, Scenario, Step } from './scenario.ts'

/** Enough to keep both servers busy, few enough for a kube-apiserver on two cores. */
const atOnce = 16
/** Into the new second, for clocks that are read in coarse ticks. */
const intoSecondMs = 5

export type Played = {
  readonly scenario: Scenario
  /** Of each step that was done. */
  readonly steps: readonly PlayedStep[]
}

export type PlayedStep = { readonly open: readonly Difference[]; readonly answers: readonly [Answer, Answer] }

export type LockstepParts = {
  readonly real: Side
  readonly ours: Side
  readonly namespace: string
  readonly signal: AbortSignal
  /** Without it steps follow each other at once, and times are not told apart. */
  readonly seconds: boolean
  /** Whether a scenario goes on after its first difference. */
  readonly toTheEnd: boolean
  /** After each step, while nobody asks anything. */
  readonly between?: () => Promise<void>
}

export async function playAll(parts: LockstepParts, scenarios: readonly Scenario[]): Promise<Played[]> {
  const rounds: Round[] = []
  const moment = parts.seconds ? (ms: number) => stepAt(rounds, ms) : undefined
  const plays = scenarios.map((scenario, at) => new Play(parts, scenario, { serial: at, moment }))
  for (let at = 0; plays.some((play) => play.goesOn(at)); at++) {
    parts.signal.throwIfAborted()
    const round = { fromMs: Math.floor(Date.now() / 1000) * 1000, toMs: Number.POSITIVE_INFINITY }
    rounds.push(round)
    const waiting = plays.filter((play) => play.goesOn(at))
    const lane = async () => {
      for (let play = waiting.pop(); play !== undefined; play = waiting.pop()) await play.step(at)
    }
    await Promise.all(Array.from({ length: atOnce }, lane))
    round.toMs = Date.now()
    await parts.between?.()
    if (parts.seconds) await pause(1000 - (Date.now() % 1000) + intoSecondMs)
  }
  return plays.map(({ played }) => played)
}

type Round = { readonly fromMs: number; toMs: number }

function stepAt(rounds: readonly Round[], ms: number): string {
  const at = rounds.findIndex(({ fromMs, toMs }) => ms >= fromMs && ms <= toMs)
  return at < 0 ? '<another time>' : `<time of step ${at + 1}>`
}

type Held = Fields & { readonly metadata?: { readonly resourceVersion?: string; readonly uid?: string } }
type PlayOptions = { readonly serial: number; readonly moment: ((ms: number) => string) | undefined }

/** One scenario under way, with what each server has said in it. */
class Play {
  readonly #parts: LockstepParts
  readonly #scenario: Scenario
  readonly #sides: readonly [Turn, Turn]
  readonly #steps: PlayedStep[] = []
  #over = false

  constructor(parts: LockstepParts, scenario: Scenario, { serial, moment }: PlayOptions) {
    this.#parts = parts
    this.#scenario = scenario
    const name = `${slug(scenario.name)}-${parts.namespace}-${serial}`
    const turn = (side: Side) => new Turn(side, new Map(Object.entries({ n: name, ns: parts.namespace })), moment)
    this.#sides = [turn(parts.real), turn(parts.ours)]
  }

  get played(): Played {
    return { scenario: this.#scenario, steps: this.#steps }
  }

  goesOn(at: number): boolean {
    return !this.#over && at < this.#scenario.steps.length
  }

  async step(at: number): Promise<void> {
    const step = this.#scenario.steps[at] as Step
    const answers = await Promise.all([this.#sides[0].ask(step), this.#sides[1].ask(step)])
    if (step.quiet === true) {
      this.#steps.push({ open: [], answers })
      return
    }
    const [real, ours] = [this.#sides[0].read(answers[0]), this.#sides[1].read(answers[1])]
    const open = plain(differences(real, ours))
    this.#steps.push({ open, answers })
    if (open.length > 0 && !this.#parts.toTheEnd) this.#over = true
  }
}

class Turn {
  readonly #side: Side
  readonly #variables: Variables
  readonly #mapping: Mapping
  #last: Held = {}

  constructor(side: Side, variables: Variables, moment: PlayOptions['moment']) {
    this.#side = side
    this.#variables = variables
    this.#mapping = new Mapping(Date.now(), moment === undefined ? {} : { moment })
  }

  async ask(step: Step): Promise<Answer> {
    const { method, path, headers } = step
    const body = step.edit === undefined ? step.body : merged(this.#last, step.edit)
    const asked = { name: '', method, path, headers, ...(body === undefined ? {} : { body }) }
    const answer = await this.#side.exchange(asked, this.#variables)
    const object = parsed(answer.body)
    if (step.quiet !== true && answer.status < 300 && object !== undefined && object.kind !== 'Status') {
      this.#last = object
      const { resourceVersion, uid } = object.metadata ?? {}
      this.#variables.set('rv', String(resourceVersion)).set('uid', String(uid))
    }
    return answer
  }

  read(answer: Answer): unknown {
    return read(answer, this.#mapping, false)
  }
}

/** Another order of names is worth telling only where the names are the same. */
function plain(found: readonly Difference[]): Difference[] {
  const fields = found.filter(({ field }) => !field.endsWith(inOrder))
  const orders = found.filter(({ field }) => field.endsWith(inOrder))
  const stem = (field: string) => field.slice(0, -inOrder.length)
  return [...fields, ...orders.filter(({ field }) => !fields.some((one) => one.field.startsWith(stem(field))))]
}

function slug(name: string): string {
  const plainName = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  return plainName.slice(0, 30).replaceAll(/^-|-$/g, '')
}

function parsed(text: string): Held | undefined {
  try {
    return JSON.parse(text) as Held
  } catch {
    return undefined
  }
}

/** By the rules of a JSON merge patch. */
function merged(value: unknown, changes: unknown): unknown {
  if (!isFields(changes)) return changes
  const result: Record<string, unknown> = isFields(value) ? { ...value } : {}
  for (const [key, change] of Object.entries(changes)) {
    if (change === null) delete result[key]
    else result[key] = merged(result[key], change)
  }
  return result
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
