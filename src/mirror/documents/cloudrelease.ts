/**
 * Which release of Kubernetes the cloud is of. What a later one than ours has added to its kinds is in the copy, as all of
 * their JSON is, but has no place in the messages that are known here: protobuf is then for clients that take nothing else.
 */
import { Bell } from '../../base/bell.ts'
import type { Clock } from '../../base/clock.ts'
import { builtinFacts } from '../../kube/builtin.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { CloudDocuments } from './documents.ts'

/** Upgrades are rare, and most are noticed by the line that breaks; the document itself is looked at no more often. */
const lookEveryMs = 600_000
/** Nothing is held yet, and the API server did not say: it is starting, or away. */
const lookAgainMs = 5_000

export class CloudRelease {
  readonly #documents: Pick<CloudDocuments, 'content'>
  readonly #reachability: Pick<Upstream['reachability'], 'observe'>
  readonly #clock: Clock
  #minor: number | undefined

  constructor(parts: {
    documents: Pick<CloudDocuments, 'content'>
    reachability: Pick<Upstream['reachability'], 'observe'>
    clock: Clock
  }) {
    this.#documents = parts.documents
    this.#reachability = parts.reachability
    this.#clock = parts.clock
  }

  /** Of version 1; undefined until it is known. */
  get minor(): number | undefined {
    return this.#minor
  }

  /** Until it is known, whatever can be shown in JSON is. */
  get isLater(): boolean {
    return this.#minor === undefined || this.#minor > Number.parseInt(builtinFacts().version.minor ?? '', 10)
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const minor = await this.#look()
      this.#minor = minor ?? this.#minor
      await this.#wait(minor === undefined ? lookAgainMs : lookEveryMs, signal)
    }
  }

  async #look(): Promise<number | undefined> {
    const content = await this.#documents.content('/version', 'application/json').catch(() => undefined)
    return content && minorOf(content)
  }

  /** Until the time is over, or the API server has come back, perhaps as another one. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    const bell = new Bell(this.#clock)
    const stop = this.#reachability.observe((state) => {
      if (state === 'reachable') bell.ring()
    })
    await bell.wait(signal, ms)
    stop()
  }
}

/** Some clouds write `36+`. */
function minorOf(body: Buffer): number | undefined {
  try {
    const { major, minor } = JSON.parse(body.toString()) as { major?: unknown; minor?: unknown }
    const number = Number.parseInt(String(minor), 10)
    return major === '1' && Number.isInteger(number) ? number : undefined
  } catch {
    return undefined
  }
}
