/**
 * The file that `ake hub issue` wrote, as an edge has it: read at the start, where it has to be good, and again when it changes. A file that has become
 * unusable leaves the last one in force: a link that was made with it goes on, and the operator is told.
 */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { reasonOf, UsageError } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { type HubCredential, parseCredential } from '../../pki/credentialfile.ts'
import type { CredentialLife } from '../credential.ts'
import { followFiles } from '../files.ts'
import { standardLimits } from '../limits.ts'

/** As kube-apiserver names a node by its certificate. */
const nodeForm = /^system:node:(.+)$/

type Parts = { readonly path: string; readonly clock: Clock; readonly log: Log }

export class FollowedHubCredential {
  readonly #parts: Parts
  readonly #renewals = new Set<() => void>()
  /** Of the node that the file was of at the start. */
  readonly node: string
  #text: string
  #current: HubCredential
  #complaint: string | undefined

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
    return this.#complaint === undefined ? [] : [this.#complaint]
  }

  get life(): CredentialLife {
    return { use: 'edge', name: this.user, endsAtMs: this.#current.certificate.validToDate.getTime() }
  }

  /** Hears of each new one; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#renewals.add(listener)
    return () => void this.#renewals.delete(listener)
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
      if (text === this.#text) {
        this.#complaint = undefined
        return
      }
      const next = parseCredential(text, path)
      const node = nodeOf(next, path)
      if (node !== this.node)
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
  const names = [certificate.toLegacyObject().subject.CN].flat()
  const [, node] = nodeForm.exec(names[0] ?? '') ?? []
  if (names.length === 1 && node !== undefined) return node
  throw new UsageError(`the certificate in ${path} names no node: give the file that "ake hub issue" wrote`)
}
