/** Whether an edge can leave a link without breaking off what a caller waits for. */
import { authoritiesPurpose, clientAuthoritiesPurpose } from '../../tunnel/identity/identity.ts'
import { rulesPurpose } from '../../tunnel/rules/rules.ts'
import type { LiveLink } from './livelink.ts'

/** Open as long as a link is (`renewal.ts`, `clustercafile.ts`, and `linkedrules.ts` for each caller): the edge opens them over the next one by itself. */
const standing: ReadonlySet<string> = new Set([authoritiesPurpose, clientAuthoritiesPurpose, rulesPurpose])

export function isIdle({ streams }: Pick<LiveLink, 'streams'>): boolean {
  return (streams?.countBeside(standing) ?? 0) === 0
}
