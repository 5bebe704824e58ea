/** `ake serve` and `ake edge` as targets: started as a user would, the first filled through its own API. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Address, Credentials, Target } from './bench.ts'
import { type Ask, sendAll } from './client.ts'
import { makeNamespaces, namespaceName, type Pod } from './fixture.ts'

/** Another checkout's launcher can be named, to compare two states of the code. */
const ownProgram = process.env.AKE_PROGRAM || join(import.meta.dirname, '..', 'bin', 'ake')

/**
 * A program whose sources are new compiles them at its first start, which takes memory and time that the question is not
 * about; whatever ends in order keeps what it compiled.
 */
export async function compileOnce(program = ownProgram): Promise<void> {
  const edge = join(dirname(dirname(realpathSync(program))), 'src', 'app', 'edge.ts')
  const dir = await mkdtemp(join(tmpdir(), 'ake-compile-'))
  // It lives, since what is only loaded has compiled little, and has no thread of its own yet.
  const life = await startAke({ program, dir, nodeOptions: `--import ${edge}` })
  await life.stop()
  await rm(dir, { recursive: true, force: true })
}

/** Writers at once while filling: enough for group commit to matter. */
const writers = 64

type Options = {
  /** The command and what it is given besides its folder and address. */
  readonly command?: readonly [string, ...string[]]
  readonly dir: string
  /** Options of the Node that runs it, for profiles. */
  readonly nodeOptions?: string
  /** The launcher, if not this checkout's. */
  readonly program?: string
}

/** Resolves when it has said that it is ready; what it says otherwise goes to our standard error. */
export async function startAke({
  command = ['serve'],
  dir,
  nodeOptions = '',
  program = ownProgram,
}: Options): Promise<Target> {
  const env = { ...process.env, AKE_NODE_OPTIONS: nodeOptions }
  const args = [...command, '--listen', '127.0.0.1:0', '--data', dir]
  const startedAt = performance.now()
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  const exit = once(child, 'exit')
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const stop = async () => {
    process.removeListener('exit', endWithUs)
    child.kill('SIGTERM')
    await exit
  }
  const url = await Promise.race([
    readyUrl(createInterface(child.stdout)),
    exit.then(([code]) => {
      throw new Error(`ake ${command[0]} ended with ${code} before it was ready`)
    }),
  ])
  const restart = async () => {
    await stop()
    return startAke({ command, dir, nodeOptions, program })
  }
  const tls = await readCredentials(join(dir, 'admin.kubeconfig'))
  return { name: 'ake', url, tls, pid: child.pid!, startedAt, restart, stop }
}

function readyUrl(lines: ReturnType<typeof createInterface>): Promise<string> {
  return new Promise((resolve) => {
    lines.on('line', (line) => {
      const url = /^ready (https:\S+)/.exec(line)?.[1]
      if (url !== undefined) resolve(url)
    })
  })
}

async function readCredentials(path: string): Promise<Credentials> {
  const text = await readFile(path, 'utf8')
  const field = (name: string) => {
    const found = new RegExp(`${name}["']?:\\s*["']?([A-Za-z0-9+/=]+)`).exec(text)?.[1]
    if (found === undefined) throw new Error(`${path} has no ${name}`)
    return Buffer.from(found, 'base64').toString()
  }
  return {
    ca: field('certificate-authority-data'),
    cert: field('client-certificate-data'),
    key: field('client-key-data'),
  }
}

/** Creates namespaces and pods; a pod's status is written in a second step, as a kubelet does, since creation drops it. */
export async function fillByWriting(at: Address, pods: readonly Pod[]): Promise<void> {
  const account = JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } })
  const namespaces = makeNamespaces()
  const post = (path: string, body: string): Ask => ({ method: 'POST', path, body })
  const within = (namespace: string, rest: string) => `/api/v1/namespaces/${namespace}/${rest}`
  await sendAll(
    at,
    namespaces.map((one) => post('/api/v1/namespaces', JSON.stringify(one))),
    writers,
  )
  await sendAll(
    at,
    namespaces.map((_, index) => post(within(namespaceName(index), 'serviceaccounts'), account)),
    writers,
  )
  await sendAll(
    at,
    pods.map(({ namespace, object }) => post(within(namespace, 'pods'), JSON.stringify(object))),
    writers,
  )
  await sendAll(
    at,
    pods.map(({ namespace, name, object }) => ({
      method: 'PUT',
      path: within(namespace, `pods/${name}/status`),
      body: JSON.stringify(object),
    })),
    writers,
  )
  // Nobody owns their fields from now on: the pods of the others have no managed fields either.
  await sendAll(
    at,
    pods.map(({ namespace, name, object }) => ({
      method: 'PUT',
      path: within(namespace, `pods/${name}`),
      body: JSON.stringify({ ...object, metadata: { ...object.metadata, managedFields: [{}] } }),
    })),
    writers,
  )
}
