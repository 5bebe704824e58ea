/** The administrator's kubeconfig: everything kubectl needs, certificates included, in one file for its owner only. */
import { isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'
import type { Pki } from './pki.ts'
import { readPrivateFile, writePrivateFile } from './privatefile.ts'

/** `https://HOST:PORT` as a client on this machine reaches it: a wildcard address is reached over loopback. */
export function serverUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `https://${isIP(reachable) === 6 ? `[${reachable}]` : reachable}:${port}`
}

/** The address at which clients on this machine are sent: loopback where it listens there, else the first. */
export function nearest<A extends { readonly host: string }>(addresses: readonly A[]): A {
  const reached = (host: string) => host.replace(/^0\.0\.0\.0$/, '127.0.0.1').replace(/^::$/, '::1')
  return addresses.find(({ host }) => isLoopback(reached(host))) ?? (addresses[0] as A)
}

/** Written anew when the port or the certificates have changed; otherwise not touched, so that a full disk can be started on. */
export async function writeKubeconfig(path: string, server: string, pki: Pki): Promise<void> {
  const text = kubeconfig(server, pki)
  if ((await readPrivateFile(path)) !== text) await writePrivateFile(path, text)
}

function kubeconfig(server: string, { ca, admin }: Pki): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  return `apiVersion: v1
kind: Config
clusters:
- name: ake
  cluster:
    server: ${JSON.stringify(server)}
    certificate-authority-data: ${base64(ca)}
users:
- name: ake-admin
  user:
    client-certificate-data: ${base64(admin.cert)}
    client-key-data: ${base64(admin.key)}
contexts:
- name: ake
  context:
    cluster: ake
    user: ake-admin
current-context: ake
`
}

export type KubeletPlaces = {
  /** https://HOST:PORT of the edge. */
  readonly server: string
  /** Paths: the edge's own authority, and the file with the node's certificate and key, which is renewed. */
  readonly ca: string
  readonly credential: string
}

/** The kubelet's: it names files and holds nothing secret, so that a renewed certificate is found without writing it anew. */
export function kubeletKubeconfig({ server, ca, credential }: KubeletPlaces): string {
  const quoted = (text: string) => JSON.stringify(text)
  return `apiVersion: v1
kind: Config
clusters:
- name: ake
  cluster:
    server: ${quoted(server)}
    certificate-authority: ${quoted(ca)}
users:
- name: kubelet
  user:
    client-certificate: ${quoted(credential)}
    client-key: ${quoted(credential)}
contexts:
- name: ake
  context:
    cluster: ake
    user: kubelet
current-context: ake
`
}
