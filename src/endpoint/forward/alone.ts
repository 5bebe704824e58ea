/**
 * What an edge says to a caller that is known by its certificate alone, of what is the API server's to answer. TLS ends here, so
 * nothing can go up in the name of such a caller unless a hub speaks for it, and nothing goes up for it in another name: it is
 * told what it may, and that the rest takes a credential.
 */
import { quoted } from '../../kube/json/gotext.ts'
import { denied, qualified, type StatusError } from '../../kube/status.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Call } from '../call.ts'
import type { Response } from '../endpoint.ts'
import { type OfflineParts, reviewedHere } from './offline.ts'

/** Whether nothing goes up in the name of this caller. */
export function isAlone({ identity }: Pick<Call, 'identity'>, upstream: Pick<Upstream, 'speaksFor'>): boolean {
  return identity.kind === 'named' && upstream.speaksFor?.(identity).yes !== true
}

export async function answerAlone(
  parts: Pick<OfflineParts, 'authentication' | 'catalog' | 'reviews' | 'upstream'>,
  call: Call,
): Promise<Response> {
  const unknown = () => notInItsName(call, parts.upstream)
  const caller = parts.authentication.callerOf(call)
  const reviewed = await reviewedHere(parts, call, { caller, verdict: 'unknown', unknown })
  if (reviewed === undefined) throw unknown()
  return reviewed
}

export function notInItsName({ api, request, identity }: Call, upstream: Pick<Upstream, 'speaksFor'>): StatusError {
  const why = (identity.kind === 'named' && upstream.speaksFor?.(identity).why) || ''
  const name = request.peer.certificate?.name ?? ''
  const what = api.isResource ? qualified(api) : `path ${quoted(api.path)}`
  const alone = `nothing goes up in the name of ${quoted(name)}, whom this edge knows by its certificate alone`
  const configure = `start it with --client-credential ${name}=CERT,KEY unless it has a hub`
  const help = `${why === '' ? configure : why}, ask with a token, or ask the API server itself`
  return denied(`${what} is forbidden: ${alone}: ${help}`, { ...(api.isResource ? { kind: api.resource } : {}) })
}
