/** The differences that stay, each with its reason. An entry that no line of the script needs is a failure. */

import type { Allowed } from './command.ts'

export const allowed: readonly Allowed[] = [
  {
    commands: /kubectl explain/,
    lines: /^ {4}(?!.*\t<)|^\s*$/,
    reason: 'the schemas of built-in kinds are served without descriptions: their prose is most of their bytes',
  },
  {
    commands: /kubectl (create (configmap|namespace) |auth )/,
    ours: /^--- errors\n.*: the body of the request was in an unknown format - accepted media types include: /,
    reason: 'typed commands send protobuf bodies, which ake does not read yet',
  },
  {
    commands: /apply --server-side/,
    ours: /^--- errors\nerror: Server-side apply not available on the server: /,
    reason: 'server-side apply is refused: it is not there yet',
  },
  {
    commands: /kubectl edit cm cm-c /,
    ours: /configmap\/cm-c edited/,
    reason: 'the validation rules of built-in kinds (here: `immutable`) stay with the real API server',
  },
]
