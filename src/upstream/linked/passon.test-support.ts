/** What a hub does with the requests of its edges, here before any upstream. */
import { headerLines } from '../../tunnel/request/request.ts'
import { RequestFailed, type TunnelledReply, type TunnelledRequest } from '../../tunnel/request/serve.ts'
import { type Identity, Unreachable, type Upstream, type UpstreamRequest } from '../upstream.ts'

export type Handle = (request: TunnelledRequest) => Promise<TunnelledReply>

/** As a hub that trusts its edges would. */
export function passOn(upstream: Upstream): Handle {
  return async ({ identity, isUpgrade, body, held, ...request }) => {
    const asked: UpstreamRequest = {
      ...request,
      identity: upstreamIdentity(identity),
      passedOn: true,
      ...(body === undefined ? {} : { body }),
      ...(held === undefined ? {} : { held }),
    }
    try {
      if (isUpgrade) {
        const { status, rawHeaders, socket } = await upstream.connect(asked)
        const headers = rawHeaders.flatMap((name, at) =>
          at % 2 === 0 ? [{ name: name.toLowerCase(), value: rawHeaders[at + 1] ?? '' }] : [],
        )
        return { status, headers, body: { socket } }
      }
      const answer = await upstream.ask(asked)
      return { status: answer.status, headers: headerLines(answer.headers), body: answer.body }
    } catch (error) {
      if (error instanceof Unreachable) throw new RequestFailed(error.message, error.sent)
      throw error
    }
  }
}

function upstreamIdentity(identity: TunnelledRequest['identity']): Identity {
  if (identity.kind === 'token') return identity
  if (identity.kind === 'node') return { kind: 'certificate', name: 'kubelet' }
  return { kind: identity.kind === 'administrator' ? 'edge' : 'anonymous' }
}
