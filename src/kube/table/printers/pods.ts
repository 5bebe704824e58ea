/**
 * The row of a pod. STATUS is not the phase: it is the most telling reason found in the pod's containers, looked for in
 * a fixed order (phase, scheduling gate, init containers, containers, deletion).
 */

import { humanDuration, setTime } from '../duration.ts'
import {
  age,
  type Cell,
  condition,
  count,
  deleting,
  field,
  flag,
  list,
  nameOf,
  type RowCondition,
  text,
  type View,
} from './read.ts'

/** `last` is when a container last ended before it was started again, in milliseconds; 0 if never. */
type Restarts = { times: number; last: number }

/** What a walk over container statuses finds out. */
type Tally = { reason: string; ready: number; restarts: Restarts }

/** The reason of a pod whose node does not answer. */
const NODE_LOST = 'NodeLost'

export function printPod(pod: View, nowMs: number): readonly Cell[] {
  const tally: Tally = { reason: reasonOfPod(pod), ready: 0, restarts: { times: 0, last: 0 } }
  const sidecars = sidecarNames(pod)
  const sidecarRestarts: Restarts = { times: 0, last: 0 }
  const initializing = walkInitContainers(pod, sidecars, sidecarRestarts, tally)
  if (!initializing || text(condition(pod, 'Initialized'), 'status') === 'True') {
    // Restarts of init containers that are done no longer matter.
    tally.restarts = sidecarRestarts
    walkContainers(pod, tally)
  }
  const { times, last } = tally.restarts
  const total = list(pod, 'spec', 'containers').length + sidecars.size
  return [
    nameOf(pod),
    `${tally.ready}/${total}`,
    statusOf(pod, tally.reason),
    times !== 0 && last !== 0 ? `${times} (${humanDuration(nowMs - last)} ago)` : String(times),
    age(pod, nowMs),
    text(list(pod, 'status', 'podIPs')[0], 'ip') || text(pod, 'status', 'podIP') || '<none>',
    text(pod, 'spec', 'nodeName') || '<none>',
    text(pod, 'status', 'nominatedNodeName') || '<none>',
    readinessGates(pod),
  ]
}

/** A finished pod says so beside its cells. */
export function podConditions(pod: View): readonly RowCondition[] {
  const phase = text(pod, 'status', 'phase')
  const done = { type: 'Completed', status: 'True' } as const
  if (phase === 'Succeeded') return [{ ...done, reason: phase, message: 'The pod has completed successfully.' }]
  if (phase === 'Failed') return [{ ...done, reason: phase, message: 'The pod failed.' }]
  return []
}

function reasonOfPod(pod: View): string {
  const gated = list(pod, 'status', 'conditions').some(
    (entry) => text(entry, 'type') === 'PodScheduled' && text(entry, 'reason') === 'SchedulingGated',
  )
  if (gated) return 'SchedulingGated'
  return text(pod, 'status', 'reason') || text(pod, 'status', 'phase')
}

function statusOf(pod: View, reason: string): string {
  if (!deleting(pod)) return reason
  if (text(pod, 'status', 'reason') === NODE_LOST) return 'Unknown'
  const phase = text(pod, 'status', 'phase')
  return phase === 'Succeeded' || phase === 'Failed' ? reason : 'Terminating'
}

/** Init containers that go on running beside the others count as containers of the pod. */
function sidecarNames(pod: View): ReadonlySet<string> {
  const sidecars = list(pod, 'spec', 'initContainers').filter((entry) => text(entry, 'restartPolicy') === 'Always')
  return new Set(sidecars.map((entry) => text(entry, 'name')))
}

function addRestarts(restarts: Restarts, status: unknown): void {
  restarts.times += count(status, 'restartCount')
  restarts.last = Math.max(restarts.last, setTime(field(status, 'lastState', 'terminated', 'finishedAt')) ?? 0)
}

/** True when an init container is still in the way; its state is then the pod's reason. */
function walkInitContainers(
  pod: View,
  sidecars: ReadonlySet<string>,
  sidecarRestarts: Restarts,
  tally: Tally,
): boolean {
  const total = list(pod, 'spec', 'initContainers').length
  for (const [index, status] of list(pod, 'status', 'initContainerStatuses').entries()) {
    addRestarts(tally.restarts, status)
    const sidecar = sidecars.has(text(status, 'name'))
    if (sidecar) addRestarts(sidecarRestarts, status)
    const terminated = field(status, 'state', 'terminated')
    if (terminated !== undefined && count(terminated, 'exitCode') === 0) continue
    if (sidecar && flag(status, 'started')) {
      if (flag(status, 'ready')) tally.ready += 1
      continue
    }
    const waiting = text(status, 'state', 'waiting', 'reason')
    if (terminated !== undefined) tally.reason = `Init:${endReason(terminated)}`
    else if (waiting !== '' && waiting !== 'PodInitializing') tally.reason = `Init:${waiting}`
    else tally.reason = `Init:${index}/${total}`
    return true
  }
  return false
}

function walkContainers(pod: View, tally: Tally): void {
  let running = false
  let failure = ''
  for (const status of list(pod, 'status', 'containerStatuses').toReversed()) {
    addRestarts(tally.restarts, status)
    const waiting = text(status, 'state', 'waiting', 'reason')
    const terminated = field(status, 'state', 'terminated')
    if (waiting !== '') tally.reason = waiting
    else if (terminated !== undefined) {
      tally.reason = endReason(terminated)
      if (count(terminated, 'exitCode') !== 0) failure = tally.reason
    } else if (flag(status, 'ready') && field(status, 'state', 'running') !== undefined) {
      running = true
      tally.ready += 1
    }
  }
  if (tally.reason !== 'Completed') return
  const ready = list(pod, 'status', 'conditions').some(
    (entry) => text(entry, 'type') === 'Ready' && text(entry, 'status') === 'True',
  )
  if (running && ready) tally.reason = 'Running'
  else if (failure !== '') tally.reason = failure
  else if (running) tally.reason = 'NotReady'
}

function endReason(terminated: unknown): string {
  const reason = text(terminated, 'reason')
  if (reason !== '') return reason
  const signal = count(terminated, 'signal')
  return signal === 0 ? `ExitCode:${count(terminated, 'exitCode')}` : `Signal:${signal}`
}

function readinessGates(pod: View): string {
  const gates = list(pod, 'spec', 'readinessGates')
  if (gates.length === 0) return '<none>'
  const open = gates.filter((gate) => text(condition(pod, text(gate, 'conditionType')), 'status') === 'True')
  return `${open.length}/${gates.length}`
}
