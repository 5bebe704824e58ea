/**
 * Access put together: reads what was stored, so that a restart without the cloud knows every caller it knew before.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Caller } from '../kube/caller.ts'
import type { Identity, Upstream } from '../upstream/upstream.ts'
import type { Access, Records } from './access.ts'
import type { BoundObjects } from './authenticate/accounttoken.ts'
import { AccountTokens } from './authenticate/accounttokens.ts'
import { TokenKeys } from './authenticate/tokenkeys.ts'
import { Callers, callerKind } from './callers.ts'
import { Changes, everywhere } from './changes.ts'
import { DecisionRecords, decisionKind, denialKind } from './decisionrecords.ts'
import { Decisions } from './decisions.ts'
import { Evaluation } from './evaluation.ts'
import { KnownRules, rulesKind } from './knownrules.ts'
import { Reviewer } from './review.ts'
import { TokenKeeper, tokenKind } from './tokens.ts'
import { TrustedTime } from './trustedtime.ts'
import { OpenWatches } from './watches.ts'
import { WriteBehind } from './writebehind.ts'

export type OpenAccess = {
  readonly access: Access
  readonly tokens: TokenKeeper
  readonly watches: OpenWatches
  /** Is told of the changes of roles and bindings. */
  readonly changes: Changes
  /** Is told what they are. */
  readonly evaluation: Evaluation
  /** Is told the rules of single callers, where that is all there is. */
  readonly rules: KnownRules
  /** Who the edge itself is to the API server; undefined where that does not say. */
  whoami(): Promise<Caller | undefined>
  /** Who a credential stands for now, for what was begun with it; asks as long as that takes. */
  recheckCaller(identity: Identity): Promise<Caller | 'refused' | 'unknown'>
  /** What is verified here; it is told what becomes of the objects that tokens are bound to. */
  readonly accounts: AccountTokens | undefined
  /** The time by which credentials expire. */
  nowMs(): number
  /** Writes behind until the signal, then what is left. */
  run(signal: AbortSignal): Promise<void>
}

type Parts = {
  readonly upstream: Upstream
  readonly records: Records
  readonly clock: Clock
  readonly log: Log
  /** Changes when the credential configured for that common name does. */
  readonly credentialVersion?: (name: string) => string
  /** How long a token that does not tell its end counts without the API server. */
  readonly opaqueMsMax?: () => number
  /** Whether tokens count while the cloud is away; without it, always. */
  readonly takesTokens?: () => boolean
  /** What tokens are bound to; without it none is verified here. */
  readonly objects?: BoundObjects
  /** What the API server takes tokens for, besides what it is seen to. */
  readonly audiences?: readonly string[]
  /** How many credentials are remembered, where it is not a node that they come from. */
  readonly credentialsMax?: number
  /** Hears of each caller that asks here, while the API server can be asked. */
  readonly seen?: (identity: Identity, caller: Caller) => void
}

const saltKey = 'salt'
const issuerKey = 'issuer'
const monthMs = 30 * 86_400_000

export async function openAccess({
  upstream,
  records,
  clock,
  log,
  credentialVersion = () => '',
  objects,
  audiences = [],
  credentialsMax,
  seen,
  opaqueMsMax = () => monthMs,
  takesTokens,
}: Parts): Promise<OpenAccess> {
  const kinds = [TrustedTime.kind, callerKind, decisionKind, denialKind, tokenKind, rulesKind] as const
  const [own = [], storedCallers = [], allowed = [], denied = [], storedTokens = [], storedRules = []] =
    await Promise.all(kinds.map((kind) => records.records(kind)))
  const byKey = new Map(own.map(({ key, value }) => [key, value]))
  const behind = new WriteBehind({ records, clock, log })
  const latest = new TrustedTime({ clock, behind, stored: byKey.get(TrustedTime.key) })
  const salt = byKey.get(saltKey)?.toString('latin1') ?? randomBytes(32).toString('hex')
  if (!byKey.has(saltKey)) behind.put(TrustedTime.kind, saltKey, Buffer.from(salt, 'latin1'))
  const { reachability } = upstream
  const reviewer = new Reviewer({ upstream, clock, heardTime: (ms) => latest.hear(ms) })
  const shared = { reviewer, reachability, clock, latest, behind }
  const changes = new Changes(clock)
  const changed = (id: string) => access.drop(id)
  const verifying = { upstream, log, audiences, credentialsMax, stored: byKey.get(issuerKey) }
  const accounts = objects && openAccounts({ ...shared, ...verifying, objects })
  const callers = new Callers({
    ...shared,
    tokens: accounts,
    callersMax: credentialsMax,
    ...{ opaqueMsMax, takesTokens },
    salt,
    credentialVersion,
    changed,
    stored: storedCallers,
  })
  const decisions = new DecisionRecords({ behind, allowed, denied })
  const evaluation = new Evaluation({ clock, log, changes })
  const rules = new KnownRules({ clock, behind, reachability, stored: storedRules })
  evaluation.followCallers(rules)
  const access = new Decisions({ ...shared, callers, changes, evaluation, records: decisions, seen })
  rules.observe({
    changed: () => {
      evaluation.revision++
      changes.note(everywhere)
    },
    current: () => access.compareAgain(),
  })
  const tokens = new TokenKeeper({ callers, behind, stored: storedTokens })
  const watches = new OpenWatches({
    recheck: (identity, question) => access.recheck(identity, question),
    keyOf: (identity) => callers.keyOf(identity),
    changes,
    reachability,
    clock,
  })
  return {
    access,
    rules,
    tokens,
    watches,
    changes,
    evaluation,
    async whoami() {
      const subject = await reviewer.fetchSubject({ kind: 'edge' }, 'edge').done
      return subject.kind === 'caller' ? subject.caller : undefined
    },
    async recheckCaller(identity) {
      const found = await callers.certain(identity)
      return typeof found === 'string' ? found : found.caller
    },
    accounts,
    nowMs: () => latest.nowMs(),
    async run(signal) {
      // What was just learned can no longer be asked for: a crash from here on must not cost it.
      const deaf = reachability.observe((state) => {
        if (state !== 'reachable') void behind.flush()
      })
      await Promise.all([latest.run(signal), watches.run(signal), accounts?.run(signal), rules.run(signal)])
      await behind.run(signal)
      deaf()
    },
  }
}

type AccountParts = Pick<Parts, 'upstream' | 'clock' | 'log'> & {
  readonly objects: BoundObjects
  readonly audiences: readonly string[]
  readonly credentialsMax: number | undefined
  readonly behind: WriteBehind
  readonly latest: TrustedTime
  readonly stored: Buffer | undefined
}

function openAccounts(parts: AccountParts): AccountTokens {
  const { upstream, clock, log, objects, audiences, credentialsMax: verifiedMax, behind, latest, stored } = parts
  const keys = new TokenKeys({
    ...{ upstream, clock, stored },
    keep: (value) => behind.put(TrustedTime.kind, issuerKey, value),
    changed: () => accounts.doubt(),
  })
  const { reachability } = upstream
  const nowMs = () => latest.nowMs()
  const accounts = new AccountTokens({ keys, objects, audiences, verifiedMax, reachability, clock, log, nowMs })
  return accounts
}
