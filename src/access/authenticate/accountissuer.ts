/**
 * Tokens of service accounts, signed by an authority in the form in which kube-apiserver issues them, and the two documents by
 * which others verify them.
 */
import { createPublicKey, hash, type KeyObject, sign } from 'node:crypto'

const algorithm = 'ES256'

export class AccountIssuer {
  /** Also the audience of tokens that name none. */
  readonly issuer = 'https://kubernetes.default.svc'
  /** Its public key, as it is published. */
  readonly jwks: string
  readonly #key: KeyObject
  readonly #header: string

  /** On the curve P-256. */
  constructor(key: KeyObject) {
    this.#key = key
    const known = createPublicKey(key)
    const kid = hash('sha256', known.export({ type: 'spki', format: 'der' }), 'base64url')
    const { kty, crv, x, y } = known.export({ format: 'jwk' })
    this.jwks = JSON.stringify({ keys: [{ use: 'sig', kty, kid, crv, alg: algorithm, x, y }] })
    this.#header = encoded({ alg: algorithm, kid })
  }

  sign(claims: object): string {
    const signed = `${this.#header}.${encoded(claims)}`
    const signature = sign('sha256', Buffer.from(signed), { key: this.#key, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }

  /** Of a server that is reached at that address. */
  documents(address: string): { readonly configuration: string; readonly jwks: string } {
    const configuration = {
      issuer: this.issuer,
      jwks_uri: `https://${address}/openid/v1/jwks`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [algorithm],
    }
    return { configuration: JSON.stringify(configuration), jwks: this.jwks }
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
