/**
 * Real informers of client-go, driven step by step: they read in one place (an edge) while writers write in another (the
 * API server), and the step that drives them cuts lines, restarts and compacts in between. See informers/phases.go.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildGoProgram } from './goprogram.ts'

/** Of one informer. */
export type Standing = {
  readonly name: string
  readonly objects: number
  readonly events: number
  readonly handled: number
  /** Before its first sync, and after it: LIST, or WATCH with initial events. */
  readonly lists: number
  readonly relists: number
  /** Resumed watches; the first one after a LIST counts, too. */
  readonly watches: number
  /** Deletions that only a relist revealed, and deletions told twice. */
  readonly missed: number
  readonly repeated: number
  readonly statuses: { readonly [code: string]: number }
  readonly failures: { readonly [name: string]: number }
  /** Of each relist, what came before it. */
  readonly reasons: readonly string[] | null
  /** Lost, ghost or different objects, versions that went back. */
  readonly faults: readonly string[] | null
}

export type Phase = {
  readonly event: string
  readonly writes: number
  readonly refusals?: { readonly [reason: string]: number }
  readonly informers?: readonly Standing[]
  readonly error?: string
}

export type Informers = {
  readonly count: number
  readonly pid: number
  /** So many writes, then resolves. */
  write(count: number): Promise<Phase>
  /** Writes on in the background, about so often a second; 0 ends it. Every other phase but `status` ends it, too. */
  churn(perSecond: number): Promise<Phase>
  status(): Promise<readonly Standing[]>
  /** Waits until each informer holds what a direct list shows; what it does not is in its faults. */
  verify(seconds?: number): Promise<readonly Standing[]>
  /** Tells that the API server was set back: until the next `verify` versions may be lower. */
  restored(): Promise<Phase>
  /** Ends the program. */
  finish(): Promise<void>
}

export type InformersOptions = {
  /** Where the informers read. */
  readonly kubeconfig: string
  /** Where the writers write, and where the truth is read. */
  readonly direct: string
  /** The folder of the log. */
  readonly dir: string
  readonly accept?: 'json' | 'protobuf' | 'both'
  readonly lists?: 'plain' | 'watchlist' | 'both'
  /** Only what the kubelet of this node asks for. The writers bind pods to node-0 … node-4. */
  readonly node?: string
  /** How many objects the writes go to. */
  readonly keys?: number
  readonly writers?: number
  readonly signal?: AbortSignal
  readonly progress?: (line: string) => void
}

/** Resolves when all informers are synced; objects exist by then, written before the first of them started. */
export async function startInformers(options: InformersOptions): Promise<Informers> {
  const { kubeconfig, direct, dir, accept = 'both', lists = 'both', keys = 300, writers = 8 } = options
  const program = await buildGoProgram('informers', options.progress ?? (() => {}))
  const log = join(dir, 'informers.log')
  const file = openSync(log, 'a')
  const args = [
    ...['-kubeconfig', kubeconfig, '-direct', direct, '-accept', accept, '-lists', lists],
    ...['-keys', String(keys), '-writers', String(writers), ...(options.node ? ['-node', options.node] : [])],
  ]
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', file],
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  })
  closeSync(file)
  const end = () => child.kill('SIGKILL')
  process.once('exit', end)
  child.on('error', () => {}).once('exit', () => process.removeListener('exit', end))
  const say = conversation(child, log)
  const { informers: count } = (await say()) as unknown as { informers: number }
  const standings = async (line: string) => (await say(line)).informers ?? []
  return {
    count,
    pid: child.pid as number,
    write: (number) => say(`write ${number}`),
    churn: (perSecond) => say(`churn ${perSecond}`),
    status: () => standings('status'),
    verify: (seconds = 60) => standings(`verify ${seconds}`),
    restored: () => say('restored'),
    finish: async () => {
      const ended = once(child, 'close')
      child.stdin?.write('finish\n')
      await ended
    },
  }
}

/** One line there, one line back; without a line it is the answer to the start. */
function conversation(child: ChildProcess, log: string): (line?: string) => Promise<Phase> {
  const waiting: PromiseWithResolvers<Phase>[] = []
  let ended = false
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (text) => {
    const phase = JSON.parse(text) as Phase
    const next = waiting.shift()
    if (phase.error === undefined) next?.resolve(phase)
    else next?.reject(new Error(`the informers: ${phase.error}`))
  })
  child.once('close', () => {
    ended = true
    for (const next of waiting.splice(0)) next.reject(new Error(`the informers ended: see ${log}`))
  })
  return (line) => {
    const next = Promise.withResolvers<Phase>()
    if (ended) next.reject(new Error(`the informers ended: see ${log}`))
    else waiting.push(next)
    if (line !== undefined) child.stdin?.write(`${line}\n`)
    return next.promise
  }
}

/** What is wrong with them: every fault, and every relist unless so many are allowed to each. */
export function faultsOf(informers: readonly Standing[], relistsMax = 0): string[] {
  return informers.flatMap((one) => [
    ...(one.faults ?? []).map((fault) => `${one.name}: ${fault}`),
    ...(one.relists > relistsMax ? (one.reasons ?? []).map((reason) => `${one.name} listed again: ${reason}`) : []),
  ])
}
