/** Whether a hello fits this hub. */
import type { LinkFrame } from '../frames/frames.ts'
import type { SessionLimits } from './limits.ts'
import type { RefusalReason } from './session.ts'

export type SessionRefusal = {
  readonly reason: RefusalReason
  readonly retryAfterMs: number
  readonly sentence: string
}

type GreetedHub = { readonly cluster: string; readonly epoch: number; readonly limits: SessionLimits }

export const noProtocol: SessionRefusal = {
  reason: 'protocol',
  retryAfterMs: 0,
  sentence: 'no protocol that both speak',
}

/** Why it does not; undefined: it does. */
export function misfitOf(
  { cluster, epoch, window }: Extract<LinkFrame, { readonly kind: 'hello' }>,
  own: GreetedHub,
): SessionRefusal | undefined {
  const { windowMin, busyRetryMs } = own.limits
  if (window < windowMin)
    return { reason: 'limit', retryAfterMs: 0, sentence: `a window of ${window} bytes, at least ${windowMin}` }
  if (cluster !== '' && cluster !== own.cluster)
    return { reason: 'cluster', retryAfterMs: 0, sentence: `this is the hub of cluster ${own.cluster}` }
  if (cluster !== '' && epoch > own.epoch)
    return { reason: 'busy', retryAfterMs: busyRetryMs, sentence: `not heard yet of epoch ${epoch}` }
  return undefined
}
