/**
 * What makes several processes one hub to its edges, and one hub the same after a restart: its authority, the key it serves
 * with, the key of its TLS tickets and the context they count in, the secret of its digests. It is made once, in one step; what
 * is there but cannot be used is refused with a sentence, since a new authority would lock out every edge.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { UsageError } from '../../base/fault.ts'
import { issueCertificate, type KeyPair, pemsIn } from '../../pki/certificate.ts'

export type HubState = {
  /** The authority that signs. */
  readonly ca: KeyPair
  /** The one that will, once edges have heard of it (`authorities.ts`). */
  readonly next?: { readonly pair: KeyPair; readonly madeAtMs: number }
  /** Those that signed before and still count, the newest first. PEM. */
  readonly old: readonly string[]
  /** The key of `ca`, signed by the one before it, for edges that know only that. PEM. */
  readonly bridge?: string
  /** When `ca` began to sign, unless it is the first. */
  readonly switchedAtMs?: number
  /** Counts what was done to authorities: a state with a lower one was put back. */
  readonly generation: number
  /** P-256. */
  readonly servingKey: KeyObject
  readonly tickets: HubTickets
  /** Node resumes a session only where this and the ticket key are those it was begun with. */
  readonly sessionIdContext: string
  readonly digestSecret: Buffer
  /** Of the cluster, when it was read: it goes on in `epochs.ts`. */
  readonly epoch: HubEpoch
}

/** See `epochs.ts`. */
export type HubEpoch = {
  readonly number: number
  /** Everything up to this version is of an epoch before it. */
  readonly lost: number
}

/** The key of TLS tickets (48 bytes, as Node takes it), and when it was made. */
export type HubTickets = { readonly key: Buffer; readonly madeAtMs: number }

/** A state as it is kept: texts by name, those of a later release among them. */
export type StateTexts = Readonly<Record<string, string>>

const format = '1'
const curve = 'prime256v1'
const ticketKeyBytes = 48
/** OpenSSL takes 32 bytes of a context. */
const contextBytesMax = 32
const digestSecretBytes = 32

const dayMs = 24 * 3600 * 1000
export const authorityDays = 3650 // a new one has to be brought to every edge
/** No clock that is before this is right. */
export const earliestNowMs = Date.UTC(2026, 0, 1)
/** From 1970 on: what an edge without a clock is shown must count there. What is made before today vouches for nothing yet. */
export const validFromMs = 0

const authorityName = { commonName: 'ake-hub-ca' }

/** An end that is not past where the clock of this machine says 1970. */
export function endAfter(now: number, days: number): number {
  return Math.max(now, earliestNowMs) + days * dayMs
}

export function makeState(now: number): HubState {
  const dates = { notBefore: validFromMs, notAfter: endAfter(now, authorityDays) }
  return {
    ca: issueCertificate({ ...dates, use: 'authority', subject: authorityName }),
    old: [],
    generation: 1,
    servingKey: makeServingKey(),
    tickets: makeTickets(now),
    sessionIdContext: randomBytes(contextBytesMax / 2).toString('hex'),
    digestSecret: randomBytes(digestSecretBytes),
    // Greater than those of any state before it.
    epoch: nextEpoch(0, 0, now),
  }
}

export function makeServingKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: curve }).privateKey
}

export function nextEpoch(before: number, lost: number, now: number): HubEpoch {
  return { number: Math.max(before + 1, Math.floor(now / 1_000)), lost }
}

export function makeTickets(now: number): HubTickets {
  return { key: randomBytes(ticketKeyBytes), madeAtMs: now }
}

export function textsOf(state: HubState): StateTexts {
  const { servingKey, tickets, sessionIdContext, digestSecret, epoch } = state
  return {
    format,
    ...authorityTexts(state),
    'serving.key': servingKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    'session.context': sessionIdContext,
    'digest.key': digestSecret.toString('base64'),
    ...ticketTexts(tickets),
    ...epochTexts(epoch),
  }
}

/** What is absent stands there as an empty text, so that it takes the place of what was there. */
export function authorityTexts({ ca, next, old, bridge, switchedAtMs, generation }: HubState): StateTexts {
  // A state whose authority was never changed is spelled as it always was.
  const isFirst = generation === 1
  return {
    'ca.crt': ca.cert,
    'ca.key': ca.key,
    ...(!isFirst && {
      'ca.bridge': bridge ?? '',
      'ca.since': switchedAtMs === undefined ? '' : new Date(switchedAtMs).toISOString(),
      'next.crt': next?.pair.cert ?? '',
      'next.key': next?.pair.key ?? '',
      'next.made': next === undefined ? '' : new Date(next.madeAtMs).toISOString(),
      'old.crt': old.join(''),
      generation: String(generation),
    }),
  }
}

export function epochTexts({ number, lost }: HubEpoch): StateTexts {
  return { epoch: String(number), 'epoch.lost': String(lost) }
}

export function epochIn(texts: StateTexts, where: string): HubEpoch {
  const found = new Reading(texts, where)
  return { number: found.whole('epoch', 1), lost: found.whole('epoch.lost', 0) }
}

export function ticketTexts({ key, madeAtMs }: HubTickets): StateTexts {
  return { 'tickets.key': key.toString('base64'), 'tickets.made': new Date(madeAtMs).toISOString() }
}

/** `where` names what it was read from. Throws `UsageError`; no text of the state is in it. */
export function readState(texts: StateTexts, where: string): HubState {
  const found = new Reading(texts, where)
  if (found.text('format') !== format) {
    throw new UsageError(`${where} was written by a later release of ake: use that one`)
  }
  const authorities = authoritiesIn(found)
  const madeAtMs = found.date('tickets.made')
  const sessionIdContext = found.text('session.context')
  if (!/^[0-9a-f]{1,32}$/.test(sessionIdContext)) throw found.fault('session.context is none')
  return {
    ...authorities,
    servingKey: found.key('serving.key'),
    tickets: { key: found.bytes('tickets.key', ticketKeyBytes), madeAtMs },
    sessionIdContext,
    digestSecret: found.bytes('digest.key', digestSecretBytes),
    epoch: epochIn(texts, where),
  }
}

type AuthoritiesRead = Pick<HubState, 'ca' | 'next' | 'old' | 'bridge' | 'switchedAtMs' | 'generation'>

function authoritiesIn(found: Reading): AuthoritiesRead {
  const ca = found.pair('ca')
  // Written by a release that knew of one, or never changed.
  if (!found.has('generation')) return { ca, old: [], generation: 1 }
  const old = found.has('old.crt') ? found.certificates('old.crt') : []
  return {
    ca,
    old,
    generation: found.whole('generation', 1),
    ...(found.has('next.crt') && { next: { pair: found.pair('next'), madeAtMs: found.date('next.made') } }),
    ...(found.has('ca.bridge') && { bridge: found.certificates('ca.bridge').join('') }),
    ...(found.has('ca.since') && { switchedAtMs: found.date('ca.since') }),
  }
}

class Reading {
  readonly #texts: StateTexts
  readonly #where: string

  constructor(texts: StateTexts, where: string) {
    this.#texts = texts
    this.#where = where
  }

  text(name: string): string {
    const text = this.#texts[name]
    if (typeof text === 'string' && text !== '') return text
    throw this.fault(`it has no ${name}`)
  }

  has(name: string): boolean {
    return (this.#texts[name] ?? '') !== ''
  }

  date(name: string): number {
    const ms = Date.parse(this.text(name))
    if (Number.isNaN(ms)) throw this.fault(`${name} is no date`)
    return ms
  }

  /** An authority and its key. */
  pair(name: string): KeyPair {
    const pair = { cert: this.text(`${name}.crt`), key: this.text(`${name}.key`) }
    if (isAuthority(pair)) return pair
    throw this.fault(`${name}.crt and ${name}.key are not an authority and its key`)
  }

  /** Authorities, in PEM. */
  certificates(name: string): string[] {
    const all = pemsIn(this.text(name))
    if (all.length > 0 && all.every(isAuthorityCertificate)) return all
    throw this.fault(`${name} is no authority`)
  }

  whole(name: string, least: number): number {
    const found = Number(this.text(name))
    if (Number.isSafeInteger(found) && found >= least) return found
    throw this.fault(`${name} is no number`)
  }

  bytes(name: string, length: number): Buffer {
    const bytes = Buffer.from(this.text(name), 'base64')
    if (bytes.length === length) return bytes
    throw this.fault(`${name} has not ${length} bytes`)
  }

  key(name: string): KeyObject {
    try {
      const key = createPrivateKey(this.text(name))
      if (key.asymmetricKeyDetails?.namedCurve === curve) return key
    } catch (error) {
      if (error instanceof UsageError) throw error
    }
    throw this.fault(`${name} is no P-256 key`)
  }

  fault(why: string): UsageError {
    return damaged(this.#where, why)
  }
}

/** There is a state, or was one, and it cannot be used. */
export function damaged(where: string, why: string): UsageError {
  return new UsageError(
    `the hub's state in ${where} is damaged (${why}): restore it. A new one is not made in its place, since no edge would know it`,
  )
}

function isAuthorityCertificate(cert: string): boolean {
  try {
    return new X509Certificate(cert).ca
  } catch {
    return false
  }
}

function isAuthority({ cert, key }: KeyPair): boolean {
  try {
    const parsed = new X509Certificate(cert)
    return parsed.ca && parsed.checkPrivateKey(createPrivateKey(key))
  } catch {
    return false // one of them is no PEM
  }
}
