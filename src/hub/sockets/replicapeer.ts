/** Whether a peer that asks for the line of a replica is one: by a certificate of the hubs' own authority that is given to no edge. */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { faultOf } from '../../pki/verdict.ts'
import { replicaName } from '../state/certificates.ts'

export const replicaPath = '/replicas'

/** A sentence says why not. */
export function replicaFaultOf(
  socket: TLSSocket,
  authorities: readonly X509Certificate[],
  now: number,
): string | undefined {
  const raw = socket.getPeerCertificate()?.raw
  if (raw === undefined) return 'no certificate was shown'
  const certificate = new X509Certificate(raw)
  if (faultOf({ certificate, authorities, use: 'client', now }) !== undefined) return 'it is no certificate of a hub'
  const { CN, O } = certificate.toLegacyObject().subject
  const isReplica = CN === replicaName.commonName && O === replicaName.organization
  return isReplica ? undefined : 'it is no certificate of a hub'
}
