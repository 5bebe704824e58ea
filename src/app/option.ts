/** What is said of one option: where its value comes from, what it may be, and which commands take it. */
import type { kinds } from './optionkinds.ts'

export type OptionKind = keyof typeof kinds

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
