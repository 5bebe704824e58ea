/**
 * What a command is told to do: flags, `AKE_*` variables, the YAML file and defaults, in that order of precedence, read
 * through the option table into one typed value. Whatever is wrong is said in one sentence with what to do about it.
 */
import { readFile } from 'node:fs/promises'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Option } from './option.ts'
import { kinds } from './optionkinds.ts'
import { type ConfigOf, optionsOf } from './options.ts'

export type ServeConfig = ConfigOf<'serve'>
export type EdgeConfig = ConfigOf<'edge'>
export type DemoConfig = ConfigOf<'demo'>
export type StatusConfig = ConfigOf<'status'>
export type CheckConfig = ConfigOf<'check'>
export type HubConfig = ConfigOf<'hub'>
export type HubRestoredConfig = ConfigOf<'hub restored'>
export type HubIssueConfig = ConfigOf<'hub issue'>
export type HubTokenConfig = ConfigOf<'hub token'>
export type JoinConfig = ConfigOf<'join'>
export type HubRevokeConfig = ConfigOf<'hub revoke'>
export type HubEdgesConfig = ConfigOf<'hub edges'>
export type HubAuthorityConfig = ConfigOf<'hub authority'>
export type HubPolicyTestConfig = ConfigOf<'hub policy test'>
export type Configs = {
  'hub token': HubTokenConfig
  join: JoinConfig
  serve: ServeConfig
  edge: EdgeConfig
  demo: DemoConfig
  status: StatusConfig
  check: CheckConfig
  hub: HubConfig
  'hub issue': HubIssueConfig
  'hub restored': HubRestoredConfig
  'hub revoke': HubRevokeConfig
  'hub authority': HubAuthorityConfig
  'hub edges': HubEdgesConfig
  'hub policy test': HubPolicyTestConfig
}

export type Sources = { readonly args: readonly string[]; readonly env: Readonly<Record<string, string | undefined>> }

/** Where a value came from, in the words of an error message. */
type Given = { readonly text: string; readonly where: string }

export async function readConfig<C extends keyof Configs>(command: C, { args, env }: Sources): Promise<Configs[C]> {
  const taken = optionsOf(command)
  const flags = parseFlags(command, args)
  const fromEnv = (option: Option): Given[] | undefined => {
    const text = env[option.env]
    if (text === undefined || text === '') return undefined
    const texts = option.list === true ? separated(option, text) : [text]
    return texts.map((one) => ({ text: one, where: option.env }))
  }
  const fileOption = taken.find((option) => option.name === 'config')
  const path = fileOption && (flags.get(fileOption.name) ?? fromEnv(fileOption))?.at(-1)
  const file = path ? await readConfigFile(command, path.text) : new Map<string, Given[]>()

  const config: Record<string, unknown> = {}
  for (const option of taken) {
    if (option === fileOption) continue
    const given = flags.get(option.name) ?? fromEnv(option) ?? file.get(option.name) ?? fallback(command, option)
    const values = given.map((one) => parseValue(option, one))
    // Of one that holds a single value the last counts.
    config[camel(option.name)] = option.list === true ? values : values.at(-1)
  }
  return config as Configs[C]
}

/** At commas; inside of `NAME=CERT,KEY` there is one too, so there only where the next name begins. */
function separated({ type }: Option, text: string): string[] {
  return text.split(type === 'credential' ? /,(?=[^,=]+=)/ : ',').map((one) => one.trim())
}

function fallback(command: string, option: Option): Given[] {
  const text = option.commands[command]
  if (text !== undefined) return [{ text, where: 'default' }]
  const missing = option.required?.[command]
  if (missing !== undefined) throw new UsageError(`"ake ${command}" needs --${option.name}: ${missing}`)
  return []
}

function parseFlags(command: string, args: readonly string[]): Map<string, Given[]> {
  const found = new Map<string, Given[]>()
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (!arg.startsWith('--') || arg === '--') {
      throw new UsageError(`"${arg}" is not an option of "ake ${command}": see "ake help ${command}"`)
    }
    const equals = arg.indexOf('=')
    const name = arg.slice(2, equals < 0 ? undefined : equals)
    const option = known(command, name, (close) => `unknown option --${name} of "ake ${command}"${close}`)
    const next = option.type === 'switch' ? 'true' : args[at + 1]
    if (equals < 0 && (next === undefined || next.startsWith('--'))) {
      throw new UsageError(`--${name} needs a value: write --${name} ${kinds[option.type].placeholder}`)
    }
    const given = { text: equals < 0 ? (next ?? '') : arg.slice(equals + 1), where: `--${name}` }
    found.set(name, [...(found.get(name) ?? []), given])
    if (equals < 0 && option.type !== 'switch') at++
  }
  return found
}

async function readConfigFile(command: string, path: string): Promise<Map<string, Given[]>> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`cannot read the configuration file ${path} (${reasonOf(error)}): check --config`)
  }
  const { load } = await import('js-yaml')
  let content: unknown
  try {
    // js-yaml refuses an empty document; a file with nothing but comments sets nothing.
    content = /^\s*(#.*\s*)*$/.test(text) ? {} : load(text)
  } catch (error) {
    const reason = (error as Error).message.split('\n', 1)[0]
    throw new UsageError(`the configuration file ${path} is not YAML (${reason}): correct it`)
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw new UsageError(
      `the configuration file ${path} must hold "option: value" lines, such as "listen: 127.0.0.1:10005"`,
    )
  }
  const found = new Map<string, Given[]>()
  for (const [name, value] of Object.entries(content)) {
    const option = known(command, name, (close) => `unknown option "${name}" in ${path}${close}`)
    const where = `${name} in ${path}`
    if (name === 'config')
      throw new UsageError(`${where} has no effect: a configuration file cannot name another, remove it`)
    const values: unknown[] = option.list === true && Array.isArray(value) ? value : [value]
    found.set(
      name,
      values.map((one) => {
        if (typeof one === 'string' || typeof one === plainType(option)) return { text: String(one), where }
        throw wrongValue(option, { text: JSON.stringify(one), where })
      }),
    )
  }
  return found
}

/** As YAML reads a value that is written without quotes. */
function plainType({ type }: Option): 'number' | 'boolean' | 'string' {
  if (type === 'switch') return 'boolean'
  return type === 'bytes' || type === 'count' ? 'number' : 'string'
}

function parseValue(option: Option, given: Given): unknown {
  const value = kinds[option.type].parse(given.text)
  if (value === undefined) throw wrongValue(option, given)
  return value
}

function wrongValue(option: Option, { text, where }: Given): UsageError {
  const { placeholder, example } = kinds[option.type]
  return new UsageError(`${where} cannot be ${quote(text)}: give ${placeholder}, for example ${example}`)
}

function known(command: string, name: string, sentence: (close: string) => string): Option {
  const taken = optionsOf(command)
  const option = taken.find((candidate) => candidate.name === name)
  if (option !== undefined) return option
  const close = taken.find((candidate) => name.length > 1 && isNear(candidate.name, name))
  throw new UsageError(sentence(close ? `: did you mean "${close.name}"?` : `: see "ake help ${command}"`))
}

/** One letter wrong, missing, added or swapped with its neighbour, or one name beginning with the other. */
export function isNear(a: string, b: string): boolean {
  if (a.startsWith(b) || b.startsWith(a)) return true
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  let [endA, endB] = [a.length, b.length]
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1]
  const [restA, restB] = [a.slice(start, endA), b.slice(start, endB)]
  return (restA.length <= 1 && restB.length <= 1) || (restA.length === 2 && restA === `${restB[1]}${restB[0]}`)
}

function camel(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

function quote(text: string): string {
  return text.startsWith('"') ? text : JSON.stringify(text)
}
