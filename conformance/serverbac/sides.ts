/**
 * The same requests, by the same callers, to a real kube-apiserver and to `ake serve --authorization rbac`. Both answer what follows
 * from roles, but the real one learns of a change of them a moment later: a caller that was refused, or only read, asks again until
 * both say the same.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Asked, type Person, Seat, type Server, type Told } from '../asking.ts'
import { type Difference, differences } from '../compare.ts'
import type { Findings } from '../findings.ts'
import { Mapping } from '../mapping.ts'

/** The real one remembers for ten seconds whose a token is. */
const settledWithinMs = 20_000
const againMs = 100
/** Where so much differs no waiting helps. */
const patientMax = 3
const impatientMs = 300

export type Both<T> = readonly [real: T, ours: T]
export type Place = Server & Required<Pick<Person, 'cert' | 'key'>>

export type Request = Asked & {
  readonly path: string
  /** What of the answers is compared: the whole body unless told. */
  readonly of?: (body: unknown) => unknown
}

export class Sides {
  readonly #places: Both<Place>
  readonly #findings: Findings
  readonly #persons = new Map<string, Both<Seat>>()
  /** Whom the administrator speaks for. */
  #different = 0
  readonly #others = new Map<string, Readonly<Record<string, string>>>()

  constructor(places: Both<Place>, findings: Findings) {
    this.#places = places
    this.#findings = findings
    this.know('admin', [places[0], places[1]])
    this.know('anonymous', [{}, {}])
  }

  close(): void {
    for (const seats of this.#persons.values()) for (const seat of seats) seat.close()
  }

  /** Who is so called from now on. */
  know(name: string, [real, ours]: Both<Person>): void {
    this.#persons.set(name, [new Seat(this.#places[0], real), new Seat(this.#places[1], ours)])
  }

  /** A caller whom the administrator is taken for. */
  speakAs(name: string, headers: Readonly<Record<string, string>>): void {
    this.#persons.set(name, this.#seats('admin'))
    this.#others.set(name, headers)
  }

  /** What each says to that caller at this moment. */
  ask(who: string, { path, ...asked }: Request): Promise<Both<Told>> {
    const [real, ours] = this.#seats(who)
    const headers = { ...asked.headers, ...this.#others.get(who) }
    return Promise.all([real.ask(path, { ...asked, headers }), ours.ask(path, { ...asked, headers })])
  }

  /** Both say the same. Answers what each said at last. */
  async compare(what: string, who: string, request: Request): Promise<Both<Told>> {
    const seats = this.#seats(who)
    const { path, of = (body: unknown) => body, ...rest } = request
    const asked = { ...rest, headers: { ...rest.headers, ...this.#others.get(who) } }
    const isRead = (asked.method ?? 'GET') === 'GET'
    const told = [...(await this.ask(who, request))] as [Told, Told]
    const give = performance.now() + (this.#different < patientMax ? settledWithinMs : impatientMs)
    for (;;) {
      const [real, ours] = told.map((one) => reading(one, of))
      const found = differences(real, ours)
      if (found.length === 0 || performance.now() > give) {
        if (found.length > 0) this.#different++
        this.#findings.check(found.length === 0, `${what}, as ${who}`, found.slice(0, 4).map(shown).join('; '))
        return told
      }
      await pause(againMs)
      for (const at of [0, 1] as const) {
        if (isRead || told[at].status >= 400) told[at] = await seats[at].ask(path, asked)
      }
    }
  }

  #seats(who: string): Both<Seat> {
    const seats = this.#persons.get(who)
    if (seats === undefined) throw new Error(`nobody is called ${who}`)
    return seats
  }
}

/** What of an answer is compared. Each is mapped by itself: an object may have been written more often on one side. */
function reading({ status, headers, body }: Told, of: (body: unknown) => unknown): object {
  const mapping = new Mapping(Date.now())
  const isJson = String(headers['content-type']).includes('json')
  const whole: unknown = isJson ? JSON.parse(body) : body
  return { status, warning: headers.warning, body: mapping.json(status < 300 ? of(whole) : whole) }
}

function shown({ field, real, ours }: Difference): string {
  return `${field} real ${JSON.stringify(real)} ours ${JSON.stringify(ours)}`
}
