/**
 * A real, bare kube-apiserver on loopback, the judge of what an answer should be: etcd and kube-apiserver alone, no
 * controllers that would change objects between two looks. `node conformance/oracle.ts DIR` runs one until it is ended.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { buildKubernetes } from './build.ts'
import { makePki } from './pki.ts'

/** Cold, on two busy cores, it has needed 30 s. */
const readyWithinMs = 120_000
const askAgainMs = 200

export type Oracle = {
  readonly url: string
  readonly port: number
  /** The path of a kubeconfig whose user is in system:masters. */
  readonly kubeconfig: string
  /** PEM, not paths. */
  readonly ca: string
  readonly cert: string
  readonly key: string
  /** Of the serving processes, for measuring what they use. */
  readonly pids: { readonly etcd: number; readonly apiserver: number }
  stop(): void
}

type Options = {
  /** Keys, logs, kubeconfig and etcd's files go there; what an earlier run stored is removed. */
  readonly dir: string
  readonly extraArgs?: readonly string[]
  readonly signal?: AbortSignal
  readonly progress?: (line: string) => void
}

export async function startOracle(options: Options): Promise<Oracle> {
  const { extraArgs = [], signal, progress = () => {} } = options
  const { bin } = await buildKubernetes({ progress })
  const dir = resolve(options.dir)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await rm(join(dir, 'etcd'), { recursive: true, force: true })
  await makePki(dir)
  const [port, store, peer] = await freePorts(3)
  const run = (name: string, args: readonly string[]) => start({ program: join(bin, name), args, dir, name })
  const etcd = run('etcd', etcdArguments({ dir, store: store!, peer: peer! }))
  const apiserver = run('kube-apiserver', [...apiserverArguments({ dir, port: port!, store: store! }), ...extraArgs])
  const stop = endTogether([apiserver, etcd], signal)
  const [ca, cert, key] = await Promise.all(
    ['ca.crt', 'admin.crt', 'admin.key'].map((file) => readFile(join(dir, file), 'utf8')),
  )
  const oracle: Oracle = {
    url: `https://127.0.0.1:${port}`,
    port: port!,
    kubeconfig: join(dir, 'admin.kubeconfig'),
    ca: ca!,
    cert: cert!,
    key: key!,
    pids: { etcd: etcd.pid!, apiserver: apiserver.pid! },
    stop,
  }
  try {
    await writeFile(oracle.kubeconfig, kubeconfig(oracle), { mode: 0o600 })
    await writeFile(join(dir, 'url'), `${oracle.url}\n`)
    await untilReady(oracle, [apiserver, etcd], dir)
  } catch (error) {
    stop()
    throw error
  }
  return oracle
}

type Ask = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: unknown }
type Answer = { readonly status: number; readonly body: string }

/** One request as the administrator; a body that is no string is sent as JSON. */
export function ask(
  oracle: Pick<Oracle, 'url' | 'ca' | 'cert' | 'key'>,
  path: string,
  asked: Ask = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = asked
  const { ca, cert, key } = oracle
  return new Promise((done, fail) => {
    const sent = request(new URL(path, oracle.url), { method, headers, ca, cert, key }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => done({ status: answer.statusCode ?? 0, body: text }))
      answer.on('error', fail)
    })
    sent.on('error', fail)
    if (body !== undefined && !sent.hasHeader('content-type')) sent.setHeader('content-type', 'application/json')
    sent.end(typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Ready means: readyz is ok, and the `default` ServiceAccount exists, which no controller makes and every pod needs. */
async function untilReady(oracle: Oracle, children: readonly ChildProcess[], dir: string): Promise<void> {
  const give = performance.now() + readyWithinMs
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
  const create = { method: 'POST', body: account }
  for (;;) {
    if (children.some((child) => child.exitCode !== null || child.signalCode !== null)) {
      throw new Error(`the real kube-apiserver or its etcd ended: see the logs in ${dir}`)
    }
    const ready = await ask(oracle, '/readyz').catch(() => undefined)
    if (ready?.status === 200) {
      const made = await ask(oracle, '/api/v1/namespaces/default/serviceaccounts', create)
      if (made.status === 201 || made.status === 409) return
    }
    if (performance.now() > give) {
      throw new Error(`the real kube-apiserver was not ready after ${readyWithinMs / 1000} s: see the logs in ${dir}`)
    }
    await pause(askAgainMs)
  }
}

type Program = {
  readonly program: string
  readonly args: readonly string[]
  readonly dir: string
  readonly name: string
}

function start({ program, args, dir, name }: Program): ChildProcess {
  const log = openSync(join(dir, `${name}.log`), 'w')
  // A group of its own: Ctrl-C is ours to handle, and an orderly end of kube-apiserver takes up to a minute.
  return spawn(program, args, { stdio: ['ignore', log, log], detached: true })
}

/** Ends the children on stop, on abort, and by a guard that outlives us if we are killed ourselves. */
function endTogether(children: readonly ChildProcess[], signal: AbortSignal | undefined): () => void {
  const pids = children.map((child) => String(child.pid))
  const guard = spawn('sh', ['-c', 'cat >/dev/null; kill -9 "$@" 2>/dev/null', 'guard', ...pids], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  const stop = () => {
    guard.kill('SIGKILL')
    for (const child of children) child.kill('SIGKILL')
    process.removeListener('exit', stop)
    signal?.removeEventListener('abort', stop)
  }
  process.once('exit', stop)
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  return stop
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}

function etcdArguments({ dir, store, peer }: { dir: string; store: number; peer: number }): string[] {
  const here = `http://127.0.0.1:${peer}`
  const client = `http://127.0.0.1:${store}`
  return [
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${here}`,
    `--initial-advertise-peer-urls=${here}`,
    `--initial-cluster=default=${here}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ]
}

function apiserverArguments({ dir, port, store }: { dir: string; port: number; store: number }): string[] {
  const file = (name: string) => join(dir, name)
  return [
    `--etcd-servers=http://127.0.0.1:${store}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    // It refuses to advertise loopback; so it advertises an address of the documentation range and reconciles nothing.
    '--advertise-address=192.0.2.1',
    '--endpoint-reconciler-type=none',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth',
    `--client-ca-file=${file('ca.crt')}`,
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('accounts.key')}`,
    `--service-account-signing-key-file=${file('accounts.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
    `--kubelet-client-key=${file('kubelet-client.key')}`,
  ]
}

function kubeconfig({ url, ca, cert, key }: Pick<Oracle, 'url' | 'ca' | 'cert' | 'key'>): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const cluster = { server: url, 'certificate-authority-data': base64(ca) }
  const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'oracle', cluster }],
    users: [{ name: 'admin', user }],
    contexts: [{ name: 'oracle', context: { cluster: 'oracle', user: 'admin' } }],
    'current-context': 'oracle',
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

if (import.meta.main) {
  const dir = process.argv[2]
  if (dir === undefined) {
    console.error('usage: node conformance/oracle.ts DIR')
    process.exit(2)
  }
  const oracle = await startOracle({ dir, progress: console.error })
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(0))
  console.log(`ready ${oracle.url} KUBECONFIG=${oracle.kubeconfig}`)
}
