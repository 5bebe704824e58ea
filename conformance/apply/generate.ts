/**
 * Sequences of writes by several managers on one object, made from a seed alone: apply, apply by force, update, read and
 * write back, the three kinds of patch, status writes, removal and a new beginning.
 */
import type { Pool } from './choices.ts'
import { deepMerge } from './joined.ts'
import { Random } from './random.ts'
import {
  apply,
  create,
  edit,
  type Fields,
  json,
  type Kind,
  type More,
  merge,
  remove,
  type Scenario,
  type Step,
  strategic,
  update,
} from './scenario.ts'
import { named, type Subject, subjects } from './subjects.ts'

const stepsMin = 3
const stepsMax = 9

const appliers = ['a', 'b', 'c']
/** `a` is among them: one name with both operations is two managers. */
const updaters = ['u', 'v', 'a']
const agents = ['kubectl/v1.36.3 (linux/amd64) kubernetes/abc', 'controller', 'a b/1']

export function generate(seed: number, only: (subject: string) => boolean = () => true): Scenario {
  const random = new Random(seed)
  // The first numbers of neighbouring seeds are alike.
  for (let skipped = 0; skipped < 8; skipped++) random.next()
  const chosen = subjects.filter(({ name }) => only(name))
  const subject = random.weighted(chosen.map((one) => [one.weight, one] as const))
  const sequence = new Sequence(random, subject)
  const count = stepsMin + random.below(stepsMax - stepsMin + 1)
  sequence.begin()
  while (sequence.steps.length < count) sequence.next()
  return { name: `seed ${seed} ${subject.name}`, steps: sequence.steps }
}

class Sequence {
  readonly #random: Random
  readonly #subject: Subject
  readonly steps: Step[] = []

  constructor(random: Random, subject: Subject) {
    this.#random = random
    this.#subject = subject
  }

  begin(): void {
    if (this.#subject.base === undefined && this.#random.chance(0.6)) {
      this.#apply()
      return
    }
    const body = this.#whole()
    this.steps.push(this.#random.chance(0.5) ? create(this.#random.pick(updaters), body) : apply('base', body))
  }

  next(): void {
    const { status, scaled } = this.#subject
    this.#random.weighted<() => void>([
      [38, () => this.#apply()],
      [8, () => this.#update()],
      [10, () => this.#edit()],
      [10, () => this.#merge()],
      [6, () => this.#json()],
      [8, () => this.#strategic()],
      [status === undefined ? 0 : 12, () => this.#status(status ?? [])],
      [scaled === true ? 4 : 0, () => this.#scale()],
      [3, () => this.#again()],
    ])()
  }

  #apply(): void {
    const byBase = this.#subject.base !== undefined && this.#random.chance(0.15)
    const body = byBase ? this.#whole() : this.#fragment()
    this.steps.push(apply(byBase ? 'base' : this.#random.pick(appliers), body, this.#more({ force: true })))
  }

  #update(): void {
    const whole = this.#whole()
    const metadata = {
      ...(whole.metadata as Fields),
      ...(this.#random.chance(0.85) ? { resourceVersion: '<rv>' } : {}),
    }
    this.steps.push(update(...this.#updater({ ...whole, metadata })))
  }

  #edit(): void {
    const kind = this.#kind
    const [manager, , more] = this.#updater(named(kind))
    const changes: Fields = this.#random.chance(0.08) ? { metadata: { managedFields: this.#reset() } } : this.#changes()
    this.steps.push(edit(manager, kind, { ...changes, apiVersion: kind.apiVersion }, more))
  }

  #merge(): void {
    const [manager, , more] = this.#updater(named(this.#kind))
    this.steps.push(merge(manager, this.#kind, this.#changes(), more))
  }

  /** It joins lists that a merge patch would replace; of a custom resource it is refused, which is soon seen. */
  #strategic(): void {
    const kind = this.#kind
    const [manager, , more] = this.#updater(named(kind))
    const refused = kind.apiVersion.includes('example.com')
    // Its key of them is `port` alone.
    const pool = this.#subject.pool.filter(([path]) => path !== 'spec.ports' || refused)
    if (refused && this.#random.chance(0.95)) this.#merge()
    else this.steps.push(strategic(manager, kind, this.#from(pool), more))
  }

  #json(): void {
    const [path, value] = this.#random.pick(this.#subject.pool)
    const [manager, , more] = this.#updater(named(this.#kind))
    const operation = { op: 'add', path: `/${path.replaceAll('.', '/')}`, value: value(this.#random) }
    // Only where all elements are complete in themselves can a list be replaced as a whole.
    const replaces = this.#subject.base !== undefined && Array.isArray(operation.value)
    this.steps.push(
      replaces ? merge(manager, this.#kind, this.#changes(), more) : json(manager, this.#kind, [operation], more),
    )
  }

  #status(pool: Pool): void {
    const random = this.#random
    const body = { ...this.#kind, ...this.#from(pool), metadata: { name: '<n>' } }
    const [manager, , more] = this.#updater(body)
    const at = { ...more, sub: 'status' }
    this.steps.push(
      random.weighted<Step>([
        [5, apply(random.pick(appliers), body, { ...this.#more({ force: true }), sub: 'status' })],
        [3, merge(manager, this.#kind, this.#from(pool), at)],
        [2, edit(manager, this.#kind, this.#from(pool), at)],
      ]),
    )
  }

  /** By a patch: what it takes, it keeps, so nothing falls back to a default. */
  #scale(): void {
    const [manager, , more] = this.#updater(named(this.#kind))
    const replicas = this.#random.pick([1, 2, 3])
    this.steps.push(merge(manager, this.#subject.kind, { spec: { replicas } }, { ...more, sub: 'scale' }))
  }

  #again(): void {
    this.steps.push(remove(this.#subject.kind))
    this.begin()
  }

  get #kind(): Kind {
    const { kind, otherVersion } = this.#subject
    return otherVersion !== undefined && this.#random.chance(0.15) ? { ...kind, apiVersion: otherVersion } : kind
  }

  #updater(body: Fields & Kind): [string, Fields & Kind, More] {
    if (this.#random.chance(0.85)) return [this.#random.pick(updaters), body, this.#more()]
    return ['', body, { ...this.#more(), headers: { 'user-agent': this.#random.pick(agents) } }]
  }

  #more({ force = false } = {}): More {
    const query = [
      ...(force && this.#random.chance(0.35) ? ['force=true'] : []),
      ...(this.#random.chance(0.04) ? ['dryRun=All'] : []),
      ...(this.#random.chance(0.06) ? [`fieldValidation=${this.#random.pick(['Strict', 'Warn', 'Ignore'])}`] : []),
    ].join('&')
    return query === '' ? {} : { query }
  }

  #whole(): Fields & Kind {
    const { base } = this.#subject
    const kind = this.#kind
    if (base === undefined) return { ...this.#fragment(), ...kind }
    // Lists of the base stay as they are.
    const more = this.#from(this.#subject.pool.filter(([path]) => !Array.isArray(at(base, path))))
    return { ...(deepMerge(base, more) as Fields), ...kind }
  }

  #fragment(): Fields & Kind {
    const kind = this.#kind
    return { ...(deepMerge(named(kind), this.#from(this.#subject.pool)) as Fields), ...kind }
  }

  /** For a merge: sometimes fields are taken away. */
  #changes(): Fields {
    const { pool, base } = this.#subject
    const random = this.#random
    // A list replaced as a whole must not lose what the base needs.
    const chosen = base === undefined ? pool : pool.filter(([path]) => !Array.isArray(at(base, path)))
    const changes = this.#from(chosen)
    if (!random.chance(0.2)) return changes
    const [path] = random.pick(chosen)
    return at(base ?? {}, path) === undefined ? (deepMerge(changes, nested(path, null)) as Fields) : changes
  }

  #reset(): unknown {
    return this.#random.pick<unknown>([[{}], [], [{}, {}]])
  }

  /** One mistake at most: of several the real server tells the one that it happens to find first. */
  #from(pool: Pool): Fields {
    const { mistakes = [] } = this.#subject
    const random = this.#random
    const wrong = mistakes.length > 0 && random.chance(0.06)
    const parts = Array.from({ length: 1 + random.below(5) }, (_, at) =>
      random.pick(wrong && at === 0 ? mistakes : pool),
    )
    return parts.reduceRight<Fields>(
      (made, [path, value]) => deepMerge(made, nested(path, value(random))) as Fields,
      {},
    )
  }
}

function nested(path: string, value: unknown): Fields {
  return path
    .split('.')
    .toReversed()
    .reduce<unknown>((inner, key) => ({ [key]: inner }), value) as Fields
}

function at(fields: Fields, path: string): unknown {
  return path.split('.').reduce<unknown>((held, key) => (held as Fields | undefined)?.[key], fields)
}
