/** What a hub's authority signs: the certificate that the hub shows, and those by which it knows edges. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { certify, type Issuer, issueCertificate, type KeyPair } from '../../pki/certificate.ts'
import { endAfter, type HubState, validFromMs } from './state.ts'

const leafDays = 730 // under the 825 days that some clients accept at most
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
  return { cert, key: state.servingKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** Named as a kubelet is. Of two for one edge the newer ends later: both begin in 1970. */
export function edgePair(state: HubState, name: string, now: number): KeyPair {
  const subject = { commonName: `system:node:${name}`, organization: 'system:nodes' }
  return issueCertificate({ ...datesOf(state, now), use: 'client', subject }, issuerOf(state))
}

function issuerOf({ ca }: HubState): Issuer {
  return { name: { commonName: commonNameOf(ca.cert) }, key: createPrivateKey(ca.key) }
}

function commonNameOf(cert: string): string {
  return [new X509Certificate(cert).toLegacyObject().subject.CN].flat().at(-1) ?? ''
}

function datesOf({ ca }: HubState, now: number): { notBefore: number; notAfter: number } {
  const end = new X509Certificate(ca.cert).validToDate.getTime()
  return { notBefore: validFromMs, notAfter: Math.min(endAfter(now, leafDays), end) }
}
