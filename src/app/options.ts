/**
 * The option table, the one place that knows an option: from it come the types, the flags, the `AKE_*` variables, the
 * keys of the YAML file, the text of `--help` and the table of docs/options.md.
 */
import { resolve } from 'node:path'
import { UsageError } from '../base/fault.ts'
import { type LogLevel, logLevels } from '../base/log.ts'

export type HostPort = { readonly host: string; readonly port: number }

/** What to hold from the start: `pods`, `gateways.example.com`; in one namespace, or in all of them (''). */
export type MirrorTarget = { readonly resource: string; readonly namespace: string }

/** Which certificate goes upstream for callers whose own bears this common name. */
export type ClientCredential = { readonly name: string; readonly cert: string; readonly key: string }

/** Where the keys that seal what is stored lie: in a file, or in a credential of the unit. */
export type KeySource = { readonly file: string } | { readonly credential: string }

/** How each type is written and read; a reader answers undefined for a text that is none of its kind. */
export const kinds = {
  address: { placeholder: 'HOST:PORT', example: '127.0.0.1:10005', parse: parseAddress },
  url: { placeholder: 'URL', example: 'https://10.0.0.1:6443', parse: parseUrl },
  folder: { placeholder: 'DIR', example: './ake-data', parse: parsePath },
  file: { placeholder: 'FILE', example: './ake.yaml', parse: parsePath },
  bytes: { placeholder: 'BYTES', example: '128Mi', parse: parseBytes },
  count: { placeholder: 'COUNT', example: '50000', parse: parseCount },
  duration: { placeholder: 'DURATION', example: '500ms, 5s or 2m', parse: parseDuration },
  resource: { placeholder: 'RESOURCE[@NAMESPACE]', example: 'secrets@shop-7', parse: parseResource },
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
  level: { placeholder: 'LEVEL', example: logLevels.join(', '), parse: parseLevel },
} as const

type OptionKind = keyof typeof kinds

export type Option = {
  readonly name: string
  readonly env: string
  readonly type: OptionKind
  /** The commands that take the option, each with its default; undefined: nothing unless given. */
  readonly commands: { readonly [command: string]: string | undefined }
  /** May be given several times: a flag again, a variable with commas, a sequence in the file. */
  readonly list?: true
  /** What to do where it is missing, for one that has to be given. */
  readonly required?: string
  readonly help: string
}

const options = [
  {
    name: 'kubeconfig',
    env: 'AKE_KUBECONFIG',
    type: 'file',
    commands: { edge: undefined },
    required: 'give the kubeconfig with which this node reaches its cluster, or set AKE_KUBECONFIG',
    help: "the cluster and the edge's own credential in it; read again when it changes",
  },
  {
    name: 'server',
    env: 'AKE_SERVER',
    type: 'url',
    commands: { edge: undefined },
    list: true,
    help: "address of the API server instead of the kubeconfig's; of several the first that answers is used",
  },
  {
    name: 'listen',
    env: 'AKE_LISTEN',
    type: 'address',
    commands: { serve: '127.0.0.1:10005', edge: '127.0.0.1:10005', demo: '127.0.0.1:0' },
    list: true,
    help: 'address to serve on; port 0 picks a free one',
  },
  {
    name: 'data',
    env: 'AKE_DATA',
    type: 'folder',
    commands: { serve: './ake-data', edge: './ake-data', status: './ake-data', check: './ake-data' },
    help: 'folder with the objects, their history, the certificates and admin.kubeconfig',
  },
  {
    name: 'history',
    env: 'AKE_HISTORY',
    type: 'bytes',
    commands: { serve: '128Mi', edge: '128Mi' },
    help: 'history kept on disk for watches to resume (Ki, Mi, Gi)',
  },
  {
    name: 'history-age',
    env: 'AKE_HISTORY_AGE',
    type: 'duration',
    commands: { serve: '24h', edge: '24h' },
    help: 'how long history is kept: time in which it runs, at an edge with the API server reachable',
  },
  {
    name: 'encryption-key',
    env: 'AKE_ENCRYPTION_KEY',
    type: 'key',
    commands: { serve: undefined, edge: undefined },
    help: 'file with a key (32 bytes in base64) that seals what is stored, or credential:NAME of the systemd unit; a key in a further line opens what it sealed before',
  },
  {
    name: 'compress',
    env: 'AKE_COMPRESS',
    type: 'clients',
    commands: { serve: 'remote', edge: 'remote' },
    help: 'whose large answers are compressed where they accept gzip: remote (not those over loopback) or all',
  },
  {
    name: 'authorization',
    env: 'AKE_AUTHORIZATION',
    type: 'authorization',
    commands: { serve: 'open' },
    help: 'what callers with a certificate or a token of this server may do: open (everything) or rbac (what its roles and bindings say)',
  },
  {
    name: 'log-level',
    env: 'AKE_LOG_LEVEL',
    type: 'level',
    commands: { serve: 'info', edge: 'info', demo: 'warn' },
    help: 'least level that is logged: debug, info, warn or error',
  },
  {
    name: 'mirror',
    env: 'AKE_MIRROR',
    type: 'resource',
    commands: { edge: undefined },
    list: true,
    help: 'resource to hold from the start, before anybody asks: pods, gateways.example.com, secrets@shop-7',
  },
  {
    name: 'node',
    env: 'AKE_NODE',
    type: 'name',
    commands: { edge: undefined },
    help: 'node this edge runs on: what it needs is held from the start (its pods and what they name, services, OpenAPI)',
  },
  {
    name: 'in-cluster',
    env: 'AKE_IN_CLUSTER',
    type: 'incluster',
    commands: { edge: 'service' },
    help: 'how pods of --node find this edge by their in-cluster configuration: service (kubelet and kube-proxy are shown its CA and its first addresses that are not loopback), ca (its CA alone) or off',
  },
  {
    name: 'in-cluster-for',
    env: 'AKE_IN_CLUSTER_FOR',
    type: 'user',
    commands: { edge: undefined },
    list: true,
    help: 'who leads pods to services besides kube-proxy, and is shown this edge as the API server: a CNI agent',
  },
  {
    name: 'client-ca',
    env: 'AKE_CLIENT_CA',
    type: 'file',
    commands: { edge: undefined },
    help: 'authorities (PEM) whose client certificates name callers, as --client-ca-file of the API server; read again when it changes',
  },
  {
    name: 'client-credential',
    env: 'AKE_CLIENT_CREDENTIAL',
    type: 'credential',
    commands: { edge: undefined },
    list: true,
    help: 'certificate and key that go upstream for callers whose certificate has this common name and its organizations and authority',
  },
  {
    name: 'token-offline-age',
    env: 'AKE_TOKEN_OFFLINE_AGE',
    type: 'duration',
    commands: { edge: '720h' },
    help: 'how long a token that does not tell its end counts without the API server, since that last took it',
  },
  {
    name: 'api-audience',
    env: 'AKE_API_AUDIENCE',
    type: 'audience',
    commands: { edge: undefined },
    list: true,
    help: 'what the API server takes tokens for (its --api-audiences), where tokens are to be verified here before it was seen to take one',
  },
  {
    name: 'probe-every',
    env: 'AKE_PROBE_EVERY',
    type: 'duration',
    commands: { edge: '5s' },
    help: 'how often the API server is asked whether it is there (ms, s, m)',
  },
  {
    name: 'other-cluster-after',
    env: 'AKE_OTHER_CLUSTER_AFTER',
    type: 'duration',
    commands: { edge: '1m' },
    help: 'how long another cluster has to answer, at every address of the known one, before the copy is dropped and begun anew',
  },
  {
    name: 'first-list-max',
    env: 'AKE_FIRST_LIST_MAX',
    type: 'count',
    commands: { edge: '50000' },
    help: 'a resource of more objects than this is passed through, not mirrored',
  },
  {
    name: 'first-list-bytes',
    env: 'AKE_FIRST_LIST_BYTES',
    type: 'bytes',
    commands: { edge: '256Mi' },
    help: 'a resource of more bytes than this is passed through, not mirrored (Ki, Mi, Gi)',
  },
  {
    name: 'mirror-bytes',
    env: 'AKE_MIRROR_BYTES',
    type: 'bytes',
    commands: { edge: '192Mi' },
    help: 'objects mirrored in all: beyond it what was asked for least recently goes, then reads are passed through (Ki, Mi, Gi)',
  },
  {
    name: 'output',
    env: 'AKE_OUTPUT',
    type: 'output',
    commands: { status: 'text', check: 'text' },
    help: 'text for people, json for programs',
  },
  {
    name: 'config',
    env: 'AKE_CONFIG',
    type: 'file',
    commands: { serve: undefined, edge: undefined },
    help: 'YAML file with any of the options above by name',
  },
] as const satisfies readonly Option[]

type Options = (typeof options)[number]
type Camel<Name> = Name extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name
type Value<O> = O extends { type: infer K extends OptionKind }
  ? NonNullable<ReturnType<(typeof kinds)[K]['parse']>>
  : never
/** Whatever the command takes; the file that holds options is none of them. */
type Taking<Command extends string, O = Options> = O extends { name: 'config' }
  ? never
  : O extends { commands: { [C in Command]: string | undefined } }
    ? O
    : never
type IsGiven<Command extends string, O> = O extends { required: string } | { commands: { [C in Command]: string } }
  ? true
  : false
type Taken<Command extends string, O> = O extends { list: true }
  ? readonly Value<O>[]
  : IsGiven<Command, O> extends true
    ? Value<O>
    : Value<O> | undefined

/** What a command gets: one property per option it takes, `log-level` as `logLevel`. */
export type ConfigOf<Command extends string> = {
  readonly [O in Taking<Command> as O extends { name: infer Name } ? Camel<Name> & string : never]: Taken<Command, O>
}

export function optionsOf(command: string): readonly Option[] {
  return options.filter((option: Option) => command in option.commands)
}

/** The options of a command, one line each, for `ake help`. */
export function optionsHelp(command: string): string {
  const rows = optionsOf(command).map((option) => {
    const notes = [option.env, ...notesOf(option, command)]
    const left = `--${option.name} ${kinds[option.type].placeholder}`
    return { left, right: `${option.help} (${notes.join(', ')})` }
  })
  const width = Math.max(0, ...rows.map((row) => row.left.length))
  return rows.map((row) => `  ${row.left.padEnd(width)}  ${row.right}\n`).join('')
}

function notesOf({ required, list, commands }: Option, command: string): string[] {
  const fallback = commands[command]
  const notes = required === undefined ? [] : ['required']
  if (fallback !== undefined) notes.push(`default ${fallback}`)
  if (list === true) notes.push('may be repeated')
  return notes
}

/** The table of docs/options.md. */
export function optionsMarkdown(): string {
  const rows = options.map((option: Option) => {
    const defaults = Object.entries(option.commands).map(([name, value]) => {
      const note = value !== undefined ? `\`${value}\`` : option.required !== undefined ? 'required' : undefined
      return note === undefined ? name : `${name} (${note})`
    })
    const help = option.list === true ? `${option.help}; may be repeated` : option.help
    return `| \`--${option.name} ${kinds[option.type].placeholder}\` | \`${option.env}\` | ${defaults.join(', ')} | ${help} |`
  })
  return ['| option | variable | commands (default) | meaning |', '| --- | --- | --- | --- |', ...rows, ''].join('\n')
}

function parseAddress(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([\w.-]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  return host === undefined || port > 65535 ? undefined : { host, port }
}

/** Only what can keep a credential secret, and nothing that would hold one. */
function parseUrl(text: string): string | undefined {
  if (!/^https:\/\/[\w.:[\]%-]+(\/[\w./~%-]*)?$/.test(text) || !URL.canParse(text)) return undefined
  return text.replace(/\/+$/, '')
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

function parseOutput(text: string): 'text' | 'json' | undefined {
  return text === 'text' || text === 'json' ? text : undefined
}

function parseLevel(text: string): LogLevel | undefined {
  return logLevels.find((level) => level === text)
}
