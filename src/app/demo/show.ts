/** The demo while it runs: changes at the cloud, reads at the edges, a line that is cut and mended, and what all of it shows. */
import { setTimeout as sleep } from 'node:timers/promises'
import { statusPath } from '../../endpoint/ownpaths.ts'
import type { HubStatusDocument } from '../hub/status.ts'
import { counted, type DemoFigures, figuresLine, figuresTable, seconds } from './figures.ts'
import { DemoInformer } from './informer.ts'
import { Ledger } from './ledger.ts'
import { type LinkBytes, LinkCost } from './linkcost.ts'
import { mirrored, sensors } from './samples.ts'
import type { DemoScreen } from './screen.ts'
import { type DemoServers, edgeNames } from './site.ts'
import type { SwitchWord } from './switch.ts'

const changeEveryMs = 500
/** Without a terminal. */
const tellEveryMs = 5_000
/** Without a person at the switch. */
const upMs = 20_000
const cutMs = 15_000

const paths = mirrored.map(({ path }) => path)
/** As a hub calls them. */
const interestNames = new Set(paths.map((path) => path.replace(/^\/apis?\//, '')))
const keys = '\nc cuts the line, m mends it, q ends the demo\n'

type Parts = DemoServers & {
  readonly screen: DemoScreen
  /** A person can press keys: the line is theirs alone. */
  readonly hasKeys: boolean
}

export class DemoShow {
  readonly #parts: Parts
  readonly #ledger = new Ledger()
  readonly #cloud: DemoInformer
  readonly #edges: readonly DemoInformer[]
  readonly #counts = { writes: 0, reads: 0, refused: 0, cuts: 0 }
  readonly #cost = new LinkCost()
  #bytes: LinkBytes = { start: 0, since: undefined }
  #hub = { objects: 0, version: 0 }
  #turnedAt = Date.now()
  #toldAt = 0
  #isManual: boolean
  /** The version that the cloud had when the line was mended, until the edges have it. */
  #missed: { readonly version: number; readonly changes: number } | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#isManual = parts.hasKeys
    this.#cloud = new DemoInformer(parts.cloud.client, paths)
    this.#edges = parts.edges.map(({ client }) => new DemoInformer(client, paths))
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#cloud, ...this.#edges].map((one) => one.start()))
    this.#turnedAt = Date.now()
    while (!signal.aborted) {
      if (!this.#isManual) this.#turnByTime()
      await this.#change()
      // What is shown is what arrived of it.
      await sleep(changeEveryMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) break
      await Promise.all(this.#parts.edges.map(({ client }) => this.#look(client)))
      await this.#askHub()
      this.#bytes = this.#cost.read({ line: this.#parts.line.bytes, plain: this.#cloud.bytes * this.#edges.length })
      this.#tellCaughtUp()
      this.#ledger.forget(Math.min(this.#hub.version, ...this.#edges.map(({ version }) => version)))
      this.#tell()
    }
  }

  /** A person turns the switch, who has it from now on; answers what that did. */
  turn(word: SwitchWord): string {
    this.#isManual = true
    return this.#turn(word)
  }

  /** The last words. */
  summary(): string {
    const { writes, reads, refused, cuts } = this.#counts
    const { watches, events } = this.#figures()
    return `${reads} reads at the edges, ${refused} refused; ${writes} changes, ${events} watch events; ${watches.open} of ${watches.opened} watches stayed open across ${counted(cuts, 'cut')}`
  }

  #turn(word: SwitchWord): string {
    const { line, screen } = this.#parts
    if (line.isCut === (word === 'cut')) return `the line is ${line.isCut ? 'cut' : 'up'} already`
    this.#turnedAt = Date.now()
    if (word === 'cut') {
      line.cut()
      this.#counts.cuts++
      this.#missed = undefined
    } else {
      line.mend()
      this.#missed = { version: this.#cloud.version, changes: this.#behind() }
    }
    const sentence =
      word === 'cut'
        ? 'the line is cut: the edges go on with what they have, the cloud goes on changing'
        : `the line is mended: ${counted(this.#missed?.changes ?? 0, 'change')} to catch up with, once the edges dial again`
    screen.say(sentence)
    this.#toldAt = 0
    return sentence
  }

  #turnByTime(): void {
    const { isCut } = this.#parts.line
    if (Date.now() - this.#turnedAt > (isCut ? cutMs : upMs)) this.#turn(isCut ? 'mend' : 'cut')
  }

  /** One sensor gets a new reading: a patch of its status, as its driver would send it. */
  async #change(): Promise<void> {
    const { writes } = this.#counts
    const sensor = sensors[writes % sensors.length] as (typeof sensors)[number]
    const celsius = Math.round((4 + 3 * Math.sin(writes / 7)) * 10) / 10
    const path = `/apis/edge.example.com/v1/namespaces/shop/sensors/${sensor.metadata.name}/status`
    const status = { celsius, readings: Math.floor(writes / sensors.length) + 1 }
    const atMs = Date.now()
    const changed = JSON.parse(await this.#parts.cloud.client.send('PATCH', path, { status })) as {
      readonly metadata: { readonly resourceVersion: string }
    }
    this.#ledger.wrote(Number(changed.metadata.resourceVersion), atMs)
    this.#counts.writes++
  }

  /** What every client on an edge node does all day. */
  async #look(client: DemoServers['cloud']['client']): Promise<void> {
    this.#counts.reads++
    await client.send('GET', '/apis/edge.example.com/v1/sensors?resourceVersion=0').catch(() => this.#counts.refused++)
  }

  async #askHub(): Promise<void> {
    const answer = await fetch(`${this.#parts.health}${statusPath}`)
    const status = (await answer.json()) as HubStatusDocument
    const resources = status.resources.filter(({ name }) => interestNames.has(name))
    this.#hub = {
      objects: resources.reduce((sum, { objects }) => sum + objects, 0),
      version: Math.max(0, ...resources.map(({ resourceVersion }) => resourceVersion)),
    }
  }

  #behind(): number {
    return Math.max(...this.#edges.map(({ version }) => this.#ledger.lagOf(version, Date.now()).changes))
  }

  #tellCaughtUp(): void {
    const missed = this.#missed
    if (missed === undefined || this.#edges.some(({ version }) => version < missed.version)) return
    this.#missed = undefined
    this.#toldAt = 0
    const { open, opened } = this.#figures().watches
    const took = seconds(Date.now() - this.#turnedAt)
    this.#parts.screen.say(
      `both edges have caught up with ${counted(missed.changes, 'change')}, ${took} after the line was mended; ${open} of ${opened} watches are open still`,
    )
  }

  #tell(): void {
    const { screen, hasKeys } = this.#parts
    if (screen.isLive) screen.draw(`\n${figuresTable(this.#figures())}${hasKeys ? keys : ''}`)
    else if (Date.now() - this.#toldAt >= tellEveryMs) {
      this.#toldAt = Date.now()
      screen.say(figuresLine(this.#figures()))
    }
  }

  #figures(): DemoFigures {
    const { line } = this.#parts
    const now = Date.now()
    const sum = (value: (edge: DemoInformer) => number) => this.#edges.reduce((all, edge) => all + value(edge), 0)
    const edges = this.#edges.map(({ objects, version }, at) => ({ name: edgeNames[at] ?? '', objects, version }))
    return {
      places: [
        { name: 'cloud', objects: this.#cloud.objects, version: this.#cloud.version, lag: undefined },
        ...[{ name: 'hub', ...this.#hub }, ...edges].map((place) => ({
          ...place,
          lag: this.#ledger.lagOf(place.version, now),
        })),
      ],
      ...{ isCut: line.isCut, forMs: now - this.#turnedAt, ...this.#counts },
      bytes: this.#bytes,
      watches: { open: sum(({ open }) => open), opened: sum(({ watches }) => watches) },
      events: sum(({ events }) => events),
    }
  }
}
