/** Straight to the API server, with the edge's own credential there. */
import { systemClock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { followDirect } from '../upstream/follow/direct.ts'
import type { Gate } from '../upstream/upstream.ts'
import type { CloudLine } from './cloudline.ts'
import type { EdgeConfig } from './config.ts'
import { confirmRefusal, reviewRead } from './confirm.ts'
import { LinkEpochs } from './linkepochs.ts'
import { openUpstream } from './openupstream.ts'
import type { DirectWay } from './way.ts'

const clock = systemClock

export async function openDirectLine(
  config: EdgeConfig,
  { kubeconfig }: DirectWay,
  { gate, log }: { gate: Gate; log: Log },
): Promise<CloudLine> {
  const { server: servers, clientCredential: certificates, probeEvery: probeEveryMs } = config
  const upstream = await openUpstream('edge', { servers, kubeconfig, certificates, probeEveryMs, log, gate })
  return {
    upstream,
    node: undefined,
    async follow({ store, limits, log: told }) {
      // What is kept in step without a hub is of an epoch that no hub tells.
      ;(await LinkEpochs.open({ store, log: told })).keep(new Set())
      return { follow: followDirect({ upstream, limits, clock, confirm: () => upstream.confirm() }) }
    },
    trustTime() {},
    mayRead: (interest) => reviewRead(interest, { upstream, by: 'edge' }),
    confirms: (catalog) => confirmRefusal({ upstream, catalog }),
  }
}
