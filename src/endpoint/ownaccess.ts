/**
 * Access at an authority: a certificate of its own makes a caller its administrator, and every other client may ask how it does
 * and which version it is of. Roles of its own objects will stand here beside it.
 */
import type { Verdict } from '../access/access.ts'
import { anonymous, type Caller } from '../kube/caller.ts'
import { type StatusError, unauthorized } from '../kube/status.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Call } from './call.ts'
import type { Authentication, Authorization } from './composition.ts'
import type { Peer, Request } from './endpoint.ts'
import { isOpen } from './ownpaths.ts'

const administrator: Identity = { kind: 'edge' }
const stranger: Identity = { kind: 'anonymous' }

export class OwnAccess implements Authentication, Authorization {
  identify({ peer }: Request): Identity {
    return peer.certificate?.issuedBy === 'own' ? administrator : stranger
  }

  callerOf({ request }: Call): Caller {
    return certifiedCaller(request.peer) ?? anonymous
  }

  decide({ identity, api }: Call): Verdict {
    if (identity.kind === 'edge' || api.path === '/version' || isOpen(api.path)) return 'allowed'
    return 'unauthorized'
  }

  refusal(): StatusError {
    return unauthorized()
  }
}

/** Whom a certificate of our own names. */
export function certifiedCaller({ certificate }: Peer): Caller | undefined {
  if (certificate?.issuedBy !== 'own') return undefined
  const { name, organizations } = certificate
  return { name, uid: '', groups: [...organizations, 'system:authenticated'] }
}
