/**
 * Protobuf as kube-apiserver speaks it, proved by kube-apiserver itself: `objects`, `watches` and `answers` of a real one in
 * both forms, and `kinds` (every one with a message) by the code it is made of.
 */
import { join } from 'node:path'
import { startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { proveAnswers } from './answers.ts'
import { type Found, proveObjects } from './golden.ts'
import { Judge } from './judge.ts'
import { proveKinds } from './kinds.ts'
import { proveWatches } from './watches.ts'

/** How many objects of each kind and manner; `--all` looks at more. */
const seeds = 3
const seedsOfAll = 40
const moreOfAll = 4
/** One cause often has a hundred effects: the first ones tell. */
const faultsShown = 12

export const step: Step = { name: 'protobuf', tier: 'default', minutes: 3, run }

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress, only, all } = context
  const found: Found = { count: 0, faults: [], notes: [] }
  const judge = await Judge.start(progress)
  // One of its own, whose rules cannot be broken by the objects that are put into it.
  const extraArgs = ['--enable-priority-and-fairness=false']
  const oracle = await startOracle({ dir: join(dir, 'oracle'), extraArgs, signal, progress })
  try {
    if (only('watches')) await proveWatches(oracle, found)
    if (only('answers')) await proveAnswers(oracle, found)
    if (only('objects')) await proveObjects(oracle, found, all ? moreOfAll : 1)
    if (only('kinds')) await proveKinds(judge, found, all ? seedsOfAll : seeds)
  } finally {
    judge.stop()
    oracle.stop()
  }
  const failed = new Set(found.faults).size
  return { passed: found.count - failed, failed, notes: [...found.notes, ...found.faults.slice(0, faultsShown)] }
}
