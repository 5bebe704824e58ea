/**
 * The commands of docs/getting-started.md as they stand there, in a folder that stands for the node's disk: the paths of the page
 * that begin at the root begin there, and its port is one that is free.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startReady } from '../ready.ts'

const execute = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')
const unit = join(root, 'deploy', 'edge.service')
const document = join(root, 'docs', 'getting-started.md')
const readme = join(root, 'README.md')
/** A certificate is signed within seconds; the longest block asks for two of them. */
const blockMsMax = 120_000

const places = ['cluster', 'node', 'check', 'offline', 'systemd', 'install'] as const

export type Block = { readonly place: (typeof places)[number]; readonly text: string }

export async function readBlocks(): Promise<Block[]> {
  const page = await readFile(document, 'utf8')
  const found = [...page.matchAll(new RegExp(`^\`\`\`sh (${places.join('|')})\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))]
  if (page.split('```').length !== found.length * 2 + 1) throw new Error('a block of the page says not where it is run')
  return found.map(([, place, text]) => ({ place: place as Block['place'], text: text as string }))
}

/** What the page shows as printed by its `ake check`. */
export async function shownCheck(): Promise<string> {
  const [, shown] = /^```sh check\n.*\n```\n\n((?:(?: {4}.*)?\n)+)/m.exec(await readFile(document, 'utf8')) ?? []
  if (shown === undefined) throw new Error('the page does not show what ake check prints')
  return `${shown.replaceAll(/^ {4}/gm, '').trim()}\n`
}

/** What the README prints for a real cluster: the edge, and a look at its pods. */
export async function readmeLines(): Promise<{ readonly edge: string; readonly look: string }> {
  const text = await readFile(readme, 'utf8')
  const [, edge, look] = /^ {4}(bin\/ake edge .*)\n {4}(kubectl .*)$/m.exec(text) ?? []
  if (edge === undefined || look === undefined) throw new Error('the README shows no edge with a look at it')
  return { edge, look }
}

type Parts = {
  readonly dir: string
  readonly bin: string
  readonly port: number
  /** The administrator's. */
  readonly kubeconfig: string
  readonly signal: AbortSignal
}

export class PageShell {
  readonly #parts: Parts
  #edge: { stop: () => Promise<void> } | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The checkout in which the commands are given, with what they leave there. */
  get work(): string {
    return join(this.#parts.dir, 'work')
  }

  path(path: string): string {
    return join(this.#parts.dir, 'disk', path)
  }

  async prepare(): Promise<void> {
    await mkdir(this.work, { recursive: true })
    for (const folder of ['deploy', 'bin']) await symlink(join(root, folder), join(this.work, folder))
    for (const folder of ['etc', 'var/lib']) await mkdir(this.path(folder), { recursive: true })
  }

  /** What an init system would do with a unit is done here, by the unit's own line. */
  async run({ place, text }: Block): Promise<void> {
    if (place === 'install' || place === 'offline' || place === 'check') return
    if (place !== 'systemd') return void (await this.command(text))
    if (/systemctl stop /.test(text)) await this.stop()
    if (/systemctl (?:start|enable --now) /.test(text)) await this.start()
  }

  async command(text: string): Promise<string> {
    const { bin, kubeconfig, signal } = this.#parts
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, KUBECONFIG: kubeconfig }
    const options = { cwd: this.work, env, timeout: blockMsMax, signal }
    try {
      return (await execute('bash', ['-euo', 'pipefail', '-c', this.#here(text)], options)).stdout
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string }
      throw new Error(`${text}: ${stderr}${stdout}`, { cause: error })
    }
  }

  /** A line that starts an edge where no port is named. */
  async startLine(line: string, home: string): Promise<{ stop: () => Promise<void> }> {
    const { dir, signal, port } = this.#parts
    const [command = ''] = line.split(' #')
    const text = `cd ${this.work}; export HOME=${home}; exec ${command.trim()} --listen 127.0.0.1:${port}`
    return startReady({ program: 'bash', args: ['-c', text], log: join(dir, 'readme.log'), signal })
  }

  async start(): Promise<void> {
    const { dir, signal } = this.#parts
    const line = /^ExecStart=(.*)$/m.exec(await readFile(unit, 'utf8'))?.[1]
    if (line === undefined) throw new Error('the unit has no ExecStart')
    const [program, ...args] = this.#here(line).split(' ') as [string, ...string[]]
    this.#edge = await startReady({ program, args, log: join(dir, 'edge.log'), signal })
  }

  /** By SIGKILL: no worse than a power cut. */
  async stop(): Promise<void> {
    await this.#edge?.stop()
    this.#edge = undefined
  }

  #here(text: string): string {
    return text
      .replaceAll(/(?<![\w.])\/(?=(?:etc|var\/lib)\/)/g, `${this.path('')}/`)
      .replaceAll('/opt/ake/', `${root}/`)
      .replaceAll('127.0.0.1:10005', `127.0.0.1:${this.#parts.port}`)
  }
}
