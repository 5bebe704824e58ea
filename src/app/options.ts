/**
 * The option table: from it come the types, the flags, the `AKE_*` variables, the keys of the YAML file, the text of `--help` and the
 * table of docs/options.md. An option stands in the file of the command that takes it (`edgeoptions`, `app/hub/options`, `joinoptions`,
 * `app/hub/commandoptions`), or in `sharedoptions` if several do; nothing else knows it.
 */
import { edgeOptions } from './edgeoptions.ts'
import { hubCommandOptions } from './hub/commandoptions.ts'
import { hubOptions } from './hub/options.ts'
import { joinOptions } from './joinoptions.ts'
import type { Option, OptionKind } from './option.ts'
import { kinds } from './optionkinds.ts'
import { sharedOptions } from './sharedoptions.ts'

const options = [
  ...sharedOptions,
  ...edgeOptions,
  ...hubOptions,
  ...joinOptions,
  ...hubCommandOptions,
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
