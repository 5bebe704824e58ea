/** The reads of rightscases.ts, sent to the API server and through the edge, in every state of the link. */
import type { Seat, Told } from '../asking.ts'
import type { Findings } from '../findings.ts'
import { type RightsCase, rightsCases } from './cases.ts'
import type { RightsWorld } from './world.ts'

/** A watch says what it has at once; longer would only wait for events that nobody makes. */
const watchMs = 300

type Cloud = 'there' | 'away'

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
      (one) => this.#world.direct(one.as ?? one.who),
      (one, told) => {
        this.#expected.set(one, told)
      },
    )
  }

  /** What the edge says about the same; `exact`: refusals have their reason, too, which a restart forgets. */
  async compare(when: string, cloud: Cloud, exact = true): Promise<void> {
    await this.#each(
      (one) => this.#world.through(one.who),
      (one, told) => this.#judge(one, told, { when, cloud, exact }),
    )
  }

  #judge(one: RightsCase, told: Told, { when, cloud, exact }: { when: string; cloud: Cloud; exact: boolean }): void {
    const expected = this.#expected.get(one) as Told
    const what = `${when}: ${one.who} ${one.path} ${JSON.stringify(one.headers ?? '')}`
    if (cloud === 'away' && one.beyond === true) {
      const refused = expected.status >= 400 ? [expected.status, 403, 503] : [503]
      this.#findings.check(refused.includes(told.status), what, [told.status, told.body])
      return
    }
    if (!this.#findings.equal(told.status, expected.status, `${what} (${told.body.slice(0, 300)})`)) return
    if (expected.status === 403 && !exact) {
      // Who refuses for want of knowledge says the same, and why.
      const known = sentence(expected.body)
      this.#findings.check(sentence(told.body).startsWith(known.split(': ').slice(0, 2).join(': ')), what, [
        known,
        told.body,
      ])
    } else this.#findings.equal(shape(told.body), shape(expected.body), what)
  }

  /** Callers beside each other, the requests of one caller in turn. */
  async #each(seat: (one: RightsCase) => Seat, told: (one: RightsCase, told: Told) => void): Promise<void> {
    const callers = Map.groupBy(rightsCases, ({ who }) => who)
    const all = [...callers.values()].map(async (cases) => {
      for (const one of cases) told(one, await askOne(seat(one), one))
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
