/**
 * The option table, the one place that knows an option: from it come the types, the flags, the `AKE_*` variables, the
 * keys of the YAML file, the text of `--help` and the table of docs/options.md.
 */
import { kinds } from './optionkinds.ts'

type OptionKind = keyof typeof kinds

export type Option = {
  readonly name: string
  readonly env: string
  readonly type: OptionKind
  /** The commands that take the option, each with its default; undefined: nothing unless given. */
  readonly commands: { readonly [command: string]: string | undefined }
  /** May be given several times: a flag again, a variable with commas, a sequence in the file. */
  readonly list?: true
  /** By command: what to do where it is missing, for one that has to be given. */
  readonly required?: { readonly [command: string]: string }
  readonly help: string
}

const stateMissing = "give the hub's state: a folder, or secret:NAMESPACE/NAME"

const options = [
  {
    name: 'kubeconfig',
    env: 'AKE_KUBECONFIG',
    type: 'file',
    commands: { edge: undefined, hub: undefined, 'hub issue': undefined, 'hub restored': undefined },
    help: "the cluster and the edge's or hub's own credential in it; an edge needs it unless --hub is given; read again when it changes. Without it a hub is what its pod is: the files of its service account",
  },
  {
    name: 'server',
    env: 'AKE_SERVER',
    type: 'url',
    commands: { edge: undefined, hub: undefined },
    list: true,
    help: "address of the API server instead of the kubeconfig's; of several the first that answers is used",
  },
  {
    name: 'hub',
    env: 'AKE_HUB',
    type: 'huburl',
    commands: { edge: undefined },
    list: true,
    help: 'address of the hub through which everything goes, instead of --kubeconfig; of several one is used, the next when that is lost',
  },
  {
    name: 'credential',
    env: 'AKE_CREDENTIAL',
    type: 'file',
    commands: { edge: undefined },
    help: 'what "ake hub issue" wrote for this node: its certificate and key for --hub, and the hub\'s authority; read again when it changes',
  },
  {
    name: 'listen',
    env: 'AKE_LISTEN',
    type: 'address',
    commands: { serve: '127.0.0.1:10005', edge: '127.0.0.1:10005', hub: ':10002', demo: '127.0.0.1:0' },
    list: true,
    help: 'address to serve on, without a host all of them; port 0 picks a free one',
  },
  {
    name: 'host',
    env: 'AKE_HOST',
    type: 'host',
    commands: { hub: undefined },
    list: true,
    help: 'name or address by which edges reach this hub, besides those it listens on: its certificate bears it',
  },
  {
    name: 'health-listen',
    env: 'AKE_HEALTH_LISTEN',
    type: 'address',
    commands: { hub: '127.0.0.1:10003' },
    help: 'address for /livez, /readyz, /metrics and the status, over plain HTTP and open to whoever reaches it',
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
    commands: { serve: '128Mi', edge: '128Mi', hub: '64Mi' },
    help: 'history kept on disk for watches to resume, at a hub in memory for edges that come back (Ki, Mi, Gi)',
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
    commands: { serve: 'info', edge: 'info', hub: 'info', demo: 'info' },
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
    commands: { edge: '5s', hub: '5s' },
    help: 'how often the API server is asked whether it is there (ms, s, m)',
  },
  {
    name: 'other-cluster-after',
    env: 'AKE_OTHER_CLUSTER_AFTER',
    type: 'duration',
    commands: { edge: '1m', hub: '1m' },
    help: 'how long another cluster has to answer, at every address of the known one, before the copy is dropped and begun anew; a hub ends then',
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
    commands: { edge: '192Mi', hub: '2Gi' },
    help: 'objects mirrored in all: beyond it what was asked for least recently goes, then reads are passed through; at a hub edges are refused what does not fit (Ki, Mi, Gi)',
  },
  {
    name: 'trust-edges',
    env: 'AKE_TRUST_EDGES',
    type: 'switch',
    commands: { hub: 'false' },
    help: 'lets every edge have whatever the hub may read, and its administrator act with the credential of the hub: who takes one box has the cluster',
  },
  {
    name: 'edge-requests-per-second',
    env: 'AKE_EDGE_REQUESTS_PER_SECOND',
    type: 'count',
    commands: { hub: '100' },
    help: 'how often the requests of one edge are passed on to the API server, with a burst of five times as many',
  },
  {
    name: 'caller-requests-per-second',
    env: 'AKE_CALLER_REQUESTS_PER_SECOND',
    type: 'count',
    commands: { hub: '50' },
    help: 'the same of one caller at all edges together, with a burst of four times as many',
  },
  {
    name: 'drain',
    env: 'AKE_DRAIN',
    type: 'duration',
    commands: { hub: '30s' },
    help: 'how long edges have to move to another hub once this one is told to end',
  },
  {
    name: 'state',
    env: 'AKE_STATE',
    type: 'state',
    commands: { hub: undefined, 'hub issue': undefined, 'hub restored': undefined },
    required: { hub: stateMissing, 'hub issue': stateMissing, 'hub restored': stateMissing },
    help: 'what makes hubs one: authority, serving key, keys of tickets and digests; a folder for one hub, a Secret for several. Made where there is none',
  },
  {
    name: 'out',
    env: 'AKE_OUT',
    type: 'file',
    commands: { 'hub issue': undefined },
    required: { 'hub issue': 'give the file to write the credential to' },
    help: "file for the edge's credential: its certificate and key, and the hub's authority (PEM, 0600)",
  },
  {
    name: 'force',
    env: 'AKE_FORCE',
    type: 'switch',
    commands: { 'hub issue': 'false' },
    help: 'replaces the file of --out if there is one',
  },
  {
    name: 'health',
    env: 'AKE_HEALTH',
    type: 'website',
    commands: { status: undefined },
    help: 'asks the hub whose --health-listen is there, instead of the edge on this machine',
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
    commands: { serve: undefined, edge: undefined, hub: undefined },
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
type IsGiven<Command extends string, O> = O extends
  | { required: { [C in Command]: string } }
  | { commands: { [C in Command]: string } }
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
    const left = flagOf(option)
    return { left, right: `${option.help} (${notes.join(', ')})` }
  })
  const width = Math.max(0, ...rows.map((row) => row.left.length))
  return rows.map((row) => `  ${row.left.padEnd(width)}  ${row.right}\n`).join('')
}

/** As it is written, with what stands for its value. */
function flagOf({ name, type }: Option): string {
  return `--${name} ${kinds[type].placeholder}`.trimEnd()
}

function notesOf({ required, list, type, commands }: Option, command: string): string[] {
  const fallback = type === 'switch' ? undefined : commands[command]
  const notes = required?.[command] === undefined ? [] : ['required']
  if (fallback !== undefined) notes.push(`default ${fallback}`)
  if (list === true) notes.push('may be repeated')
  return notes
}

/** The table of docs/options.md. */
export function optionsMarkdown(): string {
  const rows = options.map((option: Option) => {
    const defaults = Object.entries(option.commands).map(([name, value]) => {
      if (option.type === 'switch') return name
      const note = value !== undefined ? `\`${value}\`` : option.required?.[name] !== undefined ? 'required' : undefined
      return note === undefined ? name : `${name} (${note})`
    })
    const help = option.list === true ? `${option.help}; may be repeated` : option.help
    return `| \`${flagOf(option).replaceAll('|', '\\|')}\` | \`${option.env}\` | ${defaults.join(', ')} | ${help} |`
  })
  return ['| option | variable | commands (default) | meaning |', '| --- | --- | --- | --- |', ...rows, ''].join('\n')
}
