/**
 * Discovery and OpenAPI as the hub holds them, for edges that ask for them as their nodes: read from the API server once for all, and sent compressed, where
 * it sends some of them plain.
 */

import type { NodeRights } from '../../hub/access/noderights.ts'
import type { DocumentsForNodes } from '../../hub/forwarding/forwarding.ts'
import { isPublic } from '../../hub/forwarding/passable.ts'
import type { CloudDocuments, DocumentAnswer } from '../../mirror/documents/documents.ts'
import type { Headers } from '../../upstream/upstream.ts'

type Parts = { readonly documents: Pick<CloudDocuments, 'answer'>; readonly nodes: Pick<NodeRights, 'judge'> }

export class HubDocuments implements DocumentsForNodes {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async answer(node: string, target: string, headers: Headers): Promise<DocumentAnswer | undefined> {
    const [path = '', query = ''] = target.split('?', 2)
    if (!documentForm.test(path)) return undefined
    const isAllowed = isPublic({ method: 'GET', path: target }) || (await this.#mayRead(node, path))
    if (!isAllowed) return undefined
    const asked = new URLSearchParams(query)
    const answer = await this.#parts.documents.answer(path, { get: (name) => asked.get(name) ?? undefined }, headers)
    return typeof answer === 'string' ? undefined : answer
  }

  async #mayRead(node: string, path: string): Promise<boolean> {
    return (await this.#parts.nodes.judge(node, { verb: 'get', path }))?.allowed === true
  }
}

/** Where documents are; whether each is one is known where they are held. */
const documentForm = /^\/(?:api|apis|openapi|openid|version|\.well-known)(?:\/|$)/
