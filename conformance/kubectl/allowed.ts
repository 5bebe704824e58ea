/** The differences that stay, each with its reason. An entry that no line of the script needs is a failure. */

import type { Allowed } from './command.ts'

export const allowed: readonly Allowed[] = [
  {
    commands: /kubectl explain/,
    lines: /^ {4}(?!.*\t<)|^\s*$/,
    reason: 'the schemas of built-in kinds are served without descriptions: their prose is most of their bytes',
  },
]
