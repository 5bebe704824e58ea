/** `url`, `ip` and `cidr` of Kubernetes' CEL libraries. */

import { isIPv4 } from 'node:net'
import { isIp } from '../formats.ts'
import type { Environment, Fail } from './value.ts'

export function registerNetwork(environment: Environment, fail: Fail): void {
  registerUrls(environment, fail)
  registerAddresses(environment, fail)
  registerNetworks(environment, fail)
}

class Url {
  readonly scheme: string
  readonly host: string
  readonly path: string
  readonly query: string

  constructor(scheme: string, host: string, path: string, query: string) {
    this.scheme = scheme
    this.host = host
    this.path = path
    this.query = query
  }
}

/** An absolute URL or an absolute path, as Go's ParseRequestURI. */
function parseUrl(text: string): Url | undefined {
  const found = /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*))?(\/[^?]*|)(?:\?(.*))?$/s.exec(text)
  if (found === null || text === '' || /[\s\p{Cc}]/u.test(text) || /%(?![0-9A-Fa-f]{2})/.test(text)) {
    return undefined
  }
  const [, scheme = '', authority = '', path = '', query = ''] = found
  if (scheme === '' && path === '') return undefined
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  if (!/^(\[[0-9A-Fa-f:.%]+\]|[^[\]:]*)(:\d*)?$/.test(host)) return undefined
  return new Url(scheme.toLowerCase(), host, path, query)
}

function registerUrls(environment: Environment, fail: Fail): void {
  const parsed = (text: string): Url => {
    const url = parseUrl(text)
    if (url === undefined) {
      throw fail(`URL parse error during conversion from string: parse "${text}": invalid URI for request`)
    }
    return url
  }
  environment
    .registerType('kubernetes.URL', Url)
    .registerFunction('url(string): kubernetes.URL', parsed)
    .registerFunction('isURL(string): bool', (text: string) => parseUrl(text) !== undefined)
    .registerFunction('kubernetes.URL.getScheme(): string', (url: Url) => url.scheme)
    .registerFunction('kubernetes.URL.getHost(): string', (url: Url) => url.host)
    .registerFunction('kubernetes.URL.getHostname(): string', (url: Url) =>
      url.host.replace(/:\d*$/, '').replace(/^\[|\]$/g, ''),
    )
    .registerFunction('kubernetes.URL.getPort(): string', (url: Url) => /:(\d+)$/.exec(url.host)?.[1] ?? '')
    .registerFunction('kubernetes.URL.getEscapedPath(): string', (url: Url) => encodeURI(decodeURI(url.path)))
    .registerFunction('kubernetes.URL.getQuery(): map<string, list<string>>', (url: Url) => {
      const query = new Map<string, string[]>()
      for (const [key, value] of new URLSearchParams(url.query)) query.set(key, [...(query.get(key) ?? []), value])
      return query
    })
}

class Ip {
  readonly text: string
  readonly bits: bigint
  readonly family: 4 | 6

  constructor(text: string, bits: bigint, family: 4 | 6) {
    this.text = text
    this.bits = bits
    this.family = family
  }
}

class IpNamespace {}

function parseIp(text: string): Ip | undefined {
  if (!isIp(text) || /^::ffff:\d+\./i.test(text)) return undefined
  if (isIPv4(text)) {
    const bits = text.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
    return new Ip(text, bits, 4)
  }
  const canonical = new URL(`http://[${text}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups = tail === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill('0'), ...right]
  return new Ip(canonical, BigInt(`0x${groups.map((group) => group.padStart(4, '0')).join('')}`), 6)
}

function registerAddresses(environment: Environment, fail: Fail): void {
  const within = (ip: Ip, v4: string, v6: string) => contains(parseCidr(ip.family === 4 ? v4 : v6), ip)
  const loopback = (ip: Ip) => within(ip, '127.0.0.0/8', '::1/128')
  const linkMulticast = (ip: Ip) => within(ip, '224.0.0.0/24', 'ff02::/16')
  const multicast = (ip: Ip) => within(ip, '224.0.0.0/4', 'ff00::/8')
  const linkUnicast = (ip: Ip) => within(ip, '169.254.0.0/16', 'fe80::/10')
  const broadcast = (ip: Ip) => ip.text === '255.255.255.255'
  environment
    .registerType('net.IP', Ip)
    .registerType('IPNamespace', IpNamespace)
    .registerConstant('ip', 'IPNamespace', new IpNamespace())
    .registerFunction('ip(string): net.IP', (text: string) => {
      const ip = parseIp(text)
      if (ip === undefined) {
        throw fail(`IP Address "${text}" parse error during conversion from string: unable to parse IP`)
      }
      return ip
    })
    .registerFunction('isIP(string): bool', (text: string) => parseIp(text) !== undefined)
    .registerFunction('IPNamespace.isCanonical(string): bool', (_: unknown, text: string) => {
      const ip = parseIp(text)
      if (ip === undefined) throw fail(`IP Address "${text}" parse error during conversion from string`)
      return ip.text === text
    })
    .registerFunction('net.IP.family(): int', (ip: Ip) => BigInt(ip.family))
    .registerFunction('net.IP.isUnspecified(): bool', (ip: Ip) => ip.bits === 0n)
    .registerFunction('net.IP.isLoopback(): bool', loopback)
    .registerFunction('net.IP.isLinkLocalMulticast(): bool', linkMulticast)
    .registerFunction('net.IP.isLinkLocalUnicast(): bool', linkUnicast)
    .registerFunction(
      'net.IP.isGlobalUnicast(): bool',
      (ip: Ip) => ip.bits !== 0n && !loopback(ip) && !multicast(ip) && !linkUnicast(ip) && !broadcast(ip),
    )
    .registerFunction('string(net.IP): string', (ip: Ip) => ip.text)
    .registerOperator('net.IP == net.IP', (a: Ip, b: Ip) => a.text === b.text)
}

class Cidr {
  readonly ip: Ip
  readonly length: number

  constructor(ip: Ip, length: number) {
    this.ip = ip
    this.length = length
  }

  /** Addresses of the network share everything above this many bits. */
  get host(): bigint {
    return BigInt((this.ip.family === 4 ? 32 : 128) - this.length)
  }
}

function parseCidr(text: string): Cidr | undefined {
  const [address = '', bits = '', more] = text.split('/')
  const ip = parseIp(address)
  if (ip === undefined || more !== undefined || !/^(0|[1-9]\d{0,2})$/.test(bits)) return undefined
  const length = Number(bits)
  return length <= (ip.family === 4 ? 32 : 128) ? new Cidr(ip, length) : undefined
}

function contains(network: Cidr | undefined, ip: Ip | undefined): boolean {
  if (network === undefined || ip === undefined || network.ip.family !== ip.family) return false
  return network.ip.bits >> network.host === ip.bits >> network.host
}

function registerNetworks(environment: Environment, fail: Fail): void {
  const parsed = (text: string): Cidr => {
    const cidr = parseCidr(text)
    if (cidr === undefined) throw fail(`network address parse error during conversion from string: "${text}"`)
    return cidr
  }
  const address = (text: string): Ip => {
    const ip = parseIp(text)
    if (ip === undefined) throw fail(`IP Address "${text}" parse error during conversion from string`)
    return ip
  }
  const covers = (outer: Cidr, inner: Cidr) => outer.length <= inner.length && contains(outer, inner.ip)
  environment
    .registerType('net.CIDR', Cidr)
    .registerFunction('cidr(string): net.CIDR', parsed)
    .registerFunction('isCIDR(string): bool', (text: string) => parseCidr(text) !== undefined)
    .registerFunction('net.CIDR.containsIP(string): bool', (cidr: Cidr, text: string) => contains(cidr, address(text)))
    .registerFunction('net.CIDR.containsIP(net.IP): bool', contains)
    .registerFunction('net.CIDR.containsCIDR(string): bool', (cidr: Cidr, text: string) => covers(cidr, parsed(text)))
    .registerFunction('net.CIDR.containsCIDR(net.CIDR): bool', covers)
    .registerFunction('net.CIDR.ip(): net.IP', (cidr: Cidr) => cidr.ip)
    .registerFunction('net.CIDR.prefixLength(): int', (cidr: Cidr) => BigInt(cidr.length))
    .registerFunction('net.CIDR.masked(): net.CIDR', (cidr: Cidr) => new Cidr(masked(cidr), cidr.length))
    .registerFunction('string(net.CIDR): string', (cidr: Cidr) => `${cidr.ip.text}/${cidr.length}`)
}

function masked(cidr: Cidr): Ip {
  const bits = (cidr.ip.bits >> cidr.host) << cidr.host
  if (cidr.ip.family === 4) {
    const parts = [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 255n)
    return new Ip(parts.join('.'), bits, 4)
  }
  const hex = bits.toString(16).padStart(32, '0')
  const text = new URL(`http://[${hex.match(/.{4}/g)?.join(':')}]`).hostname.slice(1, -1)
  return new Ip(text, bits, 6)
}
