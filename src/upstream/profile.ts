/** Everything the upstream reads from files, as one value: read at the start, again when a file changed, and compared. */
import type { X509Certificate } from 'node:crypto'
import { type Credential, readKubeconfig, readPair } from './credential.ts'
import { type PodAccount, readPodAccount } from './podaccount.ts'
import { type ForwardProxy, type ProxyVariables, proxyFor } from './proxychoice.ts'
import type { Trust } from './secure.ts'

export type Files = {
  /** https URLs in the order of preference; none: the kubeconfig's own. */
  readonly servers: readonly string[]
  /** Its path, or what this process has as a pod. */
  readonly kubeconfig: string | PodAccount
  /** Credentials for callers by the common name of their certificate. */
  readonly certificates?: readonly { readonly name: string; readonly cert: string; readonly key: string }[]
  /** May name a proxy; without it only the kubeconfig does. */
  readonly environment?: ProxyVariables
}

export type Upstreams = {
  readonly urls: readonly URL[]
  /** Those that are reached through one, by their URLs. */
  readonly proxies: ReadonlyMap<string, ForwardProxy>
  readonly trust: Trust
  /** Who the edge is, and who it may speak for, by `edge` and `certificate/NAME`. */
  readonly credentials: ReadonlyMap<string, Credential>
  readonly files: readonly string[]
}

/** Rejects with a sentence when there is no server to reach. */
export async function readUpstreams({
  servers,
  kubeconfig,
  certificates = [],
  environment,
}: Files): Promise<Upstreams> {
  const profile = typeof kubeconfig === 'string' ? await readKubeconfig(kubeconfig) : await readPodAccount(kubeconfig)
  const given = servers.length > 0 ? servers : [profile.server]
  const credentials = new Map([['edge', profile.credential]])
  const files = [...profile.files]
  for (const { name, cert, key } of certificates) {
    const pair = await readPair(cert, key)
    credentials.set(`certificate/${name}`, namedAlike(name, pair) ? pair : { missing: anotherName(name, cert, pair) })
    files.push(cert, key)
  }
  const urls = given.map((server) => parseServer(server, typeof kubeconfig === 'string' ? kubeconfig : ''))
  const proxies = new Map<string, ForwardProxy>()
  for (const url of urls) {
    const proxy = proxyFor(url, { proxyUrl: profile.proxyUrl, environment })
    if (proxy !== undefined) proxies.set(url.href, proxy)
  }
  return { urls, proxies, trust: profile.trust, credentials, files }
}

/** A caller that shows it would have another name than the one it is configured for: it could never be used. */
function namedAlike(name: string, { certificate }: Credential): boolean {
  return certificate === undefined || commonName(certificate) === name
}

function commonName(certificate: X509Certificate | undefined): string {
  return [certificate?.toLegacyObject().subject.CN].flat().at(-1) ?? ''
}

function anotherName(name: string, path: string, { certificate }: Credential): string {
  const shown = commonName(certificate)
  return `the client certificate ${path} bears the common name "${shown}", not "${name}": give that of ${name}, or write --client-credential ${shown}=CERT,KEY`
}

function parseServer(server: string, kubeconfig: string): URL {
  if (server === '') throw new Error(`the kubeconfig ${kubeconfig} names no server: set it, or give --server`)
  const url = URL.parse(server)
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new Error(`the API server's address has to be like https://HOST:PORT: check --server and the kubeconfig's`)
  }
  return url
}
