/** `ake edge` as a process of its own, in front of a real API server or of the link to it. */
import { type Ake, type AkeOptions, startCommand } from '../ake.ts'
import { freePorts } from '../ports.ts'

type DirectWay = {
  /** The API server, or several addresses of it in the order of preference; none where the kubeconfig says it. */
  readonly server: string | readonly string[]
  /** The path of the kubeconfig with which the edge itself reads upstream. */
  readonly kubeconfig: string
}

/** Through hubs at these addresses, with the file that one of them issued. */
type HubWay = { readonly hub: readonly string[]; readonly credential: string }

export type EdgeWay = DirectWay | HubWay

export type EdgeOptions = AkeOptions & EdgeWay

/** Resolves when it serves, which it does also while the API server is away: started again on the same `dir`, from disk. */
export async function startEdge(options: EdgeOptions): Promise<Ake> {
  // Its clients must find it again after a restart; a port that the system picks may be somebody else's by then.
  const port = options.port ?? (await freePorts(1))[0]!
  return startCommand(['edge', ...wordsOf(options)], { ...options, port })
}

function wordsOf(way: EdgeWay): string[] {
  if ('hub' in way) return [...way.hub.flatMap((address) => ['--hub', address]), '--credential', way.credential]
  const servers = [way.server].flat()
  return [...servers.flatMap((address) => ['--server', address]), '--kubeconfig', way.kubeconfig]
}
