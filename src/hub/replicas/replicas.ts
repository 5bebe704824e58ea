/**
 * A name at two replicas is handled as at one: the newer certificate stays, and the link of the older is handed over to it, with equal ones the newer link. Each replica tells the others
 * whom it holds. Of two that hold the same name the one with the lower id decides, so that never both links end: it asks the
 * other how long its link has lived, compares by its own clock, which only the time of that question can falsify, and ends its own
 * or has the other end its. Clocks of replicas are never compared, and nothing that is old can decide: what was told before a line broke is
 * forgotten with it, and an answer that took long is asked for again.
 *
 * Pure: its driver (`replicasockets.ts`, or a simulation) brings messages and the time, and does what it says.
 */

/** What replicas say to each other; the one that dialled asks, the other tells. */
export type ReplicaMessage =
  | { readonly say: 'hello'; readonly id: string; readonly hub: string }
  /** Several at the beginning, then one by one. `link` is a number of the replica that tells. */
  | { readonly say: 'held'; readonly names: readonly HeldName[] }
  | { readonly say: 'gone'; readonly name: string; readonly link: number }
  | { readonly say: 'probe'; readonly name: string; readonly question: number }
  | { readonly say: 'probed'; readonly question: number; readonly link: number; readonly ageMs: number }
  | ({ readonly say: 'end'; readonly name: string; readonly link: number } & ReplacedEnd)

export type HeldName = {
  readonly name: string
  readonly link: number
  readonly issuedAtMs: number
  readonly from: string
}

export type ReplicaEffect =
  | { readonly effect: 'send'; readonly to: number; readonly message: ReplicaMessage }
  /** The own link of that number ends as replaced. */
  | ({ readonly effect: 'end'; readonly link: number } & ReplacedEnd)
  /** What answers there is this process itself, or another that says what no replica says. */
  | { readonly effect: 'leave'; readonly line: number; readonly why: string }

/** `isHandOver`: for a newer certificate, to whose link the edge moves by itself within a moment; else it ends at once. */
export type ReplacedEnd = { readonly sentence: string; readonly isHandOver: boolean }

type OwnLink = HeldName & { readonly sinceMs: number }
type Line = {
  readonly number: number
  /** The replica that dialled asks. */
  readonly isAsking: boolean
  id: string | undefined
  hub: string
  /** By name, as the other told. */
  readonly held: Map<string, HeldName>
  readonly asked: Map<number, { readonly name: string; readonly atMs: number }>
}

export const replicaLimits = {
  /** Of one replica: as many as it may have links. */
  namesMax: 20_000,
  /** In one message. */
  entriesMax: 100,
  /** An answer that took longer says nothing of which link is newer. */
  answerMsMax: 3_000,
  /** Then, and where none came, it is asked again. */
  againMs: 5_000,
  /** Questions to one replica at a time: after a line was mended all names may be at both. */
  questionsMax: 100,
}

export class Replicas {
  readonly id: string
  readonly #hub: string
  readonly #own = new Map<string, OwnLink>()
  readonly #lines = new Map<number, Line>()
  #effects: ReplicaEffect[] = []
  #links = 0
  #numbers = 0
  #questions = 0

  /** `id` is this process's alone. */
  constructor({ id, hub }: { readonly id: string; readonly hub: string }) {
    this.id = id
    this.#hub = hub
  }

  /** The edges that the others hold, as far as they were heard. */
  get others(): readonly { readonly hub: string; readonly names: readonly HeldName[] }[] {
    const heard = [...this.#lines.values()].filter(({ isAsking, id }) => isAsking && id !== undefined)
    return heard.map(({ hub, held }) => ({ hub, names: [...held.values()] }))
  }

  /** Whether another replica holds that name, as far as it was heard. */
  holdsElsewhere(name: string): boolean {
    for (const { isAsking, id, held } of this.#lines.values())
      if (isAsking && id !== undefined && held.has(name)) return true
    return false
  }

  /** An edge has a link here; answers its number. */
  came(edge: Omit<HeldName, 'link'>, now: number): number {
    const link = ++this.#links
    const own = { ...edge, link, sinceMs: now }
    this.#own.set(edge.name, own)
    this.#tellAll({ say: 'held', names: [heldOf(own)] })
    for (const line of this.#lines.values()) this.#ask(line, edge.name, now)
    return link
  }

  left(name: string, link: number): void {
    if (this.#own.get(name)?.link !== link) return
    this.#own.delete(name)
    this.#tellAll({ say: 'gone', name, link })
  }

  /** There is a line to another replica; answers its number. */
  joined(isAsking: boolean): number {
    const number = ++this.#numbers
    this.#lines.set(number, { number, isAsking, id: undefined, hub: '', held: new Map(), asked: new Map() })
    this.#send(number, { say: 'hello', id: this.id, hub: this.#hub })
    if (isAsking) return number
    const all = [...this.#own.values()].map(heldOf)
    for (let at = 0; at < all.length; at += replicaLimits.entriesMax)
      this.#send(number, { say: 'held', names: all.slice(at, at + replicaLimits.entriesMax) })
    return number
  }

  lost(line: number): void {
    this.#lines.delete(line)
  }

  receive(number: number, message: ReplicaMessage, now: number): void {
    const line = this.#lines.get(number)
    if (line === undefined) return
    if (message.say === 'hello') this.#greeted(line, message)
    else if (line.id === undefined) this.#leave(line, 'it did not say who it is')
    else if (line.isAsking) this.#heard(line, message, now)
    else this.#asked(line, message, now)
  }

  /** What is still at two is asked about again. */
  tick(now: number): void {
    for (const line of this.#lines.values()) {
      for (const [question, { atMs }] of line.asked)
        if (now - atMs >= replicaLimits.againMs) line.asked.delete(question)
      if (!this.#decides(line)) continue
      for (const name of line.held.keys()) this.#ask(line, name, now)
    }
  }

  /** What is to be done since it was last asked. */
  effects(): readonly ReplicaEffect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  #greeted(line: Line, { id, hub }: Extract<ReplicaMessage, { say: 'hello' }>): void {
    if (id === this.id) this.#leave(line, 'it is this hub itself')
    else if (line.id !== undefined) this.#leave(line, 'it greets twice')
    else Object.assign(line, { id, hub })
  }

  /** What the replica that was dialled tells. */
  #heard(line: Line, message: ReplicaMessage, now: number): void {
    if (message.say === 'held') {
      for (const held of message.names) {
        line.held.set(held.name, held)
        this.#ask(line, held.name, now)
      }
      if (line.held.size > replicaLimits.namesMax) this.#leave(line, 'it holds more names than a hub can')
    } else if (message.say === 'gone') {
      if (line.held.get(message.name)?.link === message.link) line.held.delete(message.name)
    } else if (message.say === 'probed') this.#decide(line, message, now)
    else this.#leave(line, `it says ${message.say}, which is not its to say`)
  }

  /** What the replica that dialled asks. */
  #asked(line: Line, message: ReplicaMessage, now: number): void {
    if (message.say === 'probe') {
      const own = this.#own.get(message.name)
      const { question } = message
      this.#send(line.number, {
        say: 'probed',
        question,
        link: own?.link ?? 0,
        ageMs: own === undefined ? 0 : now - own.sinceMs,
      })
    } else if (message.say === 'end') {
      const own = this.#own.get(message.name)
      if (own?.link === message.link) this.#endOwn(own, message)
    } else this.#leave(line, `it says ${message.say}, which is not its to say`)
  }

  #decides(line: Line): boolean {
    return line.isAsking && line.id !== undefined && this.id < line.id
  }

  #ask(line: Line, name: string, now: number): void {
    if (!this.#decides(line) || !this.#own.has(name) || !line.held.has(name)) return
    if (line.asked.size >= replicaLimits.questionsMax) return
    for (const asked of line.asked.values()) if (asked.name === name) return
    const question = ++this.#questions
    line.asked.set(question, { name, atMs: now })
    this.#send(line.number, { say: 'probe', name, question })
  }

  #decide(line: Line, { question, link, ageMs }: Extract<ReplicaMessage, { say: 'probed' }>, now: number): void {
    const asked = line.asked.get(question)
    line.asked.delete(question)
    if (asked === undefined || now - asked.atMs > replicaLimits.answerMsMax) return
    const { name } = asked
    const [own, other] = [this.#own.get(name), line.held.get(name)]
    // It has gone meanwhile, or another has come, of which the other tells.
    if (own === undefined || other === undefined || other.link !== link) return
    const isOlder = own.issuedAtMs < other.issuedAtMs
    const isSame = own.issuedAtMs === other.issuedAtMs
    const isReplaced = isOlder || (isSame && own.sinceMs < asked.atMs - ageMs)
    const what = isSame ? 'the same certificate' : 'a newer certificate'
    const isHandOver = !isSame
    if (isReplaced) {
      const sentence = `a newer link with ${what} of "${name}" has come, at ${line.hub} from ${other.from}`
      this.#endOwn(own, { sentence, isHandOver })
    } else {
      const sentence = `a newer link with ${what} of "${name}" has come, at ${this.#hub} from ${own.from}`
      this.#send(line.number, { say: 'end', name, link, sentence, isHandOver })
      // It is decided: no later answer may decide otherwise, and end the own link too.
      line.held.delete(name)
    }
  }

  /** It counts as gone from here on, whatever its socket takes. */
  #endOwn({ name, link }: OwnLink, { sentence, isHandOver }: ReplacedEnd): void {
    this.left(name, link)
    this.#effects.push({ effect: 'end', link, sentence, isHandOver })
  }

  #tellAll(message: ReplicaMessage): void {
    for (const { number, isAsking } of this.#lines.values()) if (!isAsking) this.#send(number, message)
  }

  #send(to: number, message: ReplicaMessage): void {
    this.#effects.push({ effect: 'send', to, message })
  }

  #leave({ number }: Line, why: string): void {
    this.#lines.delete(number)
    this.#effects.push({ effect: 'leave', line: number, why })
  }
}

function heldOf({ name, link, issuedAtMs, from }: OwnLink): HeldName {
  return { name, link, issuedAtMs, from }
}
