/**
 * The certificates of a server that runs: made at its start, and anew while it runs when one nears its end or the server comes
 * to be reached by another name or address. Connections that are open stay as they are.
 */
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, sleep } from '../base/clock.ts'
import { reasonOf } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { Server } from '../endpoint/sockets/server.ts'
import { nearest, serverUrl, writeKubeconfig } from '../pki/kubeconfig.ts'
import { isServing, openPki, type Pki } from '../pki/pki.ts'
import type { HostPort } from './optionkinds.ts'

/** An address, or a clock that is set at last, is noticed before a person has found the cause of what fails meanwhile. */
const lookEveryMs = 5_000

type Parts = {
  /** The data folder. */
  readonly data: string
  /** By which names and addresses it is reached now. */
  readonly hosts: () => readonly string[]
  readonly clock: Clock
  readonly log: Log
}

export class Serving {
  readonly #parts: Parts
  #pki: Pki
  #serving: X509Certificate
  #admin: X509Certificate
  #url = ''
  #told = ''

  private constructor(parts: Parts, pki: Pki) {
    this.#parts = parts
    this.#pki = pki
    this.#serving = new X509Certificate(pki.serving.cert)
    this.#admin = new X509Certificate(pki.admin.cert)
  }

  static async open(parts: Parts): Promise<Serving> {
    return new Serving(parts, await openNow(parts))
  }

  get pki(): Pki {
    return this.#pki
  }

  get endsAtMs(): number {
    return this.#serving.validToDate.getTime()
  }

  /** Tells the machine's administrator where it listens; resolves with the address. */
  async announce(listening: readonly HostPort[]): Promise<string> {
    const { host, port } = nearest(listening)
    this.#url = serverUrl(host, port)
    await this.#writeKubeconfig()
    return this.#url
  }

  async run(server: Pick<Server, 'setServing'>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#parts.clock, lookEveryMs, signal)
      if (!signal.aborted) await this.#look(server)
    }
  }

  async #look(server: Pick<Server, 'setServing'>): Promise<void> {
    const { hosts, clock, log } = this.#parts
    const now = clock.now()
    if (isServing(this.#serving, hosts(), now) && isServing(this.#admin, [], now)) return
    try {
      const pki = await openNow(this.#parts)
      this.#pki = pki
      this.#serving = new X509Certificate(pki.serving.cert)
      this.#admin = new X509Certificate(pki.admin.cert)
      server.setServing(pki.serving)
      await this.#writeKubeconfig()
      log.info('serving.renewed', { until: this.#serving.validToDate.toISOString() })
      this.#told = ''
    } catch (error) {
      const why = reasonOf(error)
      if (why !== this.#told) log.error('serving.unrenewed', { why })
      this.#told = why
    }
  }

  #writeKubeconfig(): Promise<void> {
    return writeKubeconfig(join(this.#parts.data, 'admin.kubeconfig'), this.#url, this.#pki)
  }
}

function openNow({ data, hosts, clock }: Parts): Promise<Pki> {
  return openPki({ folder: join(data, 'pki'), hosts: hosts(), now: clock.now() })
}
