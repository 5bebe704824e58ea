/**
 * Through which proxy an API server is reached, if any, as client-go chooses: the `proxy-url` of the kubeconfig's cluster
 * always; otherwise what HTTPS_PROXY names, unless NO_PROXY exempts the server or it is on this machine
 * (golang.org/x/net/http/httpproxy). What names no proxy is refused with a sentence, where client-go would go without one.
 */
import { BlockList, isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'

export type ForwardProxy = {
  readonly kind: 'http' | 'https' | 'socks5'
  readonly host: string
  readonly port: number
  /** For people: without the credential. */
  readonly name: string
  readonly user?: string
  readonly password?: string
}

export type ProxyVariables = Readonly<Record<string, string | undefined>>

const kinds = {
  'http:': { kind: 'http', port: 80 },
  'https:': { kind: 'https', port: 443 },
  'socks5:': { kind: 'socks5', port: 1080 },
  // To Go the two are one: names are looked up by the proxy.
  'socks5h:': { kind: 'socks5', port: 1080 },
} as const

/** For one API server; rejects with a sentence that quotes nothing. */
export function proxyFor(
  server: URL,
  {
    proxyUrl,
    environment = {},
  }: { readonly proxyUrl?: string | undefined; readonly environment?: ProxyVariables | undefined },
): ForwardProxy | undefined {
  if (proxyUrl !== undefined) return parseProxy(proxyUrl, "the kubeconfig's proxy-url")
  const variable = ['HTTPS_PROXY', 'https_proxy'].find((name) => environment[name])
  const given = variable === undefined ? undefined : environment[variable]
  if (variable === undefined || given === undefined) return undefined
  const host = plainHost(server).toLowerCase()
  const port = server.port || '443'
  if (host === 'localhost' || isLoopback(host)) return undefined
  if (isExempt(environment.NO_PROXY || environment.no_proxy || '', host, port)) return undefined
  return parseProxy(/^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`, variable)
}

function parseProxy(text: string, where: string): ForwardProxy {
  const wrong = `${where} names no proxy: give http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT`
  const url = URL.parse(text.trim())
  const known = kinds[url?.protocol as keyof typeof kinds]
  const host = url === null ? '' : plainHost(url)
  if (url === null || known === undefined || host === '') throw new Error(wrong)
  const { kind } = known
  const port = Number(url.port || known.port)
  const name = `${kind}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  if (url.username === '' && url.password === '') return { kind, host, port, name }
  try {
    const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
    // SOCKS says each with one byte for its length.
    const isLong = kind === 'socks5' && [user, password].some((one) => Buffer.byteLength(one) > 255)
    if (!isLong) return { kind, host, port, name, user, password }
  } catch {}
  throw new Error(`${where} holds a credential that cannot be sent: write special characters as %XX`)
}

/** Whether any entry of NO_PROXY matches: `*`, a network, an address, a domain with all below it or (`.a.b`) only these. */
function isExempt(noProxy: string, host: string, port: string): boolean {
  const entries = noProxy.split(',').map((entry) => entry.trim().toLowerCase())
  return entries.includes('*') || entries.some((entry) => entry !== '' && matches(entry, host, port))
}

function matches(entry: string, host: string, port: string): boolean {
  const [, network, bits] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? []
  if (network !== undefined && isIP(network) !== 0) return isWithin(host, network, Number(bits))
  const [, named, only = ''] = /^(\[[^\]]*\]|[^:]*):([^:]*)$/.exec(entry) ?? [undefined, entry]
  if (only !== '' && only !== port) return false
  const name = (named ?? '').replace(/^\[|\]$/g, '')
  if (isIP(name) !== 0) return isWithin(host, name, isIP(name) === 4 ? 32 : 128)
  if (name === '' || isIP(host) !== 0) return false
  const domain = name.startsWith('*.') ? name.slice(1) : name
  return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`)
}

function isWithin(host: string, network: string, bits: number): boolean {
  const [family, of] = [isIP(host), isIP(network)]
  if (family === 0 || bits > (of === 4 ? 32 : 128)) return false
  const list = new BlockList()
  list.addSubnet(network, bits, of === 4 ? 'ipv4' : 'ipv6')
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/** An IPv6 address without its brackets. */
function plainHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}
