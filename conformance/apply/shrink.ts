/** A failing sequence made small: steps, parameters and fields are left out as long as the same difference remains. */
import type { Difference } from '../compare.ts'
import type { Played } from './lockstep.ts'
import type { Fields, Scenario, Step } from './scenario.ts'

/** Of one attempt; what is left out first takes most away. */
const candidatesMax = 150
/** Each takes something away; a sequence of nine steps has been through with 40. */
const attemptsMax = 60

/** `play` does them all on both servers, each on a new object. */
export async function shrink(
  failed: Played,
  play: (scenarios: readonly Scenario[]) => Promise<Played[]>,
): Promise<Played> {
  const signature = signatureOf(failed)
  let least = failed
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const played = await play(smaller(done(least)).slice(0, candidatesMax))
    const next = played.find((one) => signatureOf(one) === signature)
    if (next === undefined) break
    least = next
  }
  return least
}

/** Up to the step that differs: nothing after it was done. */
export function done({ scenario, steps }: Played): Scenario {
  return { ...scenario, steps: scenario.steps.slice(0, steps.length) }
}

/** What differs, without what is of one object alone: two sequences with the same signature have one cause. */
export function signatureOf({ steps }: Played): string {
  const open = steps.at(-1)?.open ?? []
  const status = open.find(({ field }) => field === 'status')
  if (status !== undefined) return `status ${status.real} ${status.ours}`
  return [...new Set(open.map(plainField))].toSorted().slice(0, 4).join(' ')
}

/** Of a message only how it begins: smaller sequences must not slide into another refusal. */
function plainField({ field, real }: Difference): string {
  if (field === 'body.message') return `${field} ${String(real).split(/["(]/)[0]}`
  const plain = field.replaceAll(/\[\d+\]/g, '[]').replaceAll(/(fieldsV1)\..*/g, '$1')
  return plain.replace(/^(body\.details).*/, '$1')
}

/** Each a little smaller than the one given; smaller ones first. */
function smaller(scenario: Scenario): Scenario[] {
  const { name, steps } = scenario
  const without = (at: number) => ({ name, steps: steps.toSpliced(at, 1) })
  const replaced = (at: number, step: Step) => ({ name, steps: steps.with(at, step) })
  const dropped = steps.length > 1 ? steps.map((_, at) => without(at)) : []
  const simpler = steps.flatMap((step, at) => smallerSteps(step).map((one) => replaced(at, one)))
  return [...dropped, ...simpler]
}

function smallerSteps(step: Step): Step[] {
  const { body, edit } = step
  const found: Step[] = []
  for (const parameter of ['&?dryRun=All', '&?force=true', '&?fieldValidation=\\w+']) {
    const path = step.path.replace(new RegExp(parameter), '').replace('?&', '?')
    if (path !== step.path) found.push({ ...step, path })
  }
  if (isFields(body)) found.push(...smallerFields(body).map((one) => ({ ...step, body: one })))
  if (edit !== undefined) found.push(...smallerFields(edit).map((one) => ({ ...step, edit: one })))
  return found
}

/** What every body needs to be of its object. */
const needed = new Set(['apiVersion', 'kind', 'metadata.name', 'metadata'])

/** One key or element less, at any depth; the upper ones first, because they take most away. */
function smallerFields(fields: Fields, path = ''): Fields[] {
  const keys = Object.keys(fields)
  const shallow = keys.filter((key) => !needed.has(path + key)).map((key) => without(fields, key))
  const deep = keys.flatMap((key) =>
    smallerValue(fields[key], `${path}${key}.`).map((value) => ({ ...fields, [key]: value })),
  )
  return [...shallow, ...deep]
}

function smallerValue(value: unknown, path: string): unknown[] {
  if (isFields(value)) return smallerFields(value, path)
  if (!Array.isArray(value)) return []
  const fewer = value.map((_, at) => value.toSpliced(at, 1))
  const deep = value.flatMap((element, at) => smallerValue(element, `${path}${at}.`).map((one) => value.with(at, one)))
  return [...fewer, ...deep]
}

function without(fields: Fields, key: string): Fields {
  const { [key]: _, ...rest } = fields
  return rest
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
