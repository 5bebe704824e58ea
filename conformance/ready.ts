/** A program of the proofs that prints a line `ready WORD` when it serves, and ends with us. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'

const readyMsMax = 60_000

type Started = {
  readonly program: string
  readonly args: readonly string[]
  readonly log: string
  /** Tells from a line of its output that it serves, and finds the word worth knowing; `ready WORD` unless told. */
  readonly isReady?: (line: string) => string | undefined
  readonly signal?: AbortSignal
}

export async function startReady(started: Started): Promise<{ word: string; pid: number; stop: () => Promise<void> }> {
  const { program, args, log, signal, isReady = (line) => /^ready (\S+)/.exec(line)?.[1] } = started
  const file = openSync(log, 'a')
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', file] })
  closeSync(file)
  const exited = once(child, 'exit')
  const end = () => child.kill('SIGKILL')
  process.once('exit', end)
  signal?.addEventListener('abort', end, { once: true })
  void exited.then(() => {
    process.removeListener('exit', end)
    signal?.removeEventListener('abort', end)
  })
  const found = Promise.withResolvers<string>()
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    const word = isReady(line)
    if (word !== undefined) found.resolve(word)
  })
  const timer = setTimeout(() => {
    end()
    found.reject(new Error(`${program} was not ready in ${readyMsMax / 1000} s: see ${log}`))
  }, readyMsMax)
  void exited.then(() => found.reject(new Error(`${program} ended before it was ready: see ${log}`)))
  try {
    const word = await found.promise
    return {
      word,
      pid: child.pid as number,
      stop: async () => {
        end()
        await exited
      },
    }
  } finally {
    clearTimeout(timer)
  }
}
