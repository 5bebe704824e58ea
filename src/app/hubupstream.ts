/** A hub's way to its API server, by a kubeconfig or as a pod of the cluster, and the state that lies there or in a folder. */
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import { FolderState } from '../hub/state/folderstate.ts'
import type { StateStore } from '../hub/state/keptstate.ts'
import { SecretState } from '../hub/state/secretstate.ts'
import { dialTcp } from '../upstream/dial.ts'
import { DirectUpstream } from '../upstream/direct.ts'
import { podAccountIn } from '../upstream/podaccount.ts'
import type { Gate, Upstream } from '../upstream/upstream.ts'
import type { StatePlace } from './optionkinds.ts'
import { akeVersion } from './version.ts'

type Parts = {
  readonly kubeconfig: string | undefined
  readonly server?: readonly string[]
  readonly probeEvery?: number
  readonly gate?: Gate
  readonly log: Log
}

const probeEveryMs = 5_000

export async function openHubUpstream(parts: Parts): Promise<DirectUpstream> {
  const { server = [], probeEvery = probeEveryMs, gate, log } = parts
  const kubeconfig = parts.kubeconfig ?? podAccountIn(process.env)
  if (kubeconfig === undefined) {
    throw new UsageError(
      'the API server is not known: give --kubeconfig, or run in a pod of the cluster, which has KUBERNETES_SERVICE_HOST',
    )
  }
  try {
    return await DirectUpstream.open({
      ...{ dial: dialTcp(), servers: server, kubeconfig, environment: process.env, probeEveryMs: probeEvery },
      ...{ userAgent: `ake/${akeVersion} (hub)`, clock: systemClock, log, ...(gate && { gate }) },
    })
  } catch (error) {
    throw new UsageError(reasonOf(error))
  }
}

export function stateStoreAt(state: StatePlace, upstream: Pick<Upstream, 'ask'>): StateStore {
  return 'folder' in state ? new FolderState(state.folder) : new SecretState({ ...state, upstream })
}

export type OpenedStore = AsyncDisposable & { readonly store: StateStore }

/** For a command that only needs the state. */
export async function openStateStore(parts: {
  readonly state: StatePlace
  readonly kubeconfig: string | undefined
  readonly log: Log
}): Promise<OpenedStore> {
  const { state } = parts
  if ('folder' in state) return { store: new FolderState(state.folder), [Symbol.asyncDispose]: () => Promise.resolve() }
  const upstream = await openHubUpstream(parts)
  // It never ran: this lets go of its connections.
  return { store: stateStoreAt(state, upstream), [Symbol.asyncDispose]: () => upstream.run(AbortSignal.abort()) }
}
