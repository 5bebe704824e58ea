/** What a hub's authority signs: the certificate that the hub shows, and those by which it knows edges. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { type CertificateRequest, certify, type Issuer, issueCertificate, type KeyPair } from '../../pki/certificate.ts'
import { commonNameOf } from './authorities.ts'
import { earliestNowMs, endAfter, type HubState, validFromMs } from './state.ts'

export const leafDays = 730 // under the 825 days that some clients accept at most
/** Longer than any line lives. */
const replicaDays = 30
const dayMs = 24 * 3600 * 1000
const hubName = { commonName: 'ake-hub' }

/**
 * Not kept: replicas are reached by different names, and each signs its own. The key is the same in all of them, and an edge
 * believes the authority.
 */
export function hubPair(state: HubState, hosts: readonly string[], now: number): KeyPair {
  const cert = certify(
    state.servingKey,
    { ...datesOf(state, now), use: 'server', subject: hubName, hosts },
    issuerOf(state),
  )
  // Behind it what vouches for the authority to edges that know only the one before, or the authority itself: an edge that joins knows no more
  // than a digest of its key, which both have.
  return {
    cert: `${cert}${state.bridge ?? state.ca.cert}`,
    key: state.servingKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** By which replicas know each other; no edge is given one that bears it. */
export const replicaName = { commonName: 'ake-hub-replica', organization: 'ake:hubs' }

/** Made for each line: it is worth nothing elsewhere, and not kept. */
export function replicaPair(state: HubState, now: number): KeyPair {
  const notAfter = Math.min(datesOf(state, now).notAfter, now + replicaDays * dayMs)
  return issueCertificate({ notBefore: validFromMs, notAfter, use: 'client', subject: replicaName }, issuerOf(state))
}

/** Named as a kubelet is. All begin in 1970, for boxes without a clock: when it was issued stands in the serial number. */
export function edgePair(state: HubState, name: string, now: number): KeyPair {
  return issueCertificate(edgeRequest(state, name, now), issuerOf(state))
}

/**
 * For a key that the edge made, in DER. No operator vouches for it anew: it says when the first one was issued, so that a revocation
 * which the hub has not heard of yet is not outrun by it.
 */
export function renewedCertificate(
  state: HubState,
  { name, vouchedAt, publicKey }: { readonly name: string; readonly vouchedAt: number; readonly publicKey: KeyObject },
  now: number,
): Buffer {
  return new X509Certificate(certify(publicKey, { ...edgeRequest(state, name, now), vouchedAt }, issuerOf(state))).raw
}

function edgeRequest(state: HubState, name: string, now: number): CertificateRequest {
  const subject = { commonName: `system:node:${name}`, organization: 'system:nodes' }
  return { ...datesOf(state, now), issuedAt: Math.max(now, earliestNowMs), use: 'client', subject }
}

function issuerOf({ ca }: HubState): Issuer {
  return { name: { commonName: commonNameOf(new X509Certificate(ca.cert)) }, key: createPrivateKey(ca.key) }
}

function datesOf({ ca }: HubState, now: number): { notBefore: number; notAfter: number } {
  const end = new X509Certificate(ca.cert).validToDate.getTime()
  return { notBefore: validFromMs, notAfter: Math.min(endAfter(now, leafDays), end) }
}
