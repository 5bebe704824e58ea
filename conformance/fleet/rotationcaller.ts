/** Somebody with a token who reads, writes and watches through an edge all the time, and to whom nothing may fail. */
import type { IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Seat, type Server } from '../asking.ts'

const askEveryMs = 250
const failuresMax = 20
/** A change that the caller makes comes back on its watch. */
const heardMsMax = 10_000
const merging = { 'content-type': 'application/merge-patch+json' }

type Parts = { readonly name: string; readonly server: Server; readonly token: string; readonly account: string }

export class RotationCaller {
  readonly name: string
  readonly failures: string[] = []
  asked = 0
  over = ''
  readonly #parts: Parts
  readonly #seat: Seat
  #heard = ''

  constructor(parts: Parts) {
    this.#parts = parts
    this.name = parts.name
    this.#seat = new Seat(parts.server, { token: parts.token })
  }

  /** Resolves when its watch is open. */
  async watching(): Promise<void> {
    const { server, token, account } = this.#parts
    const path = `/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3D${account}`
    const { metadata } = JSON.parse((await this.#seat.ask(path)).body) as { metadata: { resourceVersion: string } }
    const seat = new Seat(server, { token })
    const watch: IncomingMessage = await seat.open(`${path}&watch=1&resourceVersion=${metadata.resourceVersion}`)
    if (watch.statusCode !== 200) throw new Error(`the watch through ${this.name}: ${watch.statusCode}`)
    watch.setEncoding('utf8')
    // Of everything it keeps what came last: the newest write is looked for.
    watch.on('data', (chunk: string) => {
      this.#heard = (this.#heard + chunk).slice(-4_096)
    })
    watch.on('end', () => {
      this.over = 'it has ended'
    })
    watch.on('error', (error) => {
      this.over = error.message
    })
  }

  /** What it mirrors, what has to be asked of the cloud, and a write. */
  async run(signal: AbortSignal): Promise<void> {
    const { account } = this.#parts
    const own = `/api/v1/namespaces/default/configmaps/${account}`
    while (!signal.aborted) {
      await this.#try(`${own}?resourceVersion=0`)
      await this.#try('/api/v1/namespaces/kube-system')
      await this.#try(own, { method: 'PATCH', headers: merging, body: this.#mark(`turn ${this.asked}`) })
      await pause(askEveryMs, undefined, { signal }).catch(() => {})
    }
    this.#seat.close()
  }

  async isOpen(): Promise<boolean> {
    const mark = `last ${Math.random()}`
    const own = `/api/v1/namespaces/default/configmaps/${this.#parts.account}`
    await this.#try(own, { method: 'PATCH', headers: merging, body: this.#mark(mark) })
    for (let waitedMs = 0; waitedMs < heardMsMax && !this.#heard.includes(mark); waitedMs += askEveryMs)
      await pause(askEveryMs)
    return this.over === '' && this.#heard.includes(mark)
  }

  #mark(text: string): object {
    return { metadata: { annotations: { [this.name]: text } } }
  }

  async #try(path: string, asked: Parameters<Seat['ask']>[1] = {}): Promise<void> {
    const { status, body } = await this.#seat
      .ask(path, asked)
      .catch((error: unknown) => ({ status: 0, body: String(error) }))
    this.asked++
    if (status !== 200 && this.failures.length < failuresMax)
      this.failures.push(
        `${new Date().toISOString()} ${asked.method ?? 'GET'} ${path}: ${status} ${body.slice(0, 150)}`,
      )
  }
}
