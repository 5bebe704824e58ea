/** What of this node's certificates the cluster signs and an edge behind a hub renews: the one of its credential, and the kubelet's for serving. */
import { X509Certificate } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { issueCertificate, pemsIn } from '../pki/certificate.ts'
import { readPrivateFile, writePrivateFile } from '../pki/privatefile.ts'
import { signerOf } from '../pki/verdict.ts'
import { askJson } from '../upstream/askjson.ts'
import type { ClusterCaFile } from '../upstream/linked/clustercafile.ts'
import { ClusterSigned } from '../upstream/linked/clustersigned.ts'
import type { FollowedHubCredential } from '../upstream/linked/hubcredential.ts'
import type { Upstream } from '../upstream/upstream.ts'

type Parts = {
  readonly credential: Pick<FollowedHubCredential, 'current' | 'node' | 'user' | 'keep'>
  readonly ask: Upstream['ask']
  readonly isLinked: () => boolean
  /** By which the cluster knows clients, as far as that is known here. */
  readonly clusterCa: Pick<ClusterCaFile, 'read'>
  /** The file of --kubelet-serving-certificate. */
  readonly serving: string | undefined
  readonly clock: Clock
  readonly now: () => number
  readonly log: Log
}

export async function nodeCertificates(parts: Parts): Promise<readonly ClusterSigned[]> {
  const { credential, ask, isLinked, clusterCa, serving, clock, now, log } = parts
  const { node, user } = credential
  const shared = { node, ask, isLinked, clock, now, log }
  const client = new ClusterSigned({
    ...{ ...shared, use: 'client' },
    // What the hub itself signed it renews itself.
    current: () => {
      const { certificate, authorities } = credential.current
      return signerOf(certificate, authorities) === undefined ? certificate : 'foreign'
    },
    authorities: () => clusterCa.read(),
    keep: (pair) => credential.keep({ pair }),
  })
  if (serving === undefined) return [client]
  let current = await signedIn(serving)
  if (current === undefined) await writePrivateFile(serving, placeholderFor(node, now()))
  const server = new ClusterSigned({
    ...{ ...shared, use: 'serving' },
    current: () => current,
    hosts: () => addressesOf(node, user, ask),
    keep: async ({ cert, key }) => {
      // Both in one file, so that they always fit.
      await writePrivateFile(serving, `${cert}${key}`)
      current = new X509Certificate(cert)
    },
  })
  return [client, server]
}

/** Undefined: there is none, none that can be read, or the one that stands in for it. */
async function signedIn(path: string): Promise<X509Certificate | undefined> {
  const [pem] = pemsIn((await readPrivateFile(path)) ?? '')
  try {
    const found = pem === undefined ? undefined : new X509Certificate(pem)
    return found === undefined || found.verify(found.publicKey) ? undefined : found
  } catch {
    return undefined
  }
}

/**
 * Signed by itself: a kubelet does not start without the file that it was told to serve with, and only a kubelet that has started
 * writes the addresses which the cluster is asked to sign. One that is told nothing makes such a certificate itself.
 */
function placeholderFor(node: string, now: number): string {
  const subject = { commonName: node, organization: 'ake:not-signed-yet' }
  const dates = { notBefore: 0, notAfter: now + placeholderMs }
  const { cert, key } = issueCertificate({ ...dates, subject, use: 'server', hosts: [node] })
  return `${cert}${key}`
}

/** As the Node has them: approvers compare a request with these. Throws while there are none. */
async function addressesOf(node: string, user: string, ask: Upstream['ask']): Promise<readonly string[]> {
  const answer = await askJson(
    { ask },
    {
      ...{ method: 'GET', path: `/api/v1/nodes/${node}`, identity: { kind: 'certificate', name: user } },
      ...{ headMsMax: nodeMsMax, bytesMax: nodeBytesMax },
    },
  )
  const { status } = (answer.status === 200 ? JSON.parse(answer.text) : {}) as {
    readonly status?: { readonly addresses?: readonly { readonly address: string }[] }
  }
  const addresses = [...new Set((status?.addresses ?? []).map(({ address }) => address))]
  if (addresses.length === 0) throw new Error(`the Node ${node} has no addresses yet: its kubelet writes them`)
  return addresses
}

/** Where no approver looks at requests, the kubelet serves on with it, as it would with its own. */
const placeholderMs = 365 * 24 * 3600_000
const nodeMsMax = 10_000
const nodeBytesMax = 1024 * 1024
