/** `ake hub issue`: a credential with which an edge reaches the hub, in one file that is carried there. */
import { X509Certificate } from 'node:crypto'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/fault.ts'
import { createLog } from '../../base/log.ts'
import { edgePair } from '../../hub/state/certificates.ts'
import { KeptState } from '../../hub/state/keptstate.ts'
import { credentialText } from '../../pki/credentialfile.ts'
import { createPrivateFile, writePrivateFile } from '../../pki/privatefile.ts'
import type { HubIssueConfig } from '../config.ts'
import { kinds } from '../optionkinds.ts'
import { openStateStore } from './upstream.ts'

/** Answers what to print. */
export async function hubIssue(name: string, config: HubIssueConfig): Promise<string> {
  if (kinds.name.parse(name) === undefined) {
    throw new UsageError(
      `"${name}" cannot be the name of a node: give the one in the cluster, lower-case letters, digits, "-" and "."`,
    )
  }
  const log = createLog({ level: 'warn' })
  const clock = systemClock
  await using at = await openStateStore({ ...config, log })
  const kept = await KeptState.open({ store: at.store, clock, log })
  const pair = edgePair(kept.current, name, clock.now())
  const until = new X509Certificate(pair.cert).validToDate.toISOString().slice(0, 10)
  const title = `credential of the edge ${name} at its hub, until ${until}`
  const text = credentialText({ ca: kept.current.ca.cert, pair, title })
  if (config.force) await writePrivateFile(config.out, text)
  else if (!(await createPrivateFile(config.out, text))) {
    throw new UsageError(`${config.out} is there already: give another file with --out, or --force to replace it`)
  }
  const made = kept.isNew ? `made a new hub's state in ${at.store.name}: no edge and no other hub knows it yet\n` : ''
  return `${made}wrote ${config.out}: ${title}\n`
}
