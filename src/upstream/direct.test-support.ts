/** A direct upstream that runs before fake servers, with times that suit a test. */
import { systemClock } from '../base/clock.ts'
import { createLog } from '../base/log.ts'
import { dialTcp } from './dial.ts'
import { DirectUpstream } from './direct.ts'
import type { UpstreamLimits } from './limits.ts'
import type { Gate, Identity, UpstreamResponse } from './upstream.ts'
import { readWhole } from './whole.ts'

const edge: Identity = { kind: 'edge' }

type Parts = {
  kubeconfig: string
  servers?: readonly string[]
  limits?: Partial<UpstreamLimits>
  probeEveryMs?: number
  gate?: Gate
  environment?: Record<string, string>
  certificates?: readonly { name: string; cert: string; key: string }[]
}

export async function runDirect({
  kubeconfig,
  servers = [],
  limits = {},
  probeEveryMs = 50,
  gate,
  environment = {},
  certificates = [],
}: Parts) {
  const lines: string[] = []
  const upstream = await DirectUpstream.open({
    dial: dialTcp(),
    servers,
    kubeconfig,
    environment,
    certificates,
    probeEveryMs,
    ...(gate && { gate }),
    userAgent: 'ake/test (edge)',
    clock: systemClock,
    log: createLog({ level: 'debug', write: (line) => void lines.push(line) }),
    limits: { followEveryMs: 20, drainMsMax: 60, redialFirstMs: 5, redialMsMax: 20, ...limits },
  })
  const ending = new AbortController()
  const running = upstream.run(ending.signal)
  const get = (path: string, more: object = {}): Promise<UpstreamResponse> =>
    upstream.ask({ method: 'GET', path, identity: edge, ...more })
  return {
    upstream,
    lines,
    get,
    read: async (path: string, more: object = {}) => (await readWhole(await get(path, more), 1 << 20)).toString(),
    end: async () => {
      ending.abort()
      await running
    },
  }
}
