/** Reviews at an authority: by its roles, where it judges by them, and by the tokens that it issued. */
import type { OwnTokens } from '../access/authenticate/owntokens.ts'
import type { Rbac } from '../access/rbac/rbac.ts'
import { rulesStatus } from '../access/rbac/rulesreview.ts'
import { type ReviewJudge, withoutRoles } from '../write/reviews.ts'

export function ownReviews(tokens: Pick<OwnTokens, 'review'>, rbac: Rbac | undefined): ReviewJudge {
  const token: ReviewJudge['token'] = (text, audiences) => tokens.review(text, audiences)
  if (rbac === undefined) return { ...withoutRoles, token }
  return {
    access: (caller, asked) => rbac.judge(caller, asked),
    rules: (caller, namespace) => rulesStatus(rbac.rulesOf(caller, namespace)),
    token,
  }
}
