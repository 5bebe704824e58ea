/** The shape of the script: lines for a shell, some of them watches during which other lines run. */

export type Command = {
  readonly line: string
  /** The real server refuses it. */
  readonly fails?: boolean
  /** The line is a watch that never ends by itself; it begins with `exec`, so that the interrupt reaches kubectl. */
  readonly watch?: {
    /** How many lines it prints before anything changes. */
    readonly from: number
    /** How many it has printed in the end. */
    readonly until: number
    readonly meanwhile: readonly string[]
  }
}

/** A difference that stays, at the lines of the script that `commands` matches. */
export type Allowed = {
  readonly commands: RegExp
  readonly reason: string
} & (
  | {
      /** After the lines of output that match are left out on both sides, nothing may differ. */
      readonly lines: RegExp
    }
  | {
      /** What ake says instead of whatever the real server says. */
      readonly ours: RegExp
    }
)
