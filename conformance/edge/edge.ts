/** `ake edge` as a process of its own, in front of a real API server or of the link to it. */
import { type Ake, type AkeOptions, startCommand } from '../ake.ts'
import { freePorts } from '../ports.ts'

export type EdgeOptions = AkeOptions & {
  /** The API server, or several addresses of it in the order of preference; none where the kubeconfig says it. */
  readonly server: string | readonly string[]
  /** The path of the kubeconfig with which the edge itself reads upstream. */
  readonly kubeconfig: string
}

/** Resolves when it serves, which it does also while the API server is away: started again on the same `dir`, from disk. */
export async function startEdge({ server, kubeconfig, ...options }: EdgeOptions): Promise<Ake> {
  // Its clients must find it again after a restart; a port that the system picks may be somebody else's by then.
  const port = options.port ?? (await freePorts(1))[0]!
  const servers = typeof server === 'string' ? [server] : server
  return startCommand(['edge', ...servers.flatMap((address) => ['--server', address]), '--kubeconfig', kubeconfig], {
    ...options,
    port,
  })
}
