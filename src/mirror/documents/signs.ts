/** The signs of documents that are held (`upstream/told`): made at a hub for its edges, and compared at an edge with what its hub says. */
import { signOf, toldDocuments } from '../../upstream/told.ts'
import { aggregatedAccept, plainAccept } from './discovery/stored.ts'
import { type DocumentHead, type DocumentStore, etagOf } from './documentstore.ts'
import { indexPlace } from './place.ts'

/** What kubectl asks for to check fields and options before a request. */
export const acceptV2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
export const placeV2 = '/openapi/v2'
/** As an edge asks for them, that verifies tokens by them. */
const keyPlaces = ['/.well-known/openid-configuration', '/openid/v1/jwks']
const keysAccept = 'application/json,application/jwk-set+json'

type SignedForm = { readonly place: string; readonly accept: string }

/** The forms in which both sides hold them. */
const forms: { readonly [Document in (typeof toldDocuments)[number]]: readonly SignedForm[] } = {
  '/api': [{ place: '/api', accept: aggregatedAccept }],
  '/apis': [{ place: '/apis', accept: aggregatedAccept }],
  '/openapi/v3': [{ place: indexPlace, accept: '*/*' }],
  '/openapi/v2': [{ place: placeV2, accept: acceptV2 }],
  '/version': [{ place: '/version', accept: plainAccept }],
  keys: keyPlaces.map((place) => ({ place, accept: keysAccept })),
}

/** Those that no other part of a hub looks at. */
export const lookedAtForSigns: readonly SignedForm[] = toldDocuments
  .filter((document) => document !== '/api' && document !== '/apis')
  .flatMap((document) => forms[document])

/** In the order in which they travel; empty where it is not held. */
export async function signsOf(documentStore: DocumentStore): Promise<readonly Buffer[]> {
  return Promise.all(
    toldDocuments.map(async (document) => {
      const heads = forms[document].map(({ place, accept }) => documentStore.find(place, accept))
      const texts = await Promise.all(heads.map((head) => textOf(head, documentStore)))
      return texts.every((text) => text !== undefined) ? signOf(...texts) : nothing
    }),
  )
}

export async function signOfHead(head: DocumentHead, documentStore: DocumentStore): Promise<Buffer | undefined> {
  const text = await textOf(head, documentStore)
  return text === undefined ? undefined : signOf(text)
}

/** An ETag of an API server is a digest of the document. Keys are told by their content: an edge that compares them does not keep their ETag. */
async function textOf(
  head: DocumentHead | undefined,
  documentStore: DocumentStore,
): Promise<string | Buffer | undefined> {
  if (head === undefined) return undefined
  const etag = etagOf(head)
  return etag === '' || keyPlaces.includes(head.place) ? await documentStore.content(head) : etag
}

const nothing = Buffer.alloc(0)
