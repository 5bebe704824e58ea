/** `ake` as a process of its own, the way users run it: what conformance, faults and informers talk to. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'

const programHere = join(import.meta.dirname, '..', 'bin', 'ake')

/** Opening a large store on a busy machine included; usually well under a second. */
const readyMsMax = 60_000

export type Ake = {
  readonly url: string
  readonly port: number
  /** The path of the administrator's kubeconfig. */
  readonly kubeconfig: string
  /** PEM, not paths. */
  readonly ca: string
  readonly cert: string
  readonly key: string
  readonly pid: number
  /** Orderly, by SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
  /** By SIGKILL, as a crash or an out-of-memory killer would. */
  kill(): Promise<void>
}

export type AkeOptions = {
  /** The data folder; started again on the same folder, it is the same server. */
  readonly dir: string
  /** Where it listens; 0 picks a port. A restart that clients must not notice names the old one. */
  readonly port?: number
  readonly args?: readonly string[]
  /** The launcher of another checkout. */
  readonly program?: string
  readonly signal?: AbortSignal
}

export function startAke(options: AkeOptions): Promise<Ake> {
  return startCommand(['serve'], options)
}

/** One of the commands of `ake` that serve until they are ended. */
export async function startCommand(
  [command, ...words]: readonly [string, ...string[]],
  { dir: folder, port = 0, args = [], program, signal }: AkeOptions,
): Promise<Ake> {
  const dir = resolve(folder)
  await mkdir(dir, { recursive: true })
  const all = [command, ...words, '--listen', `127.0.0.1:${port}`, '--data', dir, ...args]
  const running = await startProgram(all, { log: `${dir}.log`, program, signal })
  const kubeconfig = join(dir, 'admin.kubeconfig')
  return { ...running, kubeconfig, ...(await credentials(kubeconfig)) }
}

export type AkeProgram = Omit<Ake, 'kubeconfig' | 'ca' | 'cert' | 'key'>

/** Resolves when it says that it is ready, and where. */
export async function startProgram(
  words: readonly string[],
  {
    log: path,
    program = programHere,
    signal,
  }: { log: string; program?: string | undefined; signal?: AbortSignal | undefined },
): Promise<AkeProgram> {
  const log = openSync(path, 'a')
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', log] })
  closeSync(log)
  const exited = once(child, 'exit') as Promise<[number | null]>
  const end = () => child.kill('SIGKILL')
  process.once('exit', end)
  signal?.addEventListener('abort', end, { once: true })
  void exited.then(() => {
    process.removeListener('exit', end)
    signal?.removeEventListener('abort', end)
  })
  const url = await readyLine(child, exited, { name: `ake ${words[0]}`, log: path })
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid as number,
    stop: async () => {
      child.kill('SIGTERM')
      return (await exited)[0]
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

type Named = { readonly name: string; readonly log: string }

async function readyLine(child: ChildProcess, exited: Promise<unknown>, { name, log }: Named): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const ready = new Promise<string>((done) => {
    lines.on('line', (line) => {
      const [word, url] = line.split(' ')
      if (word === 'ready' && url !== undefined) done(url)
    })
  })
  const late = new Promise<never>((_, fail) => {
    const timer = setTimeout(() => fail(new Error(`${name} was not ready in ${readyMsMax / 1000} s`)), readyMsMax)
    void ready.finally(() => clearTimeout(timer))
  })
  const ended = exited.then(() => {
    throw new Error(`${name} ended before it was ready: see ${log}`)
  })
  // Its end later on is no failure of the start.
  ended.catch(() => {})
  late.catch(() => child.kill('SIGKILL'))
  return await Promise.race([ready, late, ended])
}

/** The certificates that the kubeconfig carries; it is written by ake itself, so its form is known. */
async function credentials(kubeconfig: string): Promise<{ ca: string; cert: string; key: string }> {
  const text = await readFile(kubeconfig, 'utf8')
  const field = (name: string) => {
    const found = new RegExp(`"?${name}"?: "?([A-Za-z0-9+/=]+)`).exec(text)?.[1]
    if (found === undefined) throw new Error(`${kubeconfig} has no ${name}`)
    return Buffer.from(found, 'base64').toString()
  }
  return {
    ca: field('certificate-authority-data'),
    cert: field('client-certificate-data'),
    key: field('client-key-data'),
  }
}
