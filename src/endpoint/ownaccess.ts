/**
 * Access at an authority. Who asks: a certificate of its own, or a token that it issued. What they may do: everything, where it
 * does not judge by roles (`roleaccess`); every other client may then ask how it does and which version it is of.
 */
import type { Verdict } from '../access/access.ts'
import { wantedBy } from '../access/authenticate/impersonation.ts'
import { impersonationWays } from '../access/authenticate/impersonationways.ts'
import type { OwnTokens } from '../access/authenticate/owntokens.ts'
import { anonymous, type Caller } from '../kube/caller.ts'
import { type StatusError, unauthorized } from '../kube/status.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Call } from './call.ts'
import type { Authentication, Authorization } from './composition.ts'
import type { Peer, Request } from './endpoint.ts'
import { bearerIdentity, headerLines, uncertifiedIdentity } from './identify.ts'
import { isOpen } from './ownpaths.ts'
import type { Whose } from './shares.ts'

const certified: Identity = { kind: 'edge' }

export class OwnAuthentication implements Authentication, Whose {
  readonly #tokens: Pick<OwnTokens, 'caller'>

  constructor(tokens: Pick<OwnTokens, 'caller'>) {
    this.#tokens = tokens
  }

  identify({ peer, headers }: Request): Identity {
    if (peer.certificate?.issuedBy === 'own') return certified
    const shown = uncertifiedIdentity(peer, headers)
    if (shown.kind !== 'token') return shown
    const caller = this.#tokens.caller(shown)
    if (caller === undefined) throw unauthorized()
    return { kind: 'local', caller }
  }

  /** Where every caller may do everything it may also be another: in the first way that there is. */
  callerOf(call: Call): Caller {
    const own = credentialCaller(call)
    const wanted = call.impersonates ? wantedBy(headerLines(call.request)) : undefined
    if (wanted === undefined) return own
    return impersonationWays(wanted, own).find(({ never }) => never === undefined)?.caller ?? own
  }

  held({ peer, headers }: Request): string | undefined {
    const shown = bearerIdentity(peer, headers)
    return shown.kind === 'token' ? this.#tokens.caller(shown)?.name : undefined
  }

  ask(request: Request): Promise<string | undefined> {
    return Promise.resolve(this.held(request))
  }
}

/** Where it does not judge by roles. */
export const knownCallers: Authorization = {
  decide({ identity, api }: Call): Verdict {
    if (identity.kind !== 'anonymous' || api.path === '/version' || isOpen(api.path)) return 'allowed'
    return 'unauthorized'
  },
  refusal(): StatusError {
    return unauthorized()
  },
}

/** Whose credential it is that a request bears. */
export function credentialCaller({ identity, request }: Call): Caller {
  return identity.kind === 'local' ? identity.caller : (certifiedCaller(request.peer) ?? anonymous)
}

/** The caller that a certificate of our own names. */
export function certifiedCaller({ certificate }: Peer): Caller | undefined {
  if (certificate?.issuedBy !== 'own') return undefined
  const { name, organizations, uids = [] } = certificate
  return { name, uid: uids[0] ?? '', groups: [...organizations, 'system:authenticated'] }
}
