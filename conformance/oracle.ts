/**
 * A real, bare kube-apiserver on loopback, the judge of what an answer should be: etcd and kube-apiserver, and controllers
 * only where asked, because they change objects between two looks. It can be killed, started again, compacted and set
 * back to an earlier state. `node conformance/oracle.ts DIR` runs one until it is ended.
 */

import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Binary, buildKubernetes } from './build.ts'
import { apiserverArguments, controllersArguments, etcdArguments, type Places } from './controlplane.ts'
import { compactEtcd, getEtcd, putEtcd, restoreEtcd } from './etcd.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import { type ClientName, makeClient, makePki } from './pki.ts'
import { freePorts } from './ports.ts'
import { Program } from './program.ts'

/** Cold, on two busy cores, it has needed 30 s. */
const readyWithinMs = 120_000
const askAgainMs = 200
const systemKey = '/registry/namespaces/kube-system'

export type Part = 'etcd' | 'apiserver' | 'controllers'

/** Somebody the API server knows by a client certificate. */
export type Credential = {
  /** The path of a kubeconfig with this certificate for the API server itself. */
  readonly kubeconfig: string
  /** PEM, not paths. */
  readonly ca: string
  readonly cert: string
  readonly key: string
  /** Their paths. */
  readonly certFile: string
  readonly keyFile: string
}

export type Oracle = {
  readonly dir: string
  readonly url: string
  readonly port: number
  /** The path of a kubeconfig whose user is in system:masters. */
  readonly kubeconfig: string
  /** PEM, not paths. */
  readonly ca: string
  readonly cert: string
  readonly key: string
  /** Of the serving processes as they are now, for measuring what they use. */
  readonly pids: { readonly etcd: number; readonly apiserver: number }
  /** By SIGKILL; what is killed (everything unless told) stays away until `restart`. */
  kill(only?: readonly Part[]): Promise<void>
  /** Ends what runs of these parts and starts them on the same files, keys and ports; resolves when it is ready. */
  restart(options?: { readonly only?: readonly Part[]; readonly how?: 'kill' | 'orderly' }): Promise<void>
  /**
   * Etcd forgets all history before the revision returned. Watches and lists do not notice at once: kube-apiserver resumes
   * watches from its watch cache, and serves exact versions and continue tokens from the cache's snapshots, which follow
   * the compaction within 15 s.
   */
  compact(): Promise<number>
  /**
   * Compacts and starts kube-apiserver again: its new watch cache begins at the revision returned, so each version from
   * before gets 410, in a resumed watch (as an ERROR event), an exact list and a continue token. A restart alone does the
   * same to watches that are not at the newest revision of the whole etcd.
   */
  expire(): Promise<number>
  /** Writes into etcd behind its back: an object that it would never accept can be read from it all the same. */
  plant(key: string, value: Buffer): Promise<void>
  /** As another cluster: its kube-system gets this uid, behind its back. Answers the one it had. */
  reidentify(uid: string): Promise<string>
  /** A copy of the whole state, for `restore`; everything is away for some seconds. */
  snapshot(): Promise<string>
  /** Back to the state of a copy: at its revisions, or so far above them (`bump`), with all history compacted. */
  restore(copy: string, options?: { readonly bump?: number }): Promise<void>
  /** As a kubelet: system:node:NAME in system:nodes. */
  nodeCredential(name: string): Promise<Credential>
  userCredential(name: string, groups?: readonly string[], days?: number): Promise<Credential>
  /** A token of a service account, by TokenRequest. */
  tokenFor(namespace: string, account: string, spec?: TokenSpec): Promise<string>
  stop(): void
}

type TokenSpec = {
  readonly audiences?: readonly string[]
  readonly expirationSeconds?: number
  readonly boundObjectRef?: object
}

export type OracleOptions = {
  /** Keys, logs, kubeconfig and etcd's files go there; what an earlier run stored is removed. */
  readonly dir: string
  readonly extraArgs?: readonly string[]
  /** Also runs kube-controller-manager, with these further arguments if it is a list. */
  readonly controllers?: boolean | readonly string[]
  readonly signal?: AbortSignal
  readonly progress?: (line: string) => void
}

export async function startOracle(options: OracleOptions): Promise<Oracle> {
  const dir = resolve(options.dir)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await rm(join(dir, 'etcd'), { recursive: true, force: true })
  await makePki(dir)
  const [port, store, peer] = (await freePorts(3)) as [number, number, number]
  const places: Places = { dir, port, store, peer }
  const url = `https://127.0.0.1:${port}`
  const [ca, cert, key] = await pems(dir, ['ca.crt', 'admin.crt', 'admin.key'])
  const admin = { url, ca: ca!, cert: cert!, key: key! }
  const kubeconfig = join(dir, 'admin.kubeconfig')
  await writeKubeconfig(kubeconfig, admin)
  await writeFile(join(dir, 'url'), `${url}\n`)
  const parts = await prepare(options, places)
  const stop = () => {
    for (const part of parts.values()) part.stop()
    process.removeListener('exit', stop)
    options.signal?.removeEventListener('abort', stop)
  }
  process.once('exit', stop)
  options.signal?.addEventListener('abort', stop, { once: true })
  const restart: Oracle['restart'] = async ({ only = [...parts.keys()], how = 'kill' } = {}) => {
    options.signal?.throwIfAborted()
    const chosen = [...parts].filter(([name, part]) => only.includes(name) || part.pid === 0)
    await Promise.all(chosen.map(([, part]) => part.end(how)))
    for (const [, part] of chosen) part.start()
    await untilReady(admin, [...parts.values()], dir)
  }
  const kill: Oracle['kill'] = async (only = [...parts.keys()]) => {
    await Promise.all([...parts].filter(([name]) => only.includes(name)).map(([, part]) => part.end()))
  }
  try {
    await restart()
  } catch (error) {
    stop()
    throw error
  }
  let copies = 0
  return {
    ...admin,
    dir,
    port,
    kubeconfig,
    get pids() {
      return { etcd: parts.get('etcd')!.pid, apiserver: parts.get('apiserver')!.pid }
    },
    kill,
    restart,
    compact: () => compactEtcd(store),
    plant: (key, value) => putEtcd(store, key, value),
    reidentify: async (uid) => {
      const body = JSON.parse((await ask(admin, '/api/v1/namespaces/kube-system')).body) as {
        metadata: { uid: string }
      }
      const before = body.metadata.uid
      // Of the same length, so that what is stored in protobuf stays readable.
      const stored = (await getEtcd(store, systemKey)).toString('latin1').replace(before, uid)
      await putEtcd(store, systemKey, Buffer.from(stored, 'latin1'))
      return before
    },
    expire: async () => {
      const revision = await compactEtcd(store)
      await restart({ only: ['apiserver'] })
      return revision
    },
    snapshot: async () => {
      await kill(['apiserver', 'controllers'])
      // In order: only then its database file has what its log has.
      await parts.get('etcd')!.end('orderly')
      const copy = join(dir, `copy-${++copies}`)
      await cp(join(dir, 'etcd'), copy, { recursive: true })
      await restart()
      return copy
    },
    restore: async (copy, { bump = 0 } = {}) => {
      await kill()
      await restoreEtcd(places, copy, bump)
      await restart()
    },
    nodeCredential: (name) => credential(admin, dir, { user: `system:node:${name}`, groups: ['system:nodes'] }),
    userCredential: (user, groups = [], days) =>
      credential(admin, dir, { user, groups, ...(days === undefined ? {} : { days }) }),
    tokenFor: (namespace, account, spec = {}) => requestToken(admin, `${namespace}/serviceaccounts/${account}`, spec),
    stop,
  }
}

type Admin = Pick<Oracle, 'url' | 'ca' | 'cert' | 'key'>

async function prepare(options: OracleOptions, places: Places): Promise<ReadonlyMap<Part, Program>> {
  const { extraArgs = [], controllers = false, progress = () => {} } = options
  const only: Binary[] = ['kube-apiserver', 'kubectl', 'etcd']
  if (controllers !== false) only.push('kube-controller-manager')
  const { bin } = await buildKubernetes({ only, progress })
  const program = (name: string, args: readonly string[]) =>
    new Program({ program: join(bin, name), args, log: join(places.dir, `${name}.log`) })
  const parts = new Map<Part, Program>([
    ['etcd', program('etcd', etcdArguments(places))],
    ['apiserver', program('kube-apiserver', [...apiserverArguments(places), ...extraArgs])],
  ])
  if (controllers !== false) {
    const more = controllers === true ? [] : controllers
    parts.set('controllers', program('kube-controller-manager', [...controllersArguments(places), ...more]))
  }
  return parts
}

function pems(dir: string, files: readonly string[]): Promise<string[]> {
  return Promise.all(files.map((file) => readFile(join(dir, file), 'utf8')))
}

type Named = Omit<ClientName, 'file'>

async function credential({ url, ca }: Admin, dir: string, named: Named): Promise<Credential> {
  const { user, groups } = named
  const file = `client-${[user, ...groups].join('-').replace(/[^a-zA-Z0-9.-]/g, '_')}`
  await makeClient(dir, { ...named, file })
  const [cert, key] = (await pems(dir, [`${file}.crt`, `${file}.key`])) as [string, string]
  const path = join(dir, `${file}.kubeconfig`)
  await writeKubeconfig(path, { url, ca, cert, key })
  const files = { certFile: join(dir, `${file}.crt`), keyFile: join(dir, `${file}.key`) }
  return { kubeconfig: path, ca, cert, key, ...files }
}

async function requestToken(admin: Admin, account: string, spec: TokenSpec): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  const answer = await ask(admin, `/api/v1/namespaces/${account}/token`, { method: 'POST', body })
  if (answer.status !== 201) throw new Error(`no token for ${account}: ${answer.status} ${answer.body}`)
  return (JSON.parse(answer.body) as { status: { token: string } }).status.token
}

type Ask = { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: unknown }
type Answer = { readonly status: number; readonly body: string }

/** One request as the administrator; a body that is no string is sent as JSON. */
export function ask(oracle: Admin, path: string, asked: Ask = {}): Promise<Answer> {
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
async function untilReady(oracle: Admin, parts: readonly Program[], dir: string): Promise<void> {
  const give = performance.now() + readyWithinMs
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
  const create = { method: 'POST', body: account }
  for (;;) {
    if (parts.some((part) => part.ended)) {
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
