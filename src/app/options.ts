/**
 * The option table, the one place that knows an option: from it come the types, the flags, the `AKE_*` variables, the
 * keys of the YAML file, the text of `--help` and the table in the README.
 */
import { resolve } from 'node:path'
import { type LogLevel, logLevels } from '../base/log.ts'

export type Address = { readonly host: string; readonly port: number }

/** How each type is written and read; a reader answers undefined for a text that is none of its kind. */
export const kinds = {
  address: { placeholder: 'HOST:PORT', example: '127.0.0.1:10005', parse: parseAddress },
  folder: { placeholder: 'DIR', example: './ake-data', parse: parsePath },
  file: { placeholder: 'FILE', example: './ake.yaml', parse: parsePath },
  bytes: { placeholder: 'BYTES', example: '128Mi', parse: parseBytes },
  level: { placeholder: 'LEVEL', example: logLevels.join(', '), parse: parseLevel },
} as const

type Kind = keyof typeof kinds

export type Option = {
  readonly name: string
  readonly env: string
  readonly type: Kind
  /** The commands that take the option, each with its default; undefined: nothing unless given. */
  readonly commands: { readonly [command: string]: string | undefined }
  readonly help: string
}

const options = [
  {
    name: 'listen',
    env: 'AKE_LISTEN',
    type: 'address',
    commands: { serve: '127.0.0.1:10005', demo: '127.0.0.1:0' },
    help: 'address to serve on; port 0 picks a free one',
  },
  {
    name: 'data',
    env: 'AKE_DATA',
    type: 'folder',
    commands: { serve: './ake-data' },
    help: 'folder with the objects, their history, the certificates and admin.kubeconfig',
  },
  {
    name: 'history',
    env: 'AKE_HISTORY',
    type: 'bytes',
    commands: { serve: '128Mi' },
    help: 'history kept on disk for watches to resume (Ki, Mi, Gi)',
  },
  {
    name: 'log-level',
    env: 'AKE_LOG_LEVEL',
    type: 'level',
    commands: { serve: 'info', demo: 'warn' },
    help: 'least level that is logged: debug, info, warn or error',
  },
  {
    name: 'config',
    env: 'AKE_CONFIG',
    type: 'file',
    commands: { serve: undefined },
    help: 'YAML file with any of the options above by name',
  },
] as const satisfies readonly Option[]

type Options = (typeof options)[number]
type Camel<Name> = Name extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name
type Value<O extends Options> = NonNullable<ReturnType<(typeof kinds)[O['type']]['parse']>>
type Taking<Command extends string, O = Options> = O extends { commands: { [C in Command]: string } } ? O : never

/** What a command gets: one property per option it takes, `log-level` as `logLevel`. */
export type ConfigOf<Command extends string> = {
  readonly [O in Taking<Command> & Options as Camel<O['name']> & string]: Value<O>
}
export function optionsOf(command: string): readonly Option[] {
  return options.filter((option: Option) => command in option.commands)
}

/** The options of a command, one line each, for `ake help`. */
export function optionsHelp(command: string): string {
  const rows = optionsOf(command).map((option) => {
    const fallback = option.commands[command]
    const left = `--${option.name} ${kinds[option.type].placeholder}`
    return { left, right: `${option.help} (${option.env}${fallback === undefined ? '' : `, default ${fallback}`})` }
  })
  const width = Math.max(0, ...rows.map((row) => row.left.length))
  return rows.map((row) => `  ${row.left.padEnd(width)}  ${row.right}\n`).join('')
}

/** The README's table of options. */
export function optionsMarkdown(): string {
  const rows = options.map((option: Option) => {
    const commands = Object.entries(option.commands)
    const defaults = commands
      .map(([name, value]) => `${name}${value === undefined ? '' : ` (\`${value}\`)`}`)
      .join(', ')
    return `| \`--${option.name} ${kinds[option.type].placeholder}\` | \`${option.env}\` | ${defaults} | ${option.help} |`
  })
  return ['| option | variable | commands (default) | meaning |', '| --- | --- | --- | --- |', ...rows, ''].join('\n')
}

function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([\w.-]+)):(\d{1,5})$/.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  return host === undefined || port > 65535 ? undefined : { host, port }
}

function parsePath(text: string): string | undefined {
  return text === '' ? undefined : resolve(text)
}

function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,15})(Ki|Mi|Gi)?$/.exec(text)
  if (!match) return undefined
  const bytes = Number(match[1]) * { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }[(match[2] ?? '') as '' | 'Ki']
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined
}

function parseLevel(text: string): LogLevel | undefined {
  return logLevels.find((level) => level === text)
}
