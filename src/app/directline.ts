/** Straight to the API server, with the edge's own credential there. */
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { dialTcp } from '../upstream/dial.ts'
import { DirectUpstream } from '../upstream/direct.ts'
import { followDirect } from '../upstream/follow/direct.ts'
import type { Gate } from '../upstream/upstream.ts'
import type { CloudLine } from './cloudline.ts'
import type { EdgeConfig } from './config.ts'
import { confirmRefusal, reviewRead } from './confirm.ts'
import { LinkEpochs } from './linkepochs.ts'
import { akeVersion } from './version.ts'
import type { DirectWay } from './way.ts'

const clock = systemClock

export async function openDirectLine(
  config: EdgeConfig,
  { kubeconfig }: DirectWay,
  parts: { gate: Gate; log: Log },
): Promise<CloudLine> {
  const upstream = await openUpstream(config, kubeconfig, parts)
  return {
    upstream,
    node: undefined,
    async follow({ store, limits, log }) {
      // What is kept in step without a hub is of an epoch that no hub tells.
      ;(await LinkEpochs.open({ store, log })).keep(new Set())
      return { follow: followDirect({ upstream, limits, clock, confirm: () => upstream.confirm() }) }
    },
    trustTime() {},
    mayRead: (interest) => reviewRead(interest, { upstream, by: 'edge' }),
    confirms: (catalog) => confirmRefusal({ upstream, catalog }),
  }
}

async function openUpstream(
  config: EdgeConfig,
  kubeconfig: string,
  { gate, log }: { gate: Gate; log: Log },
): Promise<DirectUpstream> {
  try {
    return await DirectUpstream.open({
      dial: dialTcp(),
      servers: config.server,
      kubeconfig,
      certificates: config.clientCredential,
      environment: process.env,
      probeEveryMs: config.probeEvery,
      userAgent: `ake/${akeVersion} (edge)`,
      clock,
      log,
      gate,
    })
  } catch (error) {
    throw new UsageError(reasonOf(error))
  }
}
