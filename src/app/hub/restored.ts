/** `ake hub restored`: the operator says that the cluster was put back to an earlier state, where no hub ran that could notice it. */
import { systemClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { KeptEpoch } from '../../hub/state/epochs.ts'
import type { HubRestoredConfig } from '../config.ts'
import { openStateStore } from './upstream.ts'

/** Answers what to print. */
export async function hubRestored(config: HubRestoredConfig): Promise<string> {
  const log = createLog({ level: 'error' })
  await using at = await openStateStore({ ...config, log })
  const kept = await KeptEpoch.open({ store: at.store, clock: systemClock, log })
  await kept.declare(0)
  return `wrote epoch ${kept.current.number} to ${at.store.name}: hubs that run take it over within a minute\n`
}
