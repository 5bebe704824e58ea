/** A cluster as far as joining goes: bootstrap tokens, requests for certificates and who signs them, nodes. */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { certify, issueCertificate } from '../../pki/certificate.ts'
import { readSigningRequest } from '../../pki/signingrequest.ts'
import { Unreachable, type UpstreamRequest, type UpstreamResponse } from '../../upstream/upstream.ts'

const name = { commonName: 'cluster-ca' }
const yearMs = 365 * 24 * 3600_000

type Signing = { metadata: { name: string }; spec: Record<string, unknown>; status: Record<string, unknown> }

export class JoinedCluster {
  readonly ca = issueCertificate({ notBefore: 0, notAfter: Date.now() + 9 * yearMs, use: 'authority', subject: name })
  readonly tokens = new Set<string>(['abcdef.0123456789abcdef'])
  readonly nodes = new Map<string, 'True' | 'Unknown'>()
  /** As kubelets write them into their Nodes. */
  readonly addresses = new Map<string, readonly string[]>()
  readonly requests = new Map<string, Signing>()
  /** In the order in which they came: in whose name, what. */
  readonly asked: string[] = []
  /** What its controllers do with a request. */
  judge: (request: Signing) => void = (request) => this.sign(request)
  isAway = false
  /** From when on a certificate counts. */
  fromMs = () => Date.now() - 5 * 60_000

  sign(request: Signing): void {
    const pem = Buffer.from(String(request.spec.request), 'base64').toString()
    const read = readSigningRequest(pem)
    if (read === undefined) throw new Error('the API server takes no such request')
    const texts = new Map(read.subject.map(({ type, text }) => [type, text]))
    const subject = { commonName: texts.get('2.5.4.3') ?? '', organization: texts.get('2.5.4.10') ?? '' }
    const key = createPublicKey({ key: read.publicKey, type: 'spki', format: 'der' })
    const dates = { notBefore: this.fromMs(), notAfter: this.fromMs() + yearMs }
    const isServing = request.spec.signerName === 'kubernetes.io/kubelet-serving'
    const hosts = [...this.addresses.values()].flat()
    const use = isServing ? ({ use: 'server', hosts } as const) : ({ use: 'client' } as const)
    const cert = certify(key, { ...dates, ...use, subject }, { name, key: createPrivateKey(this.ca.key) })
    request.status = {
      conditions: [{ type: 'Approved', status: 'True' }],
      certificate: Buffer.from(cert).toString('base64'),
    }
  }

  readonly upstream = {
    ask: (asked: UpstreamRequest): Promise<UpstreamResponse> => {
      if (this.isAway) return Promise.reject(new Unreachable('nobody there', false))
      const { identity, method, path } = asked
      const who = identity.kind === 'token' ? identity.token.slice(0, 6) : identity.kind
      this.asked.push(`${who} ${method} ${path}`)
      const isKnown = identity.kind === 'edge' || (identity.kind === 'token' && this.tokens.has(identity.token))
      const [status, object] = isKnown ? this.#answer(asked) : [401, {}]
      return Promise.resolve({
        ...{ status, headers: {}, heardAt: () => 0 },
        body: bodyOf(Buffer.from(JSON.stringify(object))),
      })
    },
  }

  #answer({ method, path, body }: UpstreamRequest): readonly [number, object] {
    const named = path.split('/').at(-1) ?? ''
    if (path.endsWith('/selfsubjectreviews')) return [201, {}]
    if (path.includes('/nodes/')) {
      const ready = this.nodes.get(named)
      const addresses = (this.addresses.get(named) ?? []).map((address) => ({ type: 'InternalIP', address }))
      return ready === undefined
        ? [404, {}]
        : [200, { status: { conditions: [{ type: 'Ready', status: ready }], addresses } }]
    }
    if (method === 'POST') {
      const request = JSON.parse((body as Buffer).toString()) as Signing
      if (this.requests.has(request.metadata.name)) return [409, {}]
      request.status = {}
      this.requests.set(request.metadata.name, request)
      this.judge(request)
      return [201, request]
    }
    const found = this.requests.get(named)
    return found === undefined ? [404, {}] : [200, found]
  }
}

async function* bodyOf(bytes: Buffer): AsyncGenerator<Buffer> {
  await Promise.resolve()
  yield bytes
}
