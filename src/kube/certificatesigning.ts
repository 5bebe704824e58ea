/** The cluster's API for certificates (certificates.k8s.io/v1), as far as a node asks it for its own. */

export const signingRequests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/** The subject that a certificate is to be of, and what for: the signers of Kubernetes that sign for nodes. */
export const nodeSigners = {
  client: { signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['digital signature', 'client auth'] },
  serving: { signerName: 'kubernetes.io/kubelet-serving', usages: ['digital signature', 'server auth'] },
} as const

/** As the API server takes it. `request` is PEM. */
export function signingRequestOf(asked: {
  readonly name: string
  readonly request: string
  readonly use: keyof typeof nodeSigners
}): object {
  const { name, request, use } = asked
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { ...nodeSigners[use], request: Buffer.from(request).toString('base64') },
  }
}

export type SigningState =
  /** Not signed yet; `approved`: only the signer is waited for. */
  | { readonly state: 'pending'; readonly approved: boolean }
  | { readonly state: 'issued'; readonly certificate: string }
  | { readonly state: 'denied' | 'failed'; readonly why: string }

/** What became of a request. */
export function signingStateOf(object: unknown): SigningState {
  const { conditions, certificate } = ((object as { status?: unknown }).status ?? {}) as {
    readonly conditions?: readonly { readonly type?: string; readonly message?: string; readonly reason?: string }[]
    readonly certificate?: string
  }
  const found = (type: string) => conditions?.find((condition) => condition.type === type)
  for (const [type, state] of refusals) {
    const condition = found(type)
    if (condition !== undefined) return { state, why: condition.message || condition.reason || 'nobody said why' }
  }
  if (typeof certificate === 'string' && certificate !== '')
    return { state: 'issued', certificate: Buffer.from(certificate, 'base64').toString() }
  return { state: 'pending', approved: found('Approved') !== undefined }
}

const refusals = [
  ['Denied', 'denied'],
  ['Failed', 'failed'],
] as const
