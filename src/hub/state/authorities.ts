/**
 * The authorities of a hub. One signs; the one that will sign next is announced first, so that every edge has heard of it over its
 * link before any certificate of it is shown; those before it are trusted until they are retired, so that an edge that was away the whole
 * time can still come. Each step is the operator's, and a count of steps tells a state that was put back from one that goes on.
 */
import { createHash, createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto'
import { UsageError } from '../../base/fault.ts'
import { certify, issueCertificate } from '../../pki/certificate.ts'
import { authorityDays, endAfter, type HubState, makeServingKey, makeTickets, validFromMs } from './state.ts'

export type HubAuthority = {
  readonly role: 'current' | 'next' | 'old'
  readonly certificate: X509Certificate
  readonly pem: string
  /** What an operator compares and a joiner is given: `sha256:` and the hash of its public key (SubjectPublicKeyInfo), in hexadecimal digits. */
  readonly hash: string
}

/** One that waits to be used, one that signs, and two before it: an operator who rotates faster has to retire first. */
const oldMax = 2

/** Every authority that this hub trusts, the one that signs first. */
export function authoritiesOf({ ca, next, old }: HubState): readonly HubAuthority[] {
  return [
    authorityOf('current', ca.cert),
    ...(next === undefined ? [] : [authorityOf('next', next.pair.cert)]),
    ...old.map((pem) => authorityOf('old', pem)),
  ]
}

const trusted = new WeakMap<HubState, ReadonlySet<string>>()

/** Whether what that authority signed counts; asked of every link when a state is another. `authority` is the SHA-256 of its certificate. */
export function isTrusted(state: HubState, authority: string): boolean {
  const known = trusted.get(state) ?? new Set(authoritiesOf(state).map(({ certificate }) => certificate.fingerprint256))
  trusted.set(state, known)
  return known.has(authority)
}

/** As a joiner is given it to compare. */
function authorityHash(certificate: X509Certificate): string {
  const der = certificate.publicKey.export({ type: 'spki', format: 'der' })
  return `sha256:${createHash('sha256').update(der).digest('hex')}`
}

/** Announces another authority. Throws `UsageError`, as the two below do. */
export function withNext(state: HubState, now: number): HubState {
  if (state.next !== undefined) {
    throw new UsageError('another authority is announced already: use it with "ake hub authority switch"')
  }
  if (state.old.length >= oldMax) {
    throw new UsageError(`${oldMax} old authorities are trusted still: end that with "ake hub authority retire" first`)
  }
  const dates = { notBefore: validFromMs, notAfter: endAfter(now, authorityDays) }
  const subject = { commonName: `ake-hub-ca ${new Date(now).toISOString()}` }
  const pair = issueCertificate({ ...dates, use: 'authority', subject })
  return { ...state, next: { pair, madeAtMs: now }, generation: state.generation + 1 }
}

/** Signs and serves with what was announced. The one before vouches for it, to edges that have not heard of it. */
export function withSwitched(state: HubState, now: number): HubState {
  const { ca, next, old, generation } = state
  if (next === undefined) {
    throw new UsageError('no other authority is announced: begin with "ake hub authority rotate"')
  }
  const before = new X509Certificate(ca.cert)
  const after = new X509Certificate(next.pair.cert)
  const notAfter = Math.min(before.validToDate.getTime(), after.validToDate.getTime())
  const bridge = certify(
    createPublicKey(next.pair.cert),
    { notBefore: validFromMs, notAfter, use: 'authority', subject: { commonName: commonNameOf(after) } },
    { name: { commonName: commonNameOf(before) }, key: createPrivateKey(ca.key) },
  )
  const { next: _used, ...rest } = state
  const switched = { ca: next.pair, old: [ca.cert, ...old], bridge, switchedAtMs: now }
  return { ...rest, ...switched, generation: generation + 1 }
}

/** Trusts the current authority alone. */
export function withoutOld(state: HubState): HubState {
  if (state.old.length === 0) throw new UsageError('no old authority is trusted: there is nothing to retire')
  const { bridge: _gone, ...rest } = state
  return { ...rest, old: [], generation: state.generation + 1 }
}

/**
 * Signs with what was announced, and trusts nothing else from then on: where others have the key of the authority, or all of the state, a thief
 * whom it still let in could be given a certificate of the new one. Keys that lie beside it are made anew, too.
 */
export function withCompromised(state: HubState, now: number): HubState {
  return { ...withoutOld(withSwitched(state, now)), servingKey: makeServingKey(), tickets: makeTickets(now) }
}

export function commonNameOf(certificate: X509Certificate): string {
  return [certificate.toLegacyObject().subject.CN].flat().at(-1) ?? ''
}

function authorityOf(role: HubAuthority['role'], pem: string): HubAuthority {
  const certificate = new X509Certificate(pem)
  return { role, certificate, pem, hash: authorityHash(certificate) }
}
