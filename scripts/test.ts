/**
 * `npm test`: the unit tests of each room of src/ in one process, which is many times faster than one for each file, and
 * each scenario of test/ in its own, short ones together (`scripts/room.ts`); as many at a time as keep the cores busy, over files in memory
 * where there is room, and of random lives a part (`src/base/lives.test-support.ts`). `npm test -- cache watch` runs the
 * files whose path contains one of the words, and shows every test; options for Node (`--test-name-pattern=…`) are passed
 * on.
 */
import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from './tree.ts'

const testTimeoutMs = 120_000 // a hanging test is reported by name instead of blocking the gate
/** A room that spins where no test's own time runs out: the longest takes a minute, several on a busy machine. */
const jobMsMax = 420_000
/** To say what failed in it and what keeps it. */
const lastWordsMs = 5_000
/** From its start, with nothing compiled yet, to its end. */
const roleMsMax = 60_000
/** Scenarios mostly wait for processes and lines, and so do some rooms: with four more than cores a fifth lay idle in the first half. */
const atOnce = availableParallelism() + 6
const slowestShown = 10
/** The part of random lives that a run of everything lives; a chosen test lives all of them, and so does the gate. */
const livesOfAll = '0.1'
const memory = '/dev/shm'
/** Some tests write large files, several at a time; where less is free (a container has 64 MB) files stay on the disk. */
const memoryBytesMin = 2 * 2 ** 30
/**
 * Begun first, so that nothing long is begun last; among them those that mostly wait, while rooms that only compute fill
 * what is left of the cores at the end.
 */
const longest = [
  'src/upstream',
  'test/hubothercluster',
  'test/edge.test',
  'test/(short, of an edge',
  'test/fleet',
  'test/disk',
  'src/hub',
  'src/endpoint',
  'test/othercluster',
  'test/hubbed',
  'src/mirror',
  'test/(short',
  'test/demo',
  'src/store',
  'test/hub.test',
  'test/sealed',
  'test/pressure',
  'test/node',
  'test/budget',
  'test/edgefaults',
  'test/serve.test',
  'test/peers',
  'test/incluster',
  'test/hostile',
  'test/crash',
  'test/c',
  'src/kube',
]

/** Small rooms share a process, as short scenarios do. */
const smallRooms = ['base', 'join', 'pki', 'policy']

/** Short ones share a process, which loads the sources once for all of them: that takes half a second of a core each time. */
const together: Readonly<Record<string, readonly string[]>> = {
  'test/(short, of an authority)': [
    'apply',
    'serverbac',
    'serving',
    'shown',
    'sockets',
    'ending',
    'credentials',
    'gate',
  ],
  'test/(short, of an edge)': [
    'clock',
    'differences',
    'metrics',
    'misconfigured',
    'proxy',
    'restored',
    'failover',
    'link',
  ],
}
/** What measures memory starts `ake` with the options of Node that it ships with. */
const measuring = ['test/pressure', 'test/crowds']

/** Most of what a test makes is garbage at its end: a young generation that holds all of it copies less. */
const young = ['--min-semi-space-size=32', '--max-semi-space-size=64']

type Job = { readonly name: string; readonly files: readonly string[] }
type Case = { readonly title: string; readonly ms: number; readonly job: string }

const words = process.argv.slice(2).filter((arg) => !arg.startsWith('-'))
const flags = process.argv.slice(2).filter((arg) => arg.startsWith('-'))

const jobs = inOrder(jobsOf(globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).sort()))
if (jobs.length === 0) {
  console.error(`no test file contains ${words.join(' or ')} in its path`)
  process.exit(1)
}
const folder = mkdtempSync(join(hasMemory() ? memory : tmpdir(), 'ake-tests-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
/** Of everything the quick one; of what is chosen Node's own, which names the test that an unhandled rejection belongs to. */
const runner = words.length > 0 ? ['--test', '--test-reporter=spec', '--test-isolation=none'] : ['scripts/room.ts']
const env = {
  ...process.env,
  TMPDIR: folder,
  // Compiled sources are kept between runs: every process and thread would compile them again.
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules', '.cache', 'lived'),
  // What lives for seconds gains nothing from a small young generation, or an old one that is collected early.
  AKE_NODE_OPTIONS:
    process.env.AKE_NODE_OPTIONS ?? '--heap-growing-percent=0 --min-semi-space-size=16 --max-semi-space-size=32',
  AKE_LIVES: process.env.AKE_LIVES ?? (words.length > 0 ? '1' : livesOfAll),
}
const startedMs = performance.now()
/** Rooms of src/ go ahead meanwhile: they start no process. */
const compiled = jobs.some(isScenario) ? compile() : undefined
const cases: Case[] = []
const totals = new Map<string, number>()
const tookMs = new Map<string, number>()
let failed = 0
const waiting = jobs.values()
await Promise.all(Array.from({ length: atOnce }, () => work()))
summarize()
process.exitCode = failed === 0 ? 0 : 1

/**
 * What is killed does not get to keep what it compiled, and what was only loaded has compiled little: both roles live once
 * and end in order, with their threads, before the first scenario.
 */
async function compile(): Promise<void> {
  const listen = ['--listen', '127.0.0.1:0', '--data']
  const cloud = join(folder, 'compile-cloud')
  await using _ = await role(['serve', ...listen, cloud])
  const kubeconfig = join(cloud, 'admin.kubeconfig')
  await using __ = await role([
    ...['edge', '--kubeconfig', kubeconfig, '--mirror', 'configmaps'],
    ...[...listen, join(folder, 'compile-edge')],
  ])
}

/** Until it says that it is ready; ends in order. One that does not start is for the scenarios to tell. */
async function role(args: readonly string[]): Promise<AsyncDisposable> {
  const child = spawn(join(root, 'bin', 'ake'), args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const closed = new Promise((resolve) => void child.on('close', resolve))
  const late = setTimeout(() => child.kill('SIGKILL'), roleMsMax)
  const ready = new Promise((resolve) => void child.stdout.once('data', resolve))
  await Promise.race([ready, closed])
  return {
    async [Symbol.asyncDispose]() {
      child.kill()
      await closed
      clearTimeout(late)
    },
  }
}

function isScenario({ name }: Job): boolean {
  return name.startsWith('test/')
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize >= memoryBytesMin
  } catch {
    return false
  }
}

/** A room of src/, or one file of test/, or those of a group of short ones. */
function jobsOf(files: readonly string[]): Job[] {
  const chosen = files.filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
  const nameOf = (path: string) => (path.startsWith('src/') ? roomOf(path) : (groupOf(path) ?? path))
  return [...Map.groupBy(chosen, nameOf)].map(([name, files]) => ({ name, files }))
}

function roomOf(path: string): string {
  const room = path.split('/')[1] ?? ''
  return smallRooms.includes(room) ? 'src/(small rooms)' : `src/${room}`
}

function groupOf(path: string): string | undefined {
  const name = basename(path, '.test.ts')
  return Object.keys(together).find((group) => together[group]?.includes(name))
}

function inOrder(jobs: readonly Job[]): Job[] {
  const rank = ({ name }: Job) =>
    (longest.findIndex((one) => name.startsWith(one)) + longest.length + 1) % (longest.length + 1)
  return jobs.toSorted((a, b) => rank(a) - rank(b))
}

/** One job after the other, until none is left. */
async function work(): Promise<void> {
  for (const job of waiting) {
    if (isScenario(job)) await compiled
    const beganMs = performance.now()
    if ((await run(job)) !== 0) failed++
    tookMs.set(job.name, performance.now() - beganMs)
  }
}

async function run({ name, files }: Job): Promise<number> {
  const args = [`--test-timeout=${testTimeoutMs}`, ...young, ...flags, ...runner, ...files]
  const isMeasuring = measuring.some((one) => name.startsWith(one))
  const own = isMeasuring ? { ...env, AKE_NODE_OPTIONS: process.env.AKE_NODE_OPTIONS } : env
  const child = spawn(process.execPath, args, { cwd: root, env: own, stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = new Promise<number>((resolve) => void child.on('close', (code) => resolve(code ?? 1)))
  const late = setTimeout(() => {
    console.log(`✖ ${name} was not done within ${jobMsMax / 1_000} s, and is ended`)
    child.kill('SIGTERM')
    setTimeout(() => child.kill('SIGKILL'), lastWordsMs).unref()
  }, jobMsMax)
  // What belongs together is printed together, however many run at once.
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) note(line, name, lines)
  const code = await closed
  clearTimeout(late)
  for (const line of lines) console.log(line)
  return code
}

/** Without a filter only failures are worth reading. */
function note(line: string, job: string, lines: string[]): void {
  const [, name, figure] = /^ℹ (\w+) ([\d.]+)$/.exec(line) ?? []
  if (name !== undefined) return void totals.set(name, (totals.get(name) ?? 0) + Number(figure))
  const [, title, ms] = /^\s*[✔✖] (.+) \(([\d.]+)ms\)/.exec(line) ?? []
  // What failed is named a second time, at the end.
  if (title !== undefined && !lines.includes('✖ failing tests:')) cases.push({ title, ms: Number(ms), job })
  if (words.length > 0 || !/^\s*[✔▶]/.test(line)) lines.push(line)
}

function summarize(): void {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
  console.log(`slowest of ${cases.length}:`)
  for (const { title, ms, job } of cases.toSorted((a, b) => b.ms - a.ms).slice(0, slowestShown))
    console.log(`  ${seconds(ms).padStart(7)} ${job}: ${title}`)
  const longestJobs = [...tookMs].toSorted(([, a], [, b]) => b - a).slice(0, slowestShown)
  console.log(`longest: ${longestJobs.map(([name, ms]) => `${name} ${seconds(ms)}`).join(', ')}`)
  const counts = ['tests', 'pass', 'fail', 'cancelled', 'skipped'].map((name) => `${name} ${totals.get(name) ?? 0}`)
  console.log(`ℹ ${counts.join(', ')} in ${seconds(performance.now() - startedMs)}`)
}
