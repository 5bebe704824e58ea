/**
 * Real informers of client-go over `ake serve` that is restarted under them, in order and by kill -9, while writers churn:
 * nothing may be lost, and nobody may have to list again. The informers and writers are the Go program beside this file.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { buildGoProgram } from './goprogram.ts'
import type { Step, StepContext, StepResult } from './step.ts'

/** Enough history for every write of the run: the verdict reads it all again. */
const historyBytes = '2Gi'
/** Short enough for a crash loop, in which client-go would list again if a resumed watch were silent. */
const lifeMsMin = 300
/** This part of the restarts comes when nobody writes any more: a silent watch must survive, too. */
const quietPart = 0.25
/** While the server lives, some write is acknowledged at least this often. */
const stalledMsMax = 60_000

/**
 * Relists after a watch that a restart cut as it began: client-go then lists whatever the server does. Rare, as a watch that is
 * resumed has its first event at once.
 */
const excusedMax = 3

/** One cause often has a hundred effects: the first ones tell. */
const faultsShown = 5

type Verdict = {
  readonly name: string
  readonly events: number
  readonly relists: number
  readonly excused: number
  /** After a connection that the client's own HTTP/2 closed, since a write to a killed server failed before its reset was read. */
  readonly selfClosed: number
  readonly watches: number
  readonly statuses: { readonly [code: string]: number }
  readonly reasons: readonly string[] | null
  readonly faults: readonly string[] | null
}

type Report = {
  readonly event: 'report'
  readonly writes: number
  readonly history: number
  readonly lost: number
  readonly landed: number
  readonly refusals: { readonly [reason: string]: number }
  readonly faults: readonly string[] | null
  readonly informers: readonly Verdict[]
}

type Line = { readonly event: 'synced' | 'progress'; readonly writes: number; readonly informers?: number } | Report

/** What is restarted: ours, or the real one for contrast. */
type Restarted = { readonly kubeconfig: string; restart(how: Restart): Promise<void> }
type Restart = 'orderly' | 'kill'

export const step: Step = {
  name: 'informers',
  tier: 'default',
  minutes: 4,
  async run(context) {
    const plan = { writes: context.all ? 100_000 : 50_000, restarts: context.all ? 48 : 24 }
    const dir = join(context.dir, 'store')
    const args = ['--history', historyBytes]
    let server = await context.ake({ dir, args })
    const { port, kubeconfig } = server
    const codes: (number | null)[] = []
    const report = await churn(context, plan, {
      kubeconfig,
      restart: async (how) => {
        if (how === 'kill') await server.kill()
        else codes.push(await server.stop())
        server = await context.ake({ dir, args, port })
      },
    })
    await server.stop()
    const result = verdictOn(report, plan.restarts)
    const unclean = codes.filter((code) => code !== 0).length
    if (unclean === 0) return result
    const note = `${unclean} of ${codes.length} orderly ends had another exit code than 0`
    return { passed: result.passed, failed: result.failed + 1, notes: [note, ...(result.notes ?? [])] }
  },
}

/** Runs the program, restarts the server each time another part of the writes is done, and asks for the verdict. */
export async function churn(
  context: StepContext,
  { writes, restarts }: { writes: number; restarts: number },
  server: Restarted,
): Promise<Report> {
  const program = await buildGoProgram('informers', context.progress)
  const log = openSync(join(context.dir, 'informers.log'), 'w')
  const child = spawn(program, ['-kubeconfig', server.kubeconfig, '-writes', String(writes), '-accept', 'both'], {
    stdio: ['pipe', 'pipe', log],
    signal: context.signal,
  })
  const end = () => child.kill('SIGKILL')
  process.once('exit', end)
  try {
    return await restartUnder(context, { child, writes, restarts, server })
  } finally {
    process.removeListener('exit', end)
    end()
  }
}

type Running = {
  readonly child: ChildProcess
  readonly writes: number
  readonly restarts: number
  readonly server: Restarted
}

async function restartUnder(context: StepContext, { child, writes, restarts, server }: Running): Promise<Report> {
  let done = 0
  let changedMs = performance.now()
  const synced = Promise.withResolvers<void>()
  const reported = Promise.withResolvers<Report>()
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (text) => {
    const line = JSON.parse(text) as Line
    if (line.writes > done) changedMs = performance.now()
    done = line.writes
    if (line.event === 'synced') synced.resolve()
    if (line.event === 'report') reported.resolve(line)
  })
  const ended = once(child, 'close').then(() => {
    throw new Error(`the informers ended without a report: see ${join(context.dir, 'informers.log')}`)
  })
  ended.catch(() => {})
  await Promise.race([synced.promise, ended])
  context.progress(`synced after ${done} writes`)
  for (let count = 1; count <= restarts; count++) {
    const since = performance.now()
    changedMs = since
    const due = Math.min(writes, (count * writes) / (restarts * (1 - quietPart)))
    while (done < due || performance.now() - since < lifeMsMin) {
      const still = performance.now() - changedMs > stalledMsMax
      if (done < due && still) throw new Error(`the writes stand still at ${done}`)
      await Promise.race([pause(50, undefined, { signal: context.signal }), ended])
    }
    const how = count % 2 === 0 ? 'kill' : 'orderly'
    const begunMs = performance.now()
    await server.restart(how)
    const ms = Math.round(performance.now() - begunMs)
    context.progress(`restart ${count} of ${restarts} (${how}) at ${done} writes took ${ms} ms`)
  }
  child.stdin?.write('finish\n')
  return await Promise.race([reported.promise, ended])
}

/** Each informer, and the history as a whole, is one thing that passes or fails. */
function verdictOn(report: Report, restarts: number): StepResult {
  const failed = report.informers.filter((one) => faultsOf(one).length > 0)
  const excused = report.informers.reduce((sum, one) => sum + one.excused, 0)
  const selfClosed = report.informers.reduce((sum, one) => sum + one.selfClosed, 0)
  const refused = Object.keys(report.refusals ?? {}).length > 0
  const broken = (report.faults ?? []).length > 0 || refused || excused > excusedMax
  const events = report.informers.reduce((sum, one) => sum + one.events, 0)
  const relists = report.informers.reduce((sum, one) => sum + one.relists, 0)
  const watches = report.informers.reduce((sum, one) => sum + one.watches, 0)
  const notes = [
    `${report.informers.length} informers, ${report.writes} writes, ${restarts} restarts, half of them by kill -9: ` +
      `${events} events, ${watches} watches resumed, ${relists} relists, ` +
      `${excused} more after watches that were cut as they began, ${selfClosed} after connections that Go closed itself`,
    `answers lost in restarts: ${report.lost}, of these ${report.landed} had been stored`,
    ...failed.slice(0, faultsShown).map((one) => `${one.name}: ${faultsOf(one).slice(0, 2).join('; ')}`),
    ...(report.faults ?? []).slice(0, faultsShown),
    ...Object.entries(report.refusals ?? {}).map(([reason, count]) => `a write was refused ${count} times: ${reason}`),
  ]
  return {
    passed: report.informers.length + 1 - failed.length - (broken ? 1 : 0),
    failed: failed.length + (broken ? 1 : 0),
    notes,
  }
}

function faultsOf(one: Verdict): string[] {
  return [...(one.reasons ?? []), ...(one.faults ?? [])]
}
