/** The grace period of pods: how long one that is deleted may take to end. */

import { field, isNumber, type JsonObject, text } from '../kube/json/json.ts'

const defaultGraceSeconds = 30 // what the API server would have written into the pod

/** How long a pod may take to end: not at all when no kubelet is there to end it, or nothing runs any more. */
export function podGraceSeconds(tree: JsonObject, asked: number | undefined): number {
  const phase = text(tree, 'status', 'phase')
  if (text(tree, 'spec', 'nodeName') === '' || phase === 'Failed' || phase === 'Succeeded') return 0
  if (asked !== undefined) return asked
  const own = field(tree, 'spec', 'terminationGracePeriodSeconds')
  const seconds = isNumber(own) ? Number(typeof own === 'number' ? own : own.source) : defaultGraceSeconds
  return seconds < 0 ? 1 : seconds
}
