/** Who is asking an authority and what they may do, put together: its tokens, its roles if it judges by them, and its reviews. */
import type { KeyObject } from 'node:crypto'
import { AccountIssuer } from '../access/authenticate/accountissuer.ts'
import { OwnTokens } from '../access/authenticate/owntokens.ts'
import { refuseEscalation } from '../access/rbac/escalation.ts'
import { Rbac } from '../access/rbac/rbac.ts'
import type { Clock } from '../base/clock.ts'
import type { AuthorityCopy } from '../cache/authoritycopy.ts'
import type { Authentication, Authorization } from '../endpoint/composition.ts'
import { knownCallers, OwnAuthentication } from '../endpoint/ownaccess.ts'
import { ownReviews } from '../endpoint/ownreviews.ts'
import { RoleAccess } from '../endpoint/roleaccess.ts'
import type { Whose } from '../endpoint/shares.ts'
import type { WriteGuard } from '../write/engine.ts'
import type { ReviewJudge } from '../write/reviews.ts'
import { followRoles } from './authority.ts'
import { OwnObjects } from './boundobjects.ts'

type Parts = {
  readonly copy: AuthorityCopy
  /** With which tokens are signed. */
  readonly key: KeyObject
  readonly authorization: 'open' | 'rbac'
  readonly clock: Clock
}

export type OwnIdentity = {
  readonly authentication: Authentication
  readonly authorization: Authorization
  /** For shares. */
  readonly whose: Whose
  /** What the write engine takes of it. */
  readonly writing: {
    readonly issuer: AccountIssuer
    readonly judge: ReviewJudge
    readonly guard: WriteGuard | undefined
  }
}

export function ownIdentity({ copy, key, authorization, clock }: Parts): OwnIdentity {
  const issuer = new AccountIssuer(key)
  const tokens = new OwnTokens({ issuer, objects: new OwnObjects(copy), nowMs: () => clock.now() })
  const rbac = authorization === 'rbac' ? new Rbac() : undefined
  if (rbac !== undefined) followRoles(copy, rbac)
  const credentials = new OwnAuthentication(tokens)
  const access = rbac && new RoleAccess({ rbac, credentials })
  return {
    authentication: access ?? credentials,
    authorization: access ?? knownCallers,
    whose: credentials,
    writing: {
      issuer,
      judge: ownReviews(tokens, rbac),
      guard: rbac && ((request, next, old) => refuseEscalation(rbac, request, next, old)),
    },
  }
}
