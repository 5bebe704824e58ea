/**
 * Documents that the API server has taken back: its refusal, in its own words, takes the place of what was held, and is what
 * clients hear while it cannot be asked. Only what was once held is remembered so: a path that a client made up is not.
 */
import type { RecordChange, Store } from '../../store/store.ts'
import type { Headers } from '../../upstream/upstream.ts'

export type Refusal = { readonly status: number; readonly headers: Headers; readonly body: Buffer }

/** Group versions of definitions that came and went; the oldest are forgotten, and then nothing is known of them. */
const refusalsMax = 1024

const recordKind = 'documentrefusal'

export class Refusals {
  readonly #places = new Map<string, Refusal>()

  async load(store: Pick<Store, 'records'>): Promise<void> {
    for (const { key, value } of await store.records(recordKind)) {
      const { body, ...rest } = JSON.parse(value.toString('utf8')) as Omit<Refusal, 'body'> & { body: string }
      this.#places.set(key, { ...rest, body: Buffer.from(body, 'base64') })
    }
  }

  find(place: string): Refusal | undefined {
    return this.#places.get(place)
  }

  /** What has to be stored for it. */
  set(place: string, refusal: Refusal): RecordChange[] {
    this.#places.delete(place)
    this.#places.set(place, refusal)
    const oldest = this.#places.size > refusalsMax ? (this.#places.keys().next().value as string) : place
    const value = Buffer.from(JSON.stringify({ ...refusal, body: refusal.body.toString('base64') }))
    return [...(oldest === place ? [] : this.forget(oldest)), { kind: recordKind, key: place, value }]
  }

  /** The API server serves it again. */
  forget(place: string): RecordChange[] {
    return this.#places.delete(place) ? [{ kind: recordKind, key: place, value: undefined }] : []
  }
}
