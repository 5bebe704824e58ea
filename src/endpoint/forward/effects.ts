/**
 * What a write did, as far as the API server's reply to it tells: which objects, and what has to be seen of each before its
 * client may be told, so that it reads its own write from us (A7).
 */
import { deletedItems, type Reply } from '../../kube/replies.ts'
import { objectKey } from '../../kube/resource.ts'

export type Effect = { readonly namespace: string; readonly name: string; readonly key: string } & Expected

export type Expected =
  /** It has reached this version. */
  | { readonly kind: 'reached'; readonly version: number }
  /** The object of this uid is gone; '': whichever was there. */
  | { readonly kind: 'gone'; readonly uid: string }
  /** The object of this uid is gone, or newer than this version. */
  | { readonly kind: 'changed'; readonly uid: string; readonly version: number }
  /** The reply does not tell: the edge has to look. */
  | { readonly kind: 'unknown' }

type WriteReply = {
  readonly verb: string
  /** '' where all namespaces are meant, or none. */
  readonly namespace: string
  /** '' where the reply names what was created. */
  readonly name: string
  /** Of the resource's objects; undefined where it is not known. */
  readonly objectKind: string | undefined
  readonly contentType: string
  readonly bytes: Buffer
  /** What the reply says of one object. */
  readonly reply: Reply | undefined
}

export function effectsOf({ verb, namespace, name, objectKind, contentType, bytes, reply }: WriteReply): Effect[] {
  const of = (where: string, what: string, expected: Expected): Effect => {
    return { namespace: where, name: what, key: objectKey(where, what), ...expected }
  }
  if (verb === 'deletecollection') {
    const items = deletedItems(contentType, bytes) ?? []
    return items.map(({ ending, uid, version, ...item }) =>
      of(item.namespace, item.name, ending ? { kind: 'unknown' } : { kind: 'changed', uid, version }),
    )
  }
  const concerned = name === '' ? (reply?.name ?? '') : name
  return concerned === '' ? [] : [of(namespace, concerned, expectedOf(reply, { verb, name, objectKind }))]
}

/** A Scale bears the name and the version of what it scales; any other kind has its own. */
const forms: ReadonlySet<string> = new Set(['Table', 'PartialObjectMetadata', 'Scale'])

function expectedOf(
  reply: Reply | undefined,
  { verb, name, objectKind }: Pick<WriteReply, 'verb' | 'name' | 'objectKind'>,
): Expected {
  if (reply === undefined || (name !== '' && reply.name !== name)) return { kind: 'unknown' }
  const { kind, uid, version } = reply
  if (kind === 'Status') return verb === 'delete' ? { kind: 'gone', uid } : { kind: 'unknown' }
  const isObject = objectKind === undefined || kind === objectKind || forms.has(kind)
  return isObject && version !== undefined ? { kind: 'reached', version } : { kind: 'unknown' }
}
