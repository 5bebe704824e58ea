/** A kubeconfig of one server and one caller, as the clients of a proof need it. */
import { writeFile } from 'node:fs/promises'

export type Caller = {
  readonly url: string
  /** PEM, not paths. */
  readonly ca: string
  readonly cert?: string
  readonly key?: string
  readonly token?: string
}

/** Written with mode 0600: it holds a key or a token. */
export function writeKubeconfig(path: string, caller: Caller): Promise<void> {
  return writeFile(path, kubeconfig(caller), { mode: 0o600 })
}

function kubeconfig({ url, ca, cert, key, token }: Caller): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const user = {
    ...(cert === undefined ? {} : { 'client-certificate-data': base64(cert) }),
    ...(key === undefined ? {} : { 'client-key-data': base64(key) }),
    ...(token === undefined ? {} : { token }),
  }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'oracle', cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'admin', user }],
    contexts: [{ name: 'oracle', context: { cluster: 'oracle', user: 'admin' } }],
    'current-context': 'oracle',
  }
  return `${JSON.stringify(config, null, 2)}\n`
}
