/**
 * Access put together: reads what was stored, so that a restart without the cloud knows every caller it knew before.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Access, Records } from './access.ts'
import { Callers, callerKind } from './callers.ts'
import { Changes } from './changes.ts'
import { Decisions, decisionKind } from './decisions.ts'
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
}

const saltKey = 'salt'

export async function openAccess({
  upstream,
  records,
  clock,
  log,
  credentialVersion = () => '',
}: Parts): Promise<OpenAccess> {
  const kinds = [TrustedTime.kind, callerKind, decisionKind, tokenKind] as const
  const [own = [], storedCallers = [], storedDecisions = [], storedTokens = []] = await Promise.all(
    kinds.map((kind) => records.records(kind)),
  )
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
  const callers = new Callers({ ...shared, salt, credentialVersion, changed, stored: storedCallers })
  const access = new Decisions({ ...shared, callers, changes, stored: storedDecisions })
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
    tokens,
    watches,
    changes,
    nowMs: () => latest.nowMs(),
    async run(signal) {
      // What was just learned can no longer be asked for: a crash from here on must not cost it.
      const deaf = reachability.observe((state) => {
        if (state !== 'reachable') void behind.flush()
      })
      await Promise.all([latest.run(signal), watches.run(signal)])
      await behind.run(signal)
      deaf()
    },
  }
}
