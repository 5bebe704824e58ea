/** A hub's way to its API server, by a kubeconfig or as a pod of the cluster, and the state that lies there or in a folder. */
import { Unavailable, UsageError } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { FolderState } from '../../hub/state/folderstate.ts'
import type { StateStore } from '../../hub/state/keptstate.ts'
import { SecretState } from '../../hub/state/secretstate.ts'
import type { DirectUpstream } from '../../upstream/direct.ts'
import { podAccountIn } from '../../upstream/podaccount.ts'
import { type Gate, Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { openUpstream } from '../openupstream.ts'
import type { StatePlace } from '../optionkinds.ts'

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
  return await openUpstream('hub', {
    servers: server,
    kubeconfig,
    probeEveryMs: probeEvery,
    log,
    ...(gate && { gate }),
  })
}

/** For a command that asks the API server a few things, and ends. */
export async function withHubUpstream<T>(parts: Parts, ask: (upstream: DirectUpstream) => Promise<T>): Promise<T> {
  const upstream = await openHubUpstream(parts)
  try {
    return await ask(upstream)
  } catch (error) {
    throw error instanceof Unreachable ? new Unavailable(`the API server cannot be reached: ${error.message}`) : error
  } finally {
    await letGo(upstream)
  }
}

/** It never ran: this closes its connections. */
function letGo(upstream: DirectUpstream): Promise<void> {
  return upstream.run(AbortSignal.abort())
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
  return { store: stateStoreAt(state, upstream), [Symbol.asyncDispose]: () => letGo(upstream) }
}
