/**
 * What an edge says to a caller that is known by its certificate alone, of what is the API server's to answer. TLS ends here, so
 * nothing can go up in the name of such a caller, and nothing goes up for it in another name: it is told what it may, and that
 * the rest takes a credential.
 */
import { quoted } from '../../kube/json/gotext.ts'
import { denied, qualified, type StatusError } from '../../kube/status.ts'
import type { Call } from '../call.ts'
import type { Response } from '../endpoint.ts'
import { type OfflineParts, reviewedHere } from './offline.ts'

export async function answerAlone(
  parts: Pick<OfflineParts, 'authentication' | 'catalog' | 'reviews'>,
  call: Call,
): Promise<Response> {
  const unknown = () => notInItsName(call)
  const caller = parts.authentication.callerOf(call)
  const reviewed = await reviewedHere(parts, call, { caller, verdict: 'unknown', unknown })
  if (reviewed === undefined) throw unknown()
  return reviewed
}

export function notInItsName({ api, request }: Call): StatusError {
  const name = request.peer.certificate?.name ?? ''
  const what = api.isResource ? qualified(api) : `path ${quoted(api.path)}`
  const why = `nothing goes up in the name of ${quoted(name)}, whom this edge knows by its certificate alone`
  const help = `start it with --client-credential ${name}=CERT,KEY unless it has a hub, ask with a token, or ask the API server itself`
  return denied(`${what} is forbidden: ${why}: ${help}`, { ...(api.isResource ? { kind: api.resource } : {}) })
}
