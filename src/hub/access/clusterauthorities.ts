/**
 * The authorities by which the cluster knows its clients, as its API servers publish them for such as this hub (the ConfigMap
 * extension-apiserver-authentication in kube-system): an edge that joined shows a certificate that one of them signed. Those that were read last
 * count as long as no others are read: an API server that is away, or a right that is taken from the hub, locks no edge out.
 */
import { X509Certificate } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { narrowedTo } from '../../kube/fields.ts'
import { parseFieldSelector } from '../../kube/fieldselector.ts'
import { pemsIn } from '../../pki/certificate.ts'
import type { HubSources } from '../sources/sources.ts'
import { FollowedObjects } from './followed.ts'

/** An edge, by who signed for it. */
type SignedEdge = {
  readonly name: string
  readonly certificate: { readonly signer: 'hub' | 'cluster'; readonly authority: string }
}

type Parts = { readonly sources: Pick<HubSources, 'open'>; readonly clock: Clock; readonly log: Log }

const place = { group: '', version: 'v1', resource: 'configmaps', namespace: 'kube-system' }
const fields = narrowedTo('extension-apiserver-authentication', parseFieldSelector(''))
/** A cluster has one, and while it is rotated two. Each handshake offers all of them. */
const authoritiesMax = 16
/** For the first reading: a hub that has just started lets the edges that joined wait for it, and sends none of them away for good. */
const firstMsMax = 5_000
/** Those that were read while links with certificates of theirs may live. */
const stoodMax = 256

export class ClusterAuthorities {
  readonly #parts: Parts
  readonly #followed: FollowedObjects
  readonly #listeners = new Set<() => void>()
  readonly #wasRead = new AbortController()
  #current: readonly X509Certificate[] = []
  /** Whom they stand for: asked of every link, and a key takes a moment to be written out. */
  #standing: ReadonlySet<string> = new Set()
  #pem = ''
  /** By fingerprint, whom each that was ever read stands for: the same name and key, in whatever certificate. */
  readonly #stood = new Map<string, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { sources, clock } = parts
    this.#followed = new FollowedObjects({
      ...{ sources, clock, of: { ...place, fields } },
      put: ({ bytes }) => this.#read(bytes),
      ...{ remove: () => undefined, clear: () => undefined, told: () => this.#told() },
    })
  }

  /** None, before the first was read. */
  get current(): readonly X509Certificate[] {
    return this.#current
  }

  /** A sentence for an edge whose certificate one signed that the cluster lists no more. One that was made anew for the same key still counts. */
  retirementOf({ name, certificate }: SignedEdge): string | undefined {
    if (certificate.signer !== 'cluster' || this.#current.length === 0) return undefined
    const stood = this.#stood.get(certificate.authority)
    if (stood !== undefined && this.#standing.has(stood)) return undefined
    return `the cluster knows clients no more by the authority that signed the certificate of "${name}": join again`
  }

  /** Why none is known, as far as that was told; undefined: some are. */
  get unread(): string | undefined {
    if (this.#current.length > 0) return undefined
    const why =
      this.#followed.refusal?.sentence ?? (this.#followed.isKnown ? 'it publishes none' : 'they are being read')
    return `the hub does not know yet by which authorities its cluster knows clients (${why}): try again`
  }

  /** Resolves when they were read, and be it that there are none, or after a moment. */
  async first(): Promise<void> {
    if (!this.#wasRead.signal.aborted) await sleep(this.#parts.clock, firstMsMax, this.#wasRead.signal)
  }

  /** Hears of others; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#followed.start()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    this.#followed.stop()
  }

  #told(): void {
    if (this.#followed.isKnown) this.#wasRead.abort()
  }

  #read(bytes: Buffer): void {
    const { log } = this.#parts
    const { data } = JSON.parse(bytes.toString()) as { readonly data?: Readonly<Record<string, string>> }
    const pems = pemsIn(data?.['client-ca-file'] ?? '').slice(0, authoritiesMax)
    const pem = pems.join('')
    if (pem === this.#pem || pem === '') return
    try {
      this.#current = pems.map((one) => new X509Certificate(one)).filter(({ ca }) => ca)
    } catch {
      log.warn('hub.cluster-authorities', { why: 'client-ca-file holds something that is no certificate' })
      return
    }
    this.#pem = pem
    const standing = this.#current.map((one) => [one.fingerprint256, whomOf(one)] as const)
    this.#standing = new Set(standing.map(([, whom]) => whom))
    for (const [fingerprint, whom] of standing) this.#stood.set(fingerprint, whom)
    while (this.#stood.size > stoodMax) this.#stood.delete(this.#stood.keys().next().value as string)
    log.info('hub.cluster-authorities', { fingerprints: this.#current.map((one) => one.fingerprint256).join(' ') })
    for (const listener of this.#listeners) listener()
  }
}

function whomOf({ subject, publicKey }: X509Certificate): string {
  return `${subject}\n${publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`
}
