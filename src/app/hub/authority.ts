/**
 * `ake hub authority`: what the hub's authorities are, and the three steps from one to the next. Hubs that run take each over within
 * a minute; edges hear of it over their links, and keep it.
 */
import { systemClock } from '../../base/clock.ts'
import { Unavailable, UsageError } from '../../base/fault.ts'
import { createLog } from '../../base/log.ts'
import { authoritiesOf, withCompromised, withNext, withoutOld, withSwitched } from '../../hub/state/authorities.ts'
import type { StateStore, StoredState } from '../../hub/state/keptstate.ts'
import { type HubState, readState, textsOf } from '../../hub/state/state.ts'
import type { HubAuthorityConfig } from '../config.ts'
import { openStateStore } from './upstream.ts'

type AuthorityStep = (state: HubState, now: number) => HubState

/** Every hub has read it then, and told its edges. */
const announcedMsMin = 10 * 60_000
/** Edges come back from holidays, and sessions that were begun with the old one end. */
const trustedMsMin = 7 * 24 * 3600_000
/** A hub may write the state at the same time. */
const triesMax = 5

/** Answers what to print. */
export async function hubAuthority(word: string, config: HubAuthorityConfig): Promise<string> {
  const log = createLog({ level: 'warn' })
  await using at = await openStateStore({ ...config, log })
  if (word === 'show') return shown((await read(at.store)).state)
  const named = steps[word]
  if (named === undefined)
    throw new UsageError(`"${word}" is no step: write "ake hub authority show", "rotate", "switch" or "retire"`)
  if (config.compromised && word !== 'switch')
    throw new UsageError(`--compromised goes with "ake hub authority switch", not with "${word}"`)
  const step = config.compromised ? { ...named, ...compromised } : named
  const now = systemClock.now()
  for (let tries = 0; tries < triesMax; tries++) {
    const { stored, state } = await read(at.store)
    const hasty = config.force ? undefined : step.hasty(state, now)
    if (hasty !== undefined) throw new UsageError(`${hasty}. --force does it all the same`)
    const next = step.take(state, now)
    if (await at.store.replace(stored, { ...stored.texts, ...textsOf(next) })) return `${step.said}\n${shown(next)}`
  }
  throw new Unavailable(`${at.store.name} changes all the time: try again`)
}

const steps: Readonly<
  Record<
    string,
    { readonly take: AuthorityStep; readonly said: string; hasty(state: HubState, now: number): string | undefined }
  >
> = {
  rotate: {
    take: withNext,
    said: 'announced another authority: hubs tell their edges. In ten minutes or later: ake hub authority switch',
    hasty: () => undefined,
  },
  switch: {
    take: withSwitched,
    said: 'hubs sign and serve with the new authority within a minute, and edges renew their credentials over their links. When all have: ake hub authority retire',
    hasty: ({ next }, now) =>
      next !== undefined && now - next.madeAtMs < announcedMsMin
        ? `it was announced at ${new Date(next.madeAtMs).toISOString()}, and edges may not have heard of it: wait ten minutes`
        : undefined,
  },
  retire: {
    take: withoutOld,
    said: 'old authorities are trusted no more: what they signed is refused from now on. Who was away the whole time needs a new credential ("ake hub issue", or join again)',
    hasty: ({ switchedAtMs, old }, now) =>
      old.length > 0 && switchedAtMs !== undefined && now - switchedAtMs < trustedMsMin
        ? `the new authority signs since ${new Date(switchedAtMs).toISOString()}: an edge that was away since then would be locked out. "ake hub edges" shows who has a certificate of an old one; wait a week`
        : undefined,
  },
}

/** In place of `switch`, where the old one may not count for another moment. */
const compromised = {
  take: withCompromised,
  said: 'hubs sign and serve with the new authority within a minute, and trust no other: links of edges that "ake hub issue" made end then. Issue each a new credential ("ake hub issue --force"); edges that joined go on. A hub that had not heard of "rotate" keeps the old one and logs hub.state: restart it',
}

async function read(store: StateStore): Promise<{ readonly stored: StoredState; readonly state: HubState }> {
  const stored = await store.read()
  if (stored === undefined)
    throw new UsageError(`there is no hub's state in ${store.name}: check --state and --kubeconfig`)
  return { stored, state: readState(stored.texts, store.name) }
}

function shown(state: HubState): string {
  const rows = authoritiesOf(state).map(({ role, hash, certificate }) => {
    const until = certificate.validToDate.toISOString().slice(0, 10)
    return `${role.padEnd(8)} ${hash} until ${until}\n`
  })
  return rows.join('')
}
