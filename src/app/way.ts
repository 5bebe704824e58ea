/** Which way an edge is told to take to its cloud: the kubeconfig of an API server, or a hub and the credential for it. */
import { UsageError } from '../base/fault.ts'
import type { EdgeConfig } from './config.ts'

export type DirectWay = { readonly kubeconfig: string }
export type HubWay = {
  readonly hub: readonly string[]
  readonly credential: string
  /** Where the kubelet's serving certificate is kept. */
  readonly serving: string | undefined
}

type Asked = Pick<
  EdgeConfig,
  'kubeconfig' | 'server' | 'hub' | 'credential' | 'clientCredential' | 'kubeletServingCertificate'
>

/** Throws `UsageError`. */
export function wayOf(asked: Asked): DirectWay | HubWay {
  const { kubeconfig, server, hub, credential, clientCredential, kubeletServingCertificate: serving } = asked
  if (hub.length === 0) {
    if (credential !== undefined) throw new UsageError('--credential is for a hub: give --hub as well')
    if (serving !== undefined)
      throw new UsageError('--kubelet-serving-certificate is asked for through a hub: give --hub as well')
    if (kubeconfig !== undefined) return { kubeconfig }
    throw new UsageError(
      '"ake edge" needs --kubeconfig: give the kubeconfig with which this node reaches its cluster, or --hub and --credential to reach it through a hub',
    )
  }
  if (credential === undefined)
    throw new UsageError(
      '--hub needs --credential: give the file that "ake join" or "ake hub issue" wrote for this node',
    )
  const given = { '--kubeconfig': kubeconfig, '--server': server[0], '--client-credential': clientCredential[0] }
  for (const [flag, value] of Object.entries(given)) {
    if (value !== undefined)
      throw new UsageError(`${flag} has no effect with --hub, through which everything goes: leave one of them out`)
  }
  return { hub, credential, serving }
}

/** Through a hub an edge is the node that its credential names. Throws `UsageError`. */
export function nodeOfWay(given: string | undefined, certified: string | undefined): string | undefined {
  if (given === undefined || certified === undefined || given === certified) return given ?? certified
  throw new UsageError(
    `--node ${given} is not the node of --credential (${certified}): leave it out, or give the other credential`,
  )
}
