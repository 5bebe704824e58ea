/**
 * The corpus once more, in protobuf: every body of a kind that has a message is sent as one, every answer asked for in it, to
 * a real kube-apiserver and to `ake serve`; every stored kind through every verb (`verbs`); and messages that are none
 * (`malformed`): cut short, of a wrong kind, too large, lying.
 */
import { join } from 'node:path'
import { groups } from '../corpus/groups.ts'
import { Comparison } from '../differential.ts'
import { listedIn } from '../listed/listed.ts'
import { ask, startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { type Outcome, verdict } from '../verdict.ts'
import { malformed } from './malformed.ts'
import { expectedAt, ProtobufSide } from './side.ts'
import { verbs } from './verbs.ts'

/** Cases whose point is the very form that they ask for, or that are about documents which no client asks for in protobuf. */
const untouched = new Set(['discovery', 'negotiation', 'tables'])

export const step: Step = { name: 'protobuf-requests', tier: 'default', minutes: 7, run }

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  const listed = listedIn()
  const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
  // Compressed answers are compared too, as clients on other machines get them.
  const ake = await context.ake({ args: ['--compress', 'all'] })
  const expected = await expectedAt(async (path) => (await ask(oracle, path)).body)
  const real = new ProtobufSide(oracle, expected)
  const ours = new ProtobufSide(ake, expected)
  const outcomes: Outcome[] = []
  try {
    const made = context.only('verbs') ? [await verbs(oracle)] : []
    for (const group of [...made, ...groups.filter(({ name }) => !untouched.has(name)), malformed]) {
      if (!context.only(group.name)) continue
      signal.throwIfAborted()
      outcomes.push(...(await new Comparison(real, ours, listed).run(group)))
      const open = outcomes.filter((one) => one.open.length > 0).length
      progress(`${group.name}: ${outcomes.length} cases so far, ${open} with unlisted differences`)
    }
  } finally {
    real.close()
    ours.close()
    oracle.stop()
  }
  const { sent, received } = real.figures
  const result = verdict(outcomes, listed, false)
  return { ...result, notes: [...(result.notes ?? []), `${sent} bodies were messages, and ${received} answers`] }
}
