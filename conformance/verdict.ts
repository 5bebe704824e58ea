/**
 * What the outcomes of all cases amount to: a difference that nobody listed fails, and so does an entry of the list that
 * no case needed, provided that all cases ran.
 */
import type { Difference } from './compare.ts'
import type { Listed } from './listed/listed.ts'
import type { StepResult } from './step.ts'

/** What one case may print; a list that is wrong throughout says so in its first lines. */
const shownMax = 12
const shownWidth = 300

export type Outcome = {
  readonly name: string
  readonly open: readonly Difference[]
  readonly listed: ReadonlySet<string>
}

export function verdict(outcomes: readonly Outcome[], listed: readonly Listed[], whole: boolean): StepResult {
  const open = outcomes.filter((one) => one.open.length > 0)
  const used = new Set(outcomes.flatMap((one) => [...one.listed]))
  const known = new Set(listed.map(({ id }) => id))
  const unused = whole ? listed.filter(({ id }) => !used.has(id)).map(({ id }) => id) : []
  const unlisted = [...used].filter((id) => !known.has(id))
  const excepted = outcomes.filter((one) => one.open.length === 0 && substantial(one.listed)).length
  const notes = [
    ...open.flatMap(describe),
    ...unused.map((id) => `conformance/listed has the difference ${id}, and nothing shows it any more`),
    ...unlisted.map((id) => `conformance/listed does not have ${id}`),
    `${outcomes.length} cases: ${outcomes.length - open.length - excepted} identical, ${excepted} with listed differences (${listed.length} entries), ${open.length} with others`,
  ]
  const failed = open.length + unused.length + unlisted.length
  return { passed: outcomes.length - open.length, failed, notes }
}

/** What the mapping takes away from every answer is not worth counting by case. */
function substantial(ids: ReadonlySet<string>): boolean {
  return [...ids].some((id) => id !== 'priority-and-fairness')
}

function describe({ name, open }: Outcome): string[] {
  const shown = open.slice(0, shownMax).map(({ field, real, ours }) => {
    return `  ${field}\n    real ${short(real)}\n    ours ${short(ours)}`
  })
  const more = open.length - shown.length
  return [`differs: ${name}`, ...shown, ...(more > 0 ? [`  … and ${more} more`] : [])]
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > shownWidth ? `${text.slice(0, shownWidth)}…` : text
}
