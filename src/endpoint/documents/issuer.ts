/** By what the tokens of service accounts are known: the two documents of OpenID, as kube-apiserver publishes them. */
import { randomUUID } from 'node:crypto'
import type { ApiRequest } from '../../kube/request.ts'
import { methodNotAllowed } from '../../kube/status.ts'
import type { NonResourcePaths, Response } from '../endpoint.ts'

export const issuerPaths = ['/.well-known/openid-configuration', '/openid/v1/jwks'] as const

/** What stands at each path. */
type Parts = { readonly configuration: string; readonly jwks: string }

export class IssuerDocuments implements NonResourcePaths {
  readonly #documents: ReadonlyMap<string, { readonly type: string; readonly body: Buffer }>

  constructor({ configuration, jwks }: Parts) {
    const [found, keys] = issuerPaths
    this.#documents = new Map([
      [found, { type: 'application/json', body: Buffer.from(configuration) }],
      [keys, { type: 'application/jwk-set+json', body: Buffer.from(jwks) }],
    ])
  }

  answer({ path, method }: ApiRequest): Response | undefined {
    const document = this.#documents.get(path)
    if (document === undefined) return undefined
    if (method !== 'GET') throw methodNotAllowed()
    const { type, body } = document
    const headers = { 'audit-id': randomUUID(), 'cache-control': 'public, max-age=3600', 'content-type': type }
    return { status: 200, headers, body }
  }
}
