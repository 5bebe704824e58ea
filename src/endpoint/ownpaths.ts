/** Paths that are about this process and not about the API: who may see which, whatever stands behind it. */

/** Answered to every client, as kube-apiserver's system:public-info-viewer allows. */
const openRoots: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz'])
/** What `ake status` shows: of this machine, to its administrator. */
export const statusPath = '/ake/status'

export function isOpen(path: string): boolean {
  return openRoots.has(rootOf(path))
}

export function isOwn(path: string): boolean {
  return path === statusPath || isOpen(path) || rootOf(path) === 'metrics'
}

function rootOf(path: string): string {
  return path.split('/', 2)[1] ?? ''
}
