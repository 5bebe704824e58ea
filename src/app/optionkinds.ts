/** How each type of option is written and read. */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { resolve } from 'node:path'
import { UsageError } from '../base/fault.ts'
import { type LogLevel, logLevels } from '../base/log.ts'
import { parseTime } from '../kube/table/duration.ts'

export type HostPort = { readonly host: string; readonly port: number }

/** What to hold from the start: `pods`, `gateways.example.com`; in one namespace, or in all of them (''). */
export type MirrorTarget = { readonly resource: string; readonly namespace: string }

/** A collection, or one object of it; without a group one of Kubernetes' own. */
export type PolicedObject = {
  readonly resource: string
  readonly group: string | undefined
  readonly namespace: string
  readonly name: string
}

/** Which certificate goes upstream for callers whose own bears this common name. */
export type ClientCredential = { readonly name: string; readonly cert: string; readonly key: string }

/** Where the keys that seal what is stored lie: in a file, or in a credential of the unit. */
export type KeySource = { readonly file: string } | { readonly credential: string }

/** Where a hub keeps what several of them share: in a folder, or in a Secret of the cluster. */
export type StatePlace = { readonly folder: string } | { readonly namespace: string; readonly name: string }

/** Where a token is: on the command line, where others see it, in a file, or on standard input. */
export type TokenSource = { readonly token: string } | { readonly file: string } | { readonly stdin: true }

/** A reader answers undefined for a text that is none of its kind. */
export const kinds = {
  address: { placeholder: 'HOST:PORT', example: '127.0.0.1:10005', parse: parseAddress },
  url: { placeholder: 'URL', example: 'https://10.0.0.1:6443', parse: parseUrl },
  huburl: { placeholder: 'URL', example: 'wss://hub.example.com:10002', parse: parseHubUrl },
  website: { placeholder: 'URL', example: 'http://127.0.0.1:10003', parse: parseWebsite },
  host: { placeholder: 'HOST', example: 'hub.example.com', parse: parseHost },
  folder: { placeholder: 'DIR', example: './ake-data', parse: parsePath },
  file: { placeholder: 'FILE', example: './ake.yaml', parse: parsePath },
  bytes: { placeholder: 'BYTES', example: '128Mi', parse: parseBytes },
  count: { placeholder: 'COUNT', example: '50000', parse: parseCount },
  duration: { placeholder: 'DURATION', example: '500ms, 5s or 2m', parse: parseDuration },
  time: { placeholder: 'TIME', example: '2026-06-01T12:00:00Z', parse: parseTime },
  resource: { placeholder: 'RESOURCE[@NAMESPACE]', example: 'secrets@shop-7', parse: parseResource },
  object: {
    placeholder: 'RESOURCE[.GROUP][@NAMESPACE][/NAME]',
    example: 'configmaps@shop-7, deployments.apps or nodes/edge-1',
    parse: parseObject,
  },
  name: { placeholder: 'NAME', example: 'edge-1', parse: parseName },
  credential: {
    placeholder: 'NAME=CERT,KEY',
    example: 'system:node:edge-1=./node.crt,./node.key',
    parse: parseCredential,
  },
  key: { placeholder: 'FILE', example: '/etc/ake/key or credential:ake-key', parse: parseKeySource },
  clients: { placeholder: 'CLIENTS', example: 'remote or all', parse: parseClients },
  incluster: { placeholder: 'WAY', example: 'service, ca or off', parse: parseInCluster },
  user: { placeholder: 'USER', example: 'system:serviceaccount:kube-system:cilium', parse: parseUser },
  audience: { placeholder: 'AUDIENCE', example: 'https://kubernetes.default.svc', parse: parseUser },
  output: { placeholder: 'FORM', example: 'text or json', parse: parseOutput },
  authorization: { placeholder: 'MODE', example: 'open or rbac', parse: parseAuthorization },
  state: { placeholder: 'DIR|secret:NAMESPACE/NAME', example: './hub or secret:ake/hub', parse: parseState },
  token: { placeholder: 'TOKEN|@FILE|-', example: '@./token, or - for standard input', parse: parseToken },
  hash: { placeholder: 'HASH', example: 'sha256:6b2f… with 64 digits', parse: parseHash },
  service: { placeholder: 'NAMESPACE/NAME', example: 'ake-system/ake-hub', parse: parseService },
  /** Given by its name alone. */
  switch: { placeholder: '', example: 'true or false', parse: parseSwitch },
  level: { placeholder: 'LEVEL', example: logLevels.join(', '), parse: parseLevel },
} as const

function parseAddress(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([\w.-]*)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? (match?.[2] === '' ? everywhere() : match?.[2])
  const port = Number(match?.[3])
  return host === undefined || port > 65535 ? undefined : { host, port }
}

/** Where there is no IPv6 its wildcard cannot be listened on. */
function everywhere(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.some(({ family }) => family === 'IPv6') ? '::' : '0.0.0.0'
}

/** As a certificate bears it. */
function parseHost(text: string): string | undefined {
  return isIP(text) > 0 || parseName(text.replace(/^\*\./, '')) !== undefined ? text : undefined
}

/** No credential is sent there. */
function parseWebsite(text: string): string | undefined {
  return /^http:\/\/[\w.:[\]-]+\/?$/.test(text) && URL.canParse(text) ? new URL(text).origin : undefined
}

/** Only what can keep a credential secret, and nothing that would hold one. */
function parseUrl(text: string): string | undefined {
  if (!/^https:\/\/[\w.:[\]%-]+(\/[\w./~%-]*)?$/.test(text) || !URL.canParse(text)) return undefined
  return text.replace(/\/+$/, '')
}

/** Of a hub nothing but the host and the port is told. */
function parseHubUrl(text: string): string | undefined {
  return /^wss:\/\/[\w.:[\]%-]+\/?$/.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : undefined
}

function parsePath(text: string): string | undefined {
  return text === '' ? undefined : resolve(text)
}

function parseKeySource(text: string): KeySource | undefined {
  // Before it is told anywhere.
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) throw new UsageError('give --encryption-key a file with the key, not the key')
  const credential = /^credential:([\w.-]+)$/.exec(text)?.[1]
  if (credential !== undefined) return { credential }
  return text === '' || text.startsWith('credential:') ? undefined : { file: resolve(text) }
}

function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,15})(Ki|Mi|Gi)?$/.exec(text)
  if (!match) return undefined
  const bytes = Number(match[1]) * { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }[(match[2] ?? '') as '' | 'Ki']
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined
}

function parseCount(text: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined
}

function parseDuration(text: string): number | undefined {
  const match = /^([1-9]\d{0,8})(ms|s|m|h)$/.exec(text)
  return match ? Number(match[1]) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match[2] as 's'] : undefined
}

function parseResource(text: string): MirrorTarget | undefined {
  const match = /^([a-z][a-z0-9-]*(?:\.[a-z0-9][a-z0-9.-]*)?)(?:@([a-z0-9][a-z0-9-]*))?$/.exec(text)
  return match ? { resource: match[1] as string, namespace: match[2] ?? '' } : undefined
}

/** One of Kubernetes' own needs no group. */
function parseObject(text: string): PolicedObject | undefined {
  const match = /^([a-z][a-z0-9-]*)(?:\.([a-z0-9][a-z0-9.-]*))?(?:@([a-z0-9][a-z0-9-]*))?(?:\/([^/\s]+))?$/.exec(text)
  if (match === null) return undefined
  const [, resource = '', group, namespace = '', name = ''] = match
  return { resource, group, namespace, name }
}

/** As Kubernetes names nodes. */
function parseName(text: string): string | undefined {
  return text.length <= 253 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text) ? text : undefined
}

function parseCredential(text: string): ClientCredential | undefined {
  const match = /^([^=,]+)=([^,]+),([^,]+)$/.exec(text)
  return match
    ? { name: match[1] as string, cert: resolve(match[2] as string), key: resolve(match[3] as string) }
    : undefined
}

function parseClients(text: string): 'remote' | 'all' | undefined {
  return text === 'remote' || text === 'all' ? text : undefined
}

function parseInCluster(text: string): 'service' | 'ca' | 'off' | undefined {
  return text === 'service' || text === 'ca' || text === 'off' ? text : undefined
}

/** As the API server names a caller, or itself to those who hold tokens; commas separate several. */
function parseUser(text: string): string | undefined {
  return /^[^\s,]{1,253}$/.test(text) ? text : undefined
}

function parseAuthorization(text: string): 'open' | 'rbac' | undefined {
  return text === 'open' || text === 'rbac' ? text : undefined
}

function parseState(text: string): StatePlace | undefined {
  const [, namespace, name] = /^secret:([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\/([^/]+)$/.exec(text) ?? []
  if (namespace !== undefined && name !== undefined)
    return parseName(name) === undefined ? undefined : { namespace, name }
  return text === '' || text.startsWith('secret:') ? undefined : { folder: resolve(text) }
}

/** What is wrong is told without a word of it. */
function parseToken(text: string): TokenSource {
  if (text === '-') return { stdin: true }
  if (text.startsWith('@') && text.length > 1) return { file: resolve(text.slice(1)) }
  if (isBootstrapToken(text)) return { token: text }
  throw new UsageError(
    'the token is not written as one of "ake hub token" (six letters or digits, a dot, sixteen more): give it in full, or @FILE, or - for standard input',
  )
}

export function isBootstrapToken(text: string): boolean {
  return /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(text)
}

function parseHash(text: string): string | undefined {
  return /^sha256:[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : undefined
}

function parseService(text: string): { readonly namespace: string; readonly name: string } | undefined {
  const [namespace = '', name = '', ...more] = text.split('/')
  const isName = (one: string) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(one)
  return more.length === 0 && isName(namespace) && isName(name) ? { namespace, name } : undefined
}

function parseSwitch(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}

function parseOutput(text: string): 'text' | 'json' | undefined {
  return text === 'text' || text === 'json' ? text : undefined
}

function parseLevel(text: string): LogLevel | undefined {
  return logLevels.find((level) => level === text)
}
