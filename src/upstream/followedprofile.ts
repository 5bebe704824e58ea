/**
 * Where the API server is and with which credentials it is reached, as the files that say so were last read in a state that can be
 * used. What is wrong with them is logged once, and told for as long as it holds.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { type Credential, isSameCredential, problemOf } from './credential.ts'
import { type Files, readUpstreams, type Upstreams } from './profile.ts'

/** What other files bring. */
export type Renewal = {
  /** Credentials that are others now; all of them where the way is another one. */
  readonly names: readonly string[]
  readonly isElsewhere: boolean
  readonly hasOtherUrls: boolean
  /** Another trust, or another proxy. */
  readonly hasOtherWay: boolean
}

type Parts = Files & {
  readonly clock: Clock
  readonly log: Log
  /** How often, at most, a refused credential makes us look, and how long that is waited for. */
  readonly everyMs: number
  readonly renewed: (renewal: Renewal) => void
}

export class FollowedProfile {
  readonly #parts: Parts
  #upstreams: Upstreams
  /** By what it is about. */
  readonly #complaints = new Map<string, string>()
  #reading: Promise<void> = Promise.resolve()
  /** It has not begun. */
  #next: Promise<void> | undefined
  /** What a refusal last made us do, and when. */
  #looked: Promise<void> = Promise.resolve()
  #refusedAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts, upstreams: Upstreams) {
    this.#parts = parts
    this.#upstreams = upstreams
    for (const [name, credential] of upstreams.credentials) this.#report(name, credential)
  }

  get upstreams(): Upstreams {
    return this.#upstreams
  }

  /** What is wrong with the files, a sentence each with what to do. */
  get complaints(): readonly string[] {
    return [...this.#complaints.values()]
  }

  /** Whether the files bring another credential than this one, which was just refused: otherwise they are looked at now and then. */
  async isRenewed(name: string, refused: Credential): Promise<boolean> {
    const isOther = () => !isSameCredential(refused, this.#upstreams.credentials.get(name))
    if (isOther()) return true
    const { clock, everyMs } = this.#parts
    if (clock.steady() - this.#refusedAt >= everyMs) {
      this.#refusedAt = clock.steady()
      this.#looked = this.#lookWithin(everyMs)
    }
    await this.#looked
    return isOther()
  }

  /** A folder may hang, and its callers wait for answers that are there. */
  async #lookWithin(ms: number): Promise<void> {
    // One hangs, and the next waits for it.
    if (this.#next !== undefined) return
    const looked = new AbortController()
    const reading = this.reread()
    await Promise.race([reading, sleep(this.#parts.clock, ms, looked.signal)])
    looked.abort()
  }

  /** One after the other: who has seen a change gets a look that began after it. */
  reread(): Promise<void> {
    this.#next ??= this.#reading.then(async () => {
      this.#next = undefined
      const renewal = await this.#read()
      if (renewal !== undefined) this.#parts.renewed(renewal)
    })
    this.#reading = this.#next
    return this.#next
  }

  /** Undefined where nothing has changed that counts. */
  async #read(): Promise<Renewal | undefined> {
    let read: Upstreams
    try {
      read = await readUpstreams(this.#parts)
    } catch (error) {
      this.#complain('files', (error as Error).message)
      return undefined
    }
    this.#complain('files', undefined)
    const before = this.#upstreams
    // A pair that does not fit is one half of a renewal: the old one serves until the other half is there.
    const credentials = new Map(before.credentials)
    for (const [name, credential] of read.credentials) {
      this.#report(name, credential)
      if (credential.missing === undefined || before.credentials.get(name)?.missing !== undefined) {
        credentials.set(name, credential)
      }
    }
    this.#upstreams = { ...read, credentials }
    const urls = (upstreams: Upstreams) => upstreams.urls.map(({ href }) => href).join(' ')
    const way = ({ trust, proxies }: Upstreams) => JSON.stringify([trust, ...proxies])
    const [hasOtherUrls, hasOtherWay] = [urls(before) !== urls(read), way(before) !== way(read)]
    const isElsewhere = hasOtherUrls || hasOtherWay
    const changed = [...credentials].filter(([name, now]) => !isSameCredential(now, before.credentials.get(name)))
    if (!isElsewhere && changed.length === 0) return undefined
    const names = isElsewhere ? [...credentials.keys()] : changed.map(([name]) => name)
    return { names, isElsewhere, hasOtherUrls, hasOtherWay }
  }

  #report(name: string, credential: Credential): void {
    const problem = problemOf(credential, this.#parts.clock.now(), name === 'edge' ? undefined : 'its')
    const flag = name === 'edge' ? '--kubeconfig' : name.replace('certificate/', '--client-credential ')
    this.#complain(name, problem === undefined ? undefined : `${flag}: ${problem}`)
  }

  /** Once per complaint: files are read again and again while an operator repairs them. */
  #complain(about: string, why: string | undefined): void {
    if (why === this.#complaints.get(about)) return
    this.#complaints.delete(about)
    if (why === undefined) return
    this.#complaints.set(about, why)
    this.#parts.log.warn('upstream.credential', { why })
  }
}
