/**
 * The documents held, each in the forms that were asked for. Heads are in memory; bodies, gzipped whichever way they
 * came, are in the store and read when wanted: an OpenAPI document is megabytes and asked for once a day.
 */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Log } from '../../base/log.ts'
import type { RecordChange, Store } from '../../store/store.ts'
import type { Headers } from '../../upstream/upstream.ts'
import { nearestForm } from './mediatype.ts'
import { isBeneath } from './place.ts'
import { type Refusal, Refusals } from './refusals.ts'

export type DocumentHead = {
  /** The path; that of a document asked for by its hash ends in `?hash`: it is the same but for what may be cached. */
  readonly place: string
  /** Its content type, in one spelling. */
  readonly form: string
  /** Accept headers that the API server answered with this form. */
  readonly accepts: readonly string[]
  /** End-to-end headers, as they came. */
  readonly headers: Headers
  /** How it came: to clients that take gzip it is sent that way again. */
  readonly gzipped: boolean
  readonly size: number
  readonly digest: string
  /** The state of discovery that it belongs to; '' outside discovery. */
  readonly basis: string
}

/** A document as it came, its body gzipped. */
type Arrived = Omit<DocumentHead, 'accepts' | 'size' | 'digest'> & { readonly accept: string; readonly body: Buffer }

/** Gzipped. A cluster's whole OpenAPI v3 is about 2 MiB so, with hundreds of CRDs 10: beyond this the least used go. */
const heldBytesMax = 32 * 1024 * 1024
/** Gzipped bodies kept in memory: what kubectl asks for in a row. */
const memoryBytesMax = 2 * 1024 * 1024
/** Clients of one cluster spell their headers in a handful of ways; the oldest spelling is forgotten. */
const acceptsMax = 16
/** No document comes near it; a damaged or hostile one stops here. */
const contentBytesMax = 64 * 1024 * 1024

const headKind = 'document'
const bodyKind = 'documentbody'

export class DocumentStore {
  readonly #store: Pick<Store, 'commit' | 'records' | 'record'>
  readonly #log: Log
  readonly #heldBytesMax: number
  /** By place and form, the one used last at the end. */
  readonly #heads = new Map<string, DocumentHead>()
  readonly #places = new Map<string, Map<string, DocumentHead>>()
  readonly #refusals = new Refusals()
  readonly #bodies = new Map<string, Buffer>()
  readonly #listeners = new Set<() => void>()
  #bodyBytes = 0
  #heldBytes = 0
  /** Why the disk refused last: it is asked again and again. */
  #told = ''

  constructor(parts: { store: Pick<Store, 'commit' | 'records' | 'record'>; log: Log; heldBytesMax?: number }) {
    this.#store = parts.store
    this.#log = parts.log
    this.#heldBytesMax = parts.heldBytesMax ?? heldBytesMax
  }

  async load(): Promise<void> {
    for (const { value } of await this.#store.records(headKind)) {
      this.#set(JSON.parse(value.toString('utf8')) as DocumentHead)
    }
    await this.#refusals.load(this.#store)
  }

  /** Hears that a document has changed, come or gone; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  places(): Iterable<string> {
    return this.#places.keys()
  }

  /** Every form that is held of a document. */
  formsOf(place: string): readonly DocumentHead[] {
    return [...(this.#places.get(place)?.values() ?? [])]
  }

  /** The form that the API server is known to give for this Accept header. */
  find(place: string, accept: string): DocumentHead | undefined {
    for (const head of this.#places.get(place)?.values() ?? []) if (head.accepts.includes(accept)) return head
    return undefined
  }

  /** Where it is not known: the form that comes nearest. */
  nearest(place: string, accept: string): DocumentHead | undefined {
    const forms = this.#places.get(place)
    const form = forms === undefined ? undefined : nearestForm([...forms.keys()], accept)
    return form === undefined ? undefined : forms?.get(form)
  }

  /** Replaces what was held of the same place and form. Resolves when it is stored, or the disk refused. */
  async keep({ accept, body, ...arrived }: Arrived): Promise<{ head: DocumentHead; changed: boolean }> {
    const { place, form, basis } = arrived
    const before = this.#places.get(place)?.get(form)
    const digest = digestOf(body)
    const changed = before?.digest !== digest || etagOf(before) !== etagOf(arrived)
    if (!changed && before.basis === basis && before.accepts.includes(accept)) return { head: before, changed }
    const known = before?.accepts.filter((one) => one !== accept) ?? []
    const accepts = [...known, accept].slice(-acceptsMax)
    const head: DocumentHead = changed
      ? { ...arrived, accepts, size: body.length, digest }
      : { ...before, accepts, basis }
    const records: RecordChange[] = []
    for (const other of this.#places.get(place)?.values() ?? []) {
      if (other.form !== form && other.accepts.includes(accept)) records.push(...this.#unlearn(other, accept))
    }
    const key = keyOf(head)
    this.#set(head)
    records.push(...this.#refusals.forget(place))
    records.push({ kind: headKind, key, value: Buffer.from(JSON.stringify(head)) })
    if (changed) {
      this.#remember(key, body)
      records.push({ kind: bodyKind, key, value: body })
    }
    records.push(...this.#shrink(key))
    if (changed) this.#tell()
    await this.#commit(records)
    return { head, changed }
  }

  /** Its gzipped bytes; undefined if they were lost, and then the head is gone too. */
  async body(head: DocumentHead): Promise<Buffer | undefined> {
    const key = keyOf(head)
    if (this.#heads.delete(key)) this.#heads.set(key, head)
    const known = this.#bodies.get(key)
    if (known !== undefined) {
      this.#remember(key, known)
      return known
    }
    const stored = await this.#store.record(bodyKind, key)
    const current = this.#heads.get(key)
    if (stored !== undefined && digestOf(stored) === head.digest) {
      if (current?.digest === head.digest) this.#remember(key, stored)
      return stored
    }
    // Replaced while it was read: the newer one is as good. Otherwise it is damaged.
    if (current !== undefined && current.digest !== head.digest) return this.body(current)
    if (current !== undefined) await this.drop(current)
    return undefined
  }

  /** The document itself, for its reader. */
  async content(head: DocumentHead): Promise<Buffer | undefined> {
    const body = await this.body(head)
    return body === undefined ? undefined : unpacked(body)
  }

  async drop(head: DocumentHead): Promise<void> {
    await this.#commit(this.#remove(head))
  }

  /** The API server's last word about a document, if that was a refusal. */
  refusal(place: string): Refusal | undefined {
    return this.#refusals.find(place)
  }

  /** A refusal replaces what was held of the place and of all beneath it, in every form. Answers whether that was anything. */
  async refuse(place: string, refusal: Refusal): Promise<boolean> {
    const gone = [...this.#places.keys()].filter((one) => isBeneath(one, place))
    const records = gone.flatMap((one) => [
      ...this.formsOf(one).flatMap((head) => this.#remove(head)),
      ...this.#refusals.set(one, refusal),
    ])
    if (gone.length > 0) this.#tell()
    await this.#commit(records)
    return gone.length > 0
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }

  /** The API server answers that header with another form now; what no client gets any more is dropped. */
  #unlearn(head: DocumentHead, accept: string): RecordChange[] {
    const accepts = head.accepts.filter((one) => one !== accept)
    if (accepts.length === 0) return this.#remove(head)
    const left = { ...head, accepts }
    this.#set(left)
    return [{ kind: headKind, key: keyOf(left), value: Buffer.from(JSON.stringify(left)) }]
  }

  /** OpenAPI goes first and discovery never: without it a client offline knows nothing at all. */
  #shrink(kept: string): RecordChange[] {
    const removed: RecordChange[] = []
    for (const [key, head] of this.#heads) {
      if (this.#heldBytes <= this.#heldBytesMax) break
      if (key !== kept && head.place.startsWith('/openapi/')) removed.push(...this.#remove(head))
    }
    return removed
  }

  #set(head: DocumentHead): void {
    const key = keyOf(head)
    this.#heldBytes += head.size - (this.#heads.get(key)?.size ?? 0)
    this.#heads.delete(key)
    this.#heads.set(key, head)
    let forms = this.#places.get(head.place)
    if (forms === undefined) {
      forms = new Map()
      this.#places.set(head.place, forms)
    }
    forms.set(head.form, head)
  }

  #remove(head: DocumentHead): RecordChange[] {
    const key = keyOf(head)
    if (this.#heads.delete(key)) this.#heldBytes -= head.size
    const forms = this.#places.get(head.place)
    forms?.delete(head.form)
    if (forms?.size === 0) this.#places.delete(head.place)
    this.#forget(key)
    return [headKind, bodyKind].map((kind) => ({ kind, key, value: undefined }))
  }

  #remember(key: string, body: Buffer): void {
    this.#forget(key)
    this.#bodies.set(key, body)
    this.#bodyBytes += body.length
    for (const old of this.#bodies.keys()) {
      if (this.#bodyBytes <= memoryBytesMax || old === key) break
      this.#forget(old)
    }
  }

  #forget(key: string): void {
    this.#bodyBytes -= this.#bodies.get(key)?.length ?? 0
    this.#bodies.delete(key)
  }

  /** A disk that refuses costs the next restart its documents, not this answer. */
  async #commit(records: readonly RecordChange[]): Promise<void> {
    if (records.length === 0) return
    try {
      await this.#store.commit({ changes: [], synced: false, records })
      this.#told = ''
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      if (why !== this.#told) this.#log.warn('document.unstored', { why })
      this.#told = why
    }
  }
}

const inflate = promisify(gunzip)

export function unpacked(body: Buffer): Promise<Buffer> {
  return inflate(body, { maxOutputLength: contentBytesMax })
}

export function etagOf(head: { readonly headers: Headers } | undefined): string {
  const etag = head?.headers.etag
  return typeof etag === 'string' ? etag : ''
}

function keyOf({ place, form }: DocumentHead): string {
  return `${place} ${form}`
}

function digestOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64')
}
