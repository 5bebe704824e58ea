/** The reads of rightscases.ts, sent to the API server and through the edge, in every state of the link. */
import { setTimeout as pause } from 'node:timers/promises'
import { noDecision } from '../../src/access/refusal.ts'
import type { Seat, Told } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { type RightsCase, rightsCases } from './cases.ts'
import type { RightsWorld } from './world.ts'

/** A watch says what it has at once; longer would only wait for events that nobody makes. */
const watchMs = 300

type Cloud = 'there' | 'away'

/** On a busy machine the API server, though it is there, may not answer in time for a moment: an edge then says that it does not know. */
const doubtTriesMax = 20
const doubtMs = 250

/** What a caller is told once the edge knows, while the cloud is there. */
export async function askCertain(ask: () => Promise<Told>): Promise<Told> {
  for (let tries = doubtTriesMax; ; tries--) {
    const told = await ask()
    if (tries === 0 || told.status < 400 || !told.body.includes(noDecision)) return told
    await pause(doubtMs)
  }
}

export class RightsReads {
  readonly #world: RightsWorld
  readonly #findings: Findings
  readonly #expected = new Map<RightsCase, Told>()

  constructor(world: RightsWorld, findings: Findings) {
    this.#world = world
    this.#findings = findings
  }

  /** What the API server says. */
  async learn(): Promise<void> {
    await this.#each(
      (one) => this.#world.direct(one.who),
      (one, told) => {
        this.#expected.set(one, told)
      },
    )
  }

  /** What the edge says about the same; `exact`: refusals in the same words, to which a restart adds their age. */
  async compare(when: string, cloud: Cloud, exact = true): Promise<void> {
    await this.#each(
      (one) => this.#world.through(one.who),
      (one, told) => this.#judge(one, told, { when, cloud, exact }),
      cloud,
    )
  }

  #judge(one: RightsCase, told: Told, { when, cloud, exact }: { when: string; cloud: Cloud; exact: boolean }): void {
    const expected = this.#expected.get(one) as Told
    const what = `${when}: ${one.who} ${one.path} ${JSON.stringify(one.headers ?? '')}`
    if (cloud === 'away' && one.beyond === true) {
      // A path that cannot exist is known for one without the cloud.
      const refused = expected.status >= 400 ? [expected.status, 403, 404, 503] : [503]
      this.#findings.check(refused.includes(told.status), what, [told.status, told.body])
      return
    }
    if (!this.#findings.equal(told.status, expected.status, `${what} (${told.body.slice(0, 300)})`)) return
    if (expected.status === 403 && !exact) {
      // The same, and how long ago it was said.
      const known = sentence(expected.body)
      this.#findings.check(sentence(told.body).startsWith(known.split(': ').slice(0, 2).join(': ')), what, [
        known,
        told.body,
      ])
    } else this.#findings.equal(shape(told.body), shape(expected.body), what)
  }

  /** Callers beside each other, the requests of one caller in turn. */
  async #each(
    seat: (one: RightsCase) => Seat,
    told: (one: RightsCase, told: Told) => void,
    cloud: Cloud = 'there',
  ): Promise<void> {
    const callers = Map.groupBy(rightsCases, ({ who }) => who)
    const all = [...callers.values()].map(async (cases) => {
      for (const one of cases) {
        const ask = () => askOne(seat(one), one)
        told(one, cloud === 'there' ? await askCertain(ask) : await ask())
      }
    })
    await Promise.all(all)
  }
}

function askOne(seat: Seat, { path, headers = {} }: RightsCase): Promise<Told> {
  return /[?&]watch=1|\/watch\//.test(path) ? seat.watch(path, watchMs, headers) : seat.ask(path, { headers })
}

function sentence(body: string): string {
  return (JSON.parse(body) as { message: string }).message
}

/** A list is as new as its copy; frames of a watch from "any" version come in any order, bookmarks when they come. */
function shape(body: string): string {
  if (body.startsWith('{"type":')) {
    const lines = body.split('\n').filter((line) => line !== '' && !line.startsWith('{"type":"BOOKMARK"'))
    return lines.sort().join('\n')
  }
  return body.replace(/^(\{"kind":"\w+List","apiVersion":"[^"]*","metadata":\{)"resourceVersion":"\d+"/, '$1')
}
