/**
 * The file that `ake join` or `ake hub issue` wrote, as an edge has it: read at the start, where it has to be good, and again when it changes. A file that has become
 * unusable leaves the last one in force: a link that was made with it goes on, and the operator is told.
 */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { reasonOf, UsageError } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import type { KeyPair } from '../../pki/certificate.ts'
import { credentialText, type HubCredential, nodeNamedBy, parseCredential } from '../../pki/credentialfile.ts'
import { writePrivateFile } from '../../pki/privatefile.ts'
import type { CredentialLife } from '../credential.ts'
import { followFiles } from '../files.ts'
import { standardLimits } from '../limits.ts'

type Parts = { readonly path: string; readonly clock: Clock; readonly log: Log }

export class FollowedHubCredential {
  readonly #parts: Parts
  readonly #renewals = new Set<() => void>()
  /** Of the node that the file was of at the start. */
  readonly node: string
  #text: string
  #current: HubCredential
  #complaint: string | undefined
  /** What the hub told could not be written down. */
  #unwritten: string | undefined
  /** The file is of another node now. */
  #isOfAnother = false
  /** Ends with the last that was told to keep. */
  #keeping: Promise<void> = Promise.resolve()

  /** Throws `UsageError`. */
  static async open(parts: Parts): Promise<FollowedHubCredential> {
    const text = await readText(parts.path)
    return new FollowedHubCredential(parts, text, parseCredential(text, parts.path))
  }

  private constructor(parts: Parts, text: string, current: HubCredential) {
    this.#parts = parts
    this.#text = text
    this.#current = current
    this.node = nodeOf(current, parts.path)
  }

  get current(): HubCredential {
    return this.#current
  }

  /** As the API server names it. */
  get user(): string {
    return `system:node:${this.node}`
  }

  /** What is wrong with the file as it is now. */
  get complaints(): readonly string[] {
    return [this.#complaint, this.#unwritten].filter((one) => one !== undefined)
  }

  get life(): CredentialLife {
    const { validFromDate, validToDate } = this.#current.certificate
    return { use: 'edge', name: this.user, beganAtMs: validFromDate.getTime(), endsAtMs: validToDate.getTime() }
  }

  /** Hears of each new one; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#renewals.add(listener)
    return () => void this.#renewals.delete(listener)
  }

  /**
   * Takes over, and writes down first, what the hub told: its authorities, or another certificate of this node. One after the other, each beside
   * what is in the file then, so that none is lost. Throws `UsageError`.
   */
  keep(told: { readonly ca?: string; readonly pair?: KeyPair }): Promise<void> {
    const { fingerprint256: replaced } = this.#current.certificate
    const kept = this.#keeping.then(() => this.#keep(told, replaced))
    this.#keeping = kept.catch(() => undefined)
    return kept
  }

  async #keep(told: { readonly ca?: string; readonly pair?: KeyPair }, replaced: string): Promise<void> {
    const { path } = this.#parts
    // "ake join" or an operator may have written another one a moment ago.
    await this.#reread()
    if (this.#isOfAnother) throw new UsageError(this.#complaint ?? `${path} is of another node`)
    if (told.pair !== undefined && this.#current.certificate.fingerprint256 !== replaced)
      throw new UsageError(`another certificate was written into ${path} meanwhile: that one counts`)
    const { ca, pair } = { ...this.#current, ...told }
    const until = new X509Certificate(pair.cert).validToDate.toISOString().slice(0, 10)
    const title = `credential of the edge ${this.node} at its hub, until ${until}`
    const text = credentialText({ ca, pair, title })
    // What cannot be read again is not written.
    parseCredential(text, path)
    await this.#write(text)
    await this.#reread()
  }

  async #write(text: string): Promise<void> {
    const { path } = this.#parts
    try {
      await writePrivateFile(path, text)
      this.#unwritten = undefined
    } catch (error) {
      this.#unwritten = `${reasonOf(error)}; what the hub tells counts once it is written there`
      throw error
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { path, clock } = this.#parts
    const changed = () => this.#reread()
    await followFiles({ paths: () => [path], everyMs: standardLimits.followEveryMs, clock, changed }, signal)
  }

  async #reread(): Promise<void> {
    const { path, log } = this.#parts
    try {
      const text = await readText(path)
      this.#isOfAnother = false
      if (text === this.#text) {
        this.#complaint = undefined
        return
      }
      const next = parseCredential(text, path)
      const node = nodeOf(next, path)
      this.#isOfAnother = node !== this.node
      if (this.#isOfAnother)
        throw new UsageError(`${path} is the credential of node ${node} now, and this edge is ${this.node}: restart it`)
      this.#text = text
      this.#current = next
      this.#complaint = undefined
      log.info('hub.credential', { until: next.certificate.validToDate.toISOString() })
      for (const listener of this.#renewals) listener()
    } catch (error) {
      const complaint = reasonOf(error)
      if (complaint !== this.#complaint) log.warn('hub.credential', { why: complaint })
      this.#complaint = complaint
    }
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`cannot read ${path} (${reasonOf(error)}): check --credential`)
  }
}

function nodeOf({ certificate }: HubCredential, path: string): string {
  const node = nodeNamedBy(certificate)
  if (node !== undefined) return node
  throw new UsageError(
    `the certificate in ${path} names no node: give the file that "ake join" or "ake hub issue" wrote`,
  )
}
