/**
 * A machine whose power can be cut: processes, mounts and network in namespaces of their own, a fresh /run at every boot,
 * /var/lib that stays. All that runs in it ends with its first process, at once, and its mounts and interfaces with it;
 * the host keeps nothing but the folder.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readdir, readFile, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'

const execute = promisify(execFile)

const bootMsMax = 10_000
/** The kernel ends containers one by one, and cgroups only when the last of their processes has been reaped. */
const endMsMax = 20_000
const askAgainMs = 20
/** A command in it: a listing, a request. */
const commandMsMax = 30_000
const outputBytesMax = 16 * 1024 * 1024

const boot = join(import.meta.dirname, 'boot.sh')
const cgroups = '/sys/fs/cgroup'

type Parts = {
  /** Its disk: `lib` becomes /var/lib, `log` /var/log. */
  readonly dir: string
  /** Of its cgroup and its interface at the host: at most 11 characters. */
  readonly name: string
}

export class Machine {
  /** Of the host as the machine sees it, and of the machine: from the range for benchmarks, which nobody routes. */
  readonly host: string
  readonly address: string
  readonly cgroup: string
  readonly #parts: Parts
  readonly #port: string
  #init: ChildProcess | undefined
  #initPid = 0
  #line: 'open' | 'silent' = 'open'

  constructor(parts: Parts) {
    this.#parts = parts
    const net = Math.floor(Math.random() * 64) * 4
    const third = Math.floor(Math.random() * 256)
    this.host = `198.18.${third}.${net + 1}`
    this.address = `198.18.${third}.${net + 2}`
    this.cgroup = `/${parts.name}`
    this.#port = `${parts.name}-0`
  }

  /** What the machine calls /var/lib. */
  get lib(): string {
    return join(this.#parts.dir, 'lib')
  }

  async boot(): Promise<void> {
    const { dir, name } = this.#parts
    for (const folder of [this.lib, join(dir, 'log')]) await mkdir(folder, { recursive: true })
    for (const folder of await hierarchies()) await mkdir(join(folder, name), { recursive: true })
    const spaces = ['--mount', '--net', '--pid', '--ipc', '--uts', '--mount-proc', '--propagation', 'private']
    const args = [...spaces, '--fork', '--kill-child', 'sh', boot, dir]
    const log = join(dir, 'boot.log')
    // Its input ends with us, however we end, and so does the machine.
    const init = spawnLogged('unshare', args, { log, input: 'pipe' })
    this.#init = init
    const booted = async () => {
      const pid = await childOf(init)
      return pid !== 0 && (await readFile(log, 'utf8')).includes('booted') && pid
    }
    this.#initPid = await until(booted, 'the machine has booted', { withinMs: bootMsMax, everyMs: askAgainMs })
    await this.#plug()
  }

  /** Everything in it is gone, as by a power cut, and nothing of it is left but its disk. */
  async cut(): Promise<void> {
    const init = this.#init
    if (init === undefined) return
    this.#init = undefined
    this.#initPid = 0
    // The first process, whose end is everybody's; its parent ends when all of them are gone.
    const pid = await childOf(init)
    if (pid === 0) init.kill('SIGKILL')
    else process.kill(pid, 'SIGKILL')
    const hasEnded = async () => init.exitCode !== null || init.signalCode !== null
    await until(hasEnded, 'the machine has ended', { withinMs: endMsMax, everyMs: askAgainMs })
    await execute('ip', ['link', 'delete', this.#port]).catch(() => undefined)
    const trees = (await hierarchies()).map((folder) => join(folder, this.#parts.name))
    await until(async () => (await Promise.all(trees.map(removeTree))).every(Boolean), 'its cgroups have ended', {
      withinMs: endMsMax,
      everyMs: askAgainMs,
    })
  }

  /** Silent: what the machine sends to the host gets lost, and nothing says so. It stays as set when the machine boots. */
  async setLine(line: 'open' | 'silent'): Promise<void> {
    this.#line = line
    if (this.#initPid !== 0) await this.#applyLine()
  }

  /** At our own sudden end: what stays of it then are empty cgroups. */
  stop(): void {
    this.#init?.kill('SIGKILL')
  }

  /** Starts a program that ends with the machine. */
  start(program: string, args: readonly string[], log: string): { readonly pid: () => Promise<number> } {
    const started = spawnLogged('nsenter', this.#entering(program, args), { log, input: 'ignore' })
    return { pid: () => childOf(started) }
  }

  /** A command's output. */
  async run(program: string, args: readonly string[]): Promise<string> {
    const options = { timeout: commandMsMax, maxBuffer: outputBytesMax }
    const { stdout } = await execute('nsenter', this.#entering(program, args), options)
    return stdout
  }

  #entering(program: string, args: readonly string[]): string[] {
    const target = ['--target', String(this.#initPid), '--mount', '--net', '--pid', '--ipc', '--uts']
    return [...target, '--', program, ...args]
  }

  async #plug(): Promise<void> {
    const pair = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', String(this.#initPid)]
    await execute('ip', ['link', 'add', this.#port, ...pair])
    await execute('ip', ['address', 'add', `${this.host}/30`, 'dev', this.#port])
    await execute('ip', ['link', 'set', this.#port, 'up'])
    await this.run('ip', ['address', 'add', `${this.address}/30`, 'dev', 'eth0'])
    await this.run('ip', ['link', 'set', 'eth0', 'up'])
    await this.run('ip', ['route', 'add', 'default', 'via', this.host])
    if (this.#line === 'silent') await this.#applyLine()
  }

  /** By a neighbour of a hardware address that nobody has: the host does not take such packets for its own. */
  async #applyLine(): Promise<void> {
    const at = [this.host, 'dev', 'eth0']
    if (this.#line === 'open') await this.run('ip', ['neighbour', 'delete', ...at])
    else await this.run('ip', ['neighbour', 'replace', ...at, 'lladdr', '02:00:00:00:00:01', 'nud', 'permanent'])
  }
}

type Spawned = { readonly log: string; readonly input: 'pipe' | 'ignore' }

/** In a group of its own: Ctrl-C is ours to handle. */
function spawnLogged(program: string, args: readonly string[], { log, input }: Spawned): ChildProcess {
  const file = openSync(log, 'w')
  const child = spawn(program, args, { stdio: [input, file, file], detached: true })
  closeSync(file)
  child.on('error', () => {}) // its absence is noticed where what it does is waited for
  return child
}

async function childOf({ pid }: ChildProcess): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return Number(children.split(' ')[0] ?? 0)
}

/** One folder where the kernel has one hierarchy, one for each controller where it has the older kind. */
async function hierarchies(): Promise<string[]> {
  if (await isThere(join(cgroups, 'cgroup.controllers'))) return [cgroups]
  const found = await readdir(cgroups, { withFileTypes: true })
  return found.filter((entry) => entry.isDirectory()).map(({ name }) => join(cgroups, name))
}

/** Children first: a cgroup with children cannot be removed. Tells whether it is gone. */
async function removeTree(folder: string): Promise<boolean> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) if (entry.isDirectory()) await removeTree(join(folder, entry.name))
  await rmdir(folder).catch(() => undefined)
  return !(await isThere(folder))
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
