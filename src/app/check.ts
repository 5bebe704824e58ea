/** `ake check`: asks the edge that runs on a folder whether its node would come back from a reboot without the API server. */
import { Unavailable } from '../base/fault.ts'
import type { CheckConfig } from './config.ts'
import { statusIn } from './status.ts'
import type { StatusDocument } from './statusdocument.ts'
import type { RebootCheck, Survival } from './survival.ts'
import { aligned, continued, printable, wrapped } from './terminal.ts'

const codes = { yes: 0, no: 1, unknown: 2 } as const
const verdicts = {
  yes: 'This node would come back from a reboot without its API server.',
  no: 'This node would NOT come back from a reboot without its API server.',
  unknown: 'Whether this node would come back from a reboot without its API server cannot be told.',
} as const

/** What to print, and the exit code; without one the text is why there is no answer. */
export async function check({ data, output }: CheckConfig): Promise<{ text: string; code?: number }> {
  let document: StatusDocument
  try {
    document = await statusIn(data)
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    return { text: `ake: ${error.message}\n` }
  }
  const { survival } = document
  if (survival === undefined) return { text: `ake: the ake on ${data} is older than this command: restart it\n` }
  const text = output === 'json' ? `${JSON.stringify(survival, null, 2)}\n` : checkText(survival)
  return { text, code: codes[survival.survives] }
}

/** For people: the verdict, what was found, and what to do. */
export function checkText({ survives, checks }: Survival): string {
  const rows = checks.map(({ name, state, what }) => ({
    cells: [name, state === 'failed' ? 'FAILED' : state, what],
  }))
  const linesOf = ({ todo = '' }: RebootCheck) => todo.split('\n').filter(Boolean)
  const askers = (line: string) => checks.filter((one) => linesOf(one).includes(line)).map(({ name }) => name)
  const todos = checks.flatMap((one) => [
    // What several checks ask for is to be done once: the first says it for all.
    ...linesOf(one)
      .filter((line) => askers(line)[0] === one.name)
      .map((line) => wrapped(`${askers(line).join(', ')}: ${printable(line)}`, 2)),
    ...(one.commands ?? []).map((command) => continued(printable(command))),
  ])
  const parts = [`${verdicts[survives]}\n`, aligned(['CHECK', 'STATE', 'FOUND'], rows)]
  if (todos.length > 0) parts.push(`To do:\n${todos.join('')}`)
  return parts.join('\n')
}
