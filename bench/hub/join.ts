/**
 * What does it cost to join? Machines at once by `ake join` through a hub, beside what a kubelet does by itself with a bootstrap kubeconfig: a request for
 * a certificate at the API server, a list and a watch of it. The same control plane approves and signs both, and its audit log is what counts requests.
 */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { JoiningWorld } from '../../conformance/fleet/world.ts'
import { joinEdge } from '../../src/app/join.ts'
import { signingRequestOf, signingRequests, signingStateOf } from '../../src/kube/certificatesigning.ts'
import { signingRequest } from '../../src/pki/signingrequest.ts'
import { isBuilt } from '../apiserver.ts'
import type { Figure, Question } from '../bench.ts'

/** Few enough that the hub's limit for one address, from which all of them come here, is not what is measured. */
const machines = 10
const rounds = 3
/** Until the hub lets one address ask as much again at once. */
const refilledMs = 5_000
/** For the audit log to be written. */
const auditMs = 1_000

type Way = (world: JoiningWorld, name: string, words: readonly string[]) => Promise<void>

async function ask(): Promise<Figure[]> {
  if (!(await isBuilt('kube-apiserver', 'etcd', 'kube-controller-manager'))) return []
  const dir = await mkdtemp(join(tmpdir(), 'ake-bench-join-'))
  const ending = new AbortController()
  const world = await JoiningWorld.open({ dir, signal: ending.signal, progress: () => undefined })
  try {
    const [ake, plain] = [new Tally(), new Tally()]
    // Its controllers begin to sign some seconds after the API server is there.
    await new Tally().add(world, 'first', throughHub)
    for (let round = 0; round < rounds; round++) {
      await pause(refilledMs)
      await ake.add(world, `ake-${round}`, throughHub)
      await plain.add(world, `plain-${round}`, asKubelet)
    }
    const both = (of: (tally: Tally) => number) => ({ ake: of(ake), 'plain bootstrap': of(plain) })
    return [
      {
        ...{
          name: `joins, ${machines} machines at once from one address`,
          unit: 'a minute',
          versus: 'plain bootstrap',
        },
        measured: both(({ seconds }) => (machines * rounds * 60) / seconds),
      },
      {
        ...{ name: 'requests to the API server for a join', unit: 'requests', versus: 'plain bootstrap' },
        measured: both(({ requests }) => requests / (machines * rounds)),
      },
    ]
  } finally {
    await world.stop()
    ending.abort()
    await rm(dir, { recursive: true, force: true })
  }
}

class Tally {
  seconds = 0
  requests = 0

  async add(world: JoiningWorld, prefix: string, way: Way): Promise<void> {
    const words = await world.token()
    await pause(auditMs)
    const before = await counted(world)
    const startedMs = performance.now()
    await Promise.all(Array.from({ length: machines }, (_, at) => way(world, `${prefix}-${at}`, words)))
    this.seconds += (performance.now() - startedMs) / 1_000
    await pause(auditMs)
    this.requests += (await counted(world)) - before
  }
}

async function counted(world: JoiningWorld): Promise<number> {
  return (await readFile(world.audit, 'utf8')).split('\n').length
}

const wordOf = (words: readonly string[], flag: string) => words[words.indexOf(flag) + 1] ?? ''

const throughHub: Way = async (world, name, words) => {
  const nothing = (async function* () {})()
  const config = {
    ...{ hub: [world.url], token: { token: wordOf(words, '--token') }, caHash: [wordOf(words, '--ca-hash')], name },
    ...{ data: world.folder(name), kubeletKubeconfig: undefined, edgeConfig: undefined, replace: false, dryRun: false },
    ...{ listen: [{ host: '127.0.0.1', port: 10005 }], wait: 60_000 },
  }
  await joinEdge(config, { told: () => undefined, stdin: nothing })
}

const asKubelet: Way = async (world, node, words) => {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  const subject = { commonName: `system:node:${node}`, organization: 'system:nodes' }
  const name = `node-csr-${node}`
  const pem = signingRequest({ subject, hosts: [] }, createPrivateKey(key))
  const token = wordOf(words, '--token')
  const made = signingRequestOf({ name, request: pem, use: 'client' })
  await answers(world, { token, path: signingRequests, body: JSON.stringify(made) }, () => true)
  const selected = `${signingRequests}?fieldSelector=metadata.name%3D${name}`
  let version = ''
  await answers(world, { token, path: selected }, (line) => {
    version = (JSON.parse(line) as { metadata: { resourceVersion: string } }).metadata.resourceVersion
    return true
  })
  // What was signed before the list is told by no event: asked from the beginning, as an informer that holds the listed object would know it.
  await answers(world, { token, path: `${selected}&watch=1&resourceVersion=0&timeoutSeconds=60` }, (line) => {
    const { object } = JSON.parse(line) as { object: object }
    return signingStateOf(object).state === 'issued'
  })
  if (version === '') throw new Error('the list has no version')
}

type Asked = { readonly token: string; readonly path: string; readonly body?: string }

/** Reads lines of the answer until one is enough. */
function answers(
  { oracle }: JoiningWorld,
  { token, path, body }: Asked,
  isEnough: (line: string) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' }
    const method = body === undefined ? 'GET' : 'POST'
    const asking = request(new URL(path, oracle.url), { method, headers, ca: oracle.ca, agent: false }, (answer) => {
      if ((answer.statusCode ?? 500) >= 300) reject(new Error(`${method} ${path}: ${answer.statusCode}`))
      let text = ''
      const look = (lines: readonly string[]) => {
        if (!lines.some((line) => line !== '' && isEnough(line))) return
        answer.destroy()
        resolve()
      }
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
        const lines = text.split('\n')
        text = lines.pop() ?? ''
        look(lines)
      })
      answer.on('end', () => {
        look([text])
        reject(new Error(`${method} ${path} ended without it`))
      })
    })
    asking.on('error', reject)
    asking.end(body)
  })
}

export const hubjoin: Question = { name: 'hubjoin', ask }
