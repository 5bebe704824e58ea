/** A server of the demo: `ake` with these arguments, as an operator starts it, with a log in the demo's folder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Unavailable } from '../../base/fault.ts'

/** Next to others on a slow machine; one takes about a second. */
const readyMsMax = 60_000
/** For a server to end in order: nothing that it holds is needed any more. */
const endMsMax = 3_000

const program = join(import.meta.dirname, '../../main.ts')
const leash = new URL('./leash.ts', import.meta.url).href

type Parts = {
  /** As the demo calls it, and its log. */
  readonly name: string
  readonly args: readonly string[]
  readonly folder: string
}

export class DemoProcess {
  readonly name: string
  readonly #child: ChildProcess
  readonly #logFile: string
  /** Resolves when it is over, whatever the reason. */
  readonly over: Promise<void>

  constructor({ name, args, folder }: Parts) {
    this.name = name
    this.#logFile = join(folder, `${name}.log`)
    const log = openSync(this.#logFile, 'a', 0o600)
    // A session of its own: Ctrl-C is for the demo alone, which ends its servers.
    this.#child = spawn(process.execPath, [...process.execArgv, '--import', leash, program, ...args], {
      stdio: ['ignore', 'pipe', log, 'ipc'],
      env: ownEnvironment(process.env),
      detached: true,
    })
    closeSync(log)
    this.over = once(this.#child, 'close').then(
      () => {},
      () => {},
    )
  }

  /** Resolves with the address at which it says that it is ready. */
  async ready(): Promise<string> {
    const late = setTimeout(() => this.kill(), readyMsMax)
    const said = new Promise<string>((resolve) => {
      createInterface(this.#child.stdout as NodeJS.ReadableStream).on('line', (line) => {
        const url = /^ready (\S+)/.exec(line)?.[1]
        if (url !== undefined) resolve(url)
      })
    })
    const ended = this.over.then(() => Promise.reject(this.fault('did not start')))
    return await Promise.race([said, ended]).finally(() => clearTimeout(late))
  }

  get log(): string {
    return readFileSync(this.#logFile, 'utf8')
  }

  /** What to tell the operator about an end that was not asked for. */
  fault(what: string): Unavailable {
    const last = this.log.trimEnd().split('\n').at(-1)
    return new Unavailable(`${this.name} of the demo ${what}: ${last === '' ? 'it said nothing' : last}`)
  }

  async end(): Promise<void> {
    this.#child.kill('SIGTERM')
    const late = setTimeout(() => this.kill(), endMsMax)
    await this.over.finally(() => clearTimeout(late))
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Options of the shell in which the demo was started are not meant for its servers. */
function ownEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('AKE_')))
}
