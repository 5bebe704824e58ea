/**
 * The real kube-apiserver as a target. It is filled through etcd, not through its API: that takes seconds instead of
 * minutes, and its objects then are ours byte for byte, without the managed fields it would add (they would make its
 * answers half as big again, and the comparison unfair).
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Binary, kubernetesVersion } from '../conformance/build.ts'
import { ask, startOracle } from '../conformance/oracle.ts'
import { chanceOf } from '../src/base/seeded.test-support.ts'
import type { Target } from './bench.ts'
import { makeNamespaces, namespaceName, type Pod, uuid } from './fixture.ts'
import { argumentsOf } from './process.ts'

/** Puts in one round to etcd, which takes no more of them in one. */
const putsAtOnce = 128

/** How long its watch cache may take to show everything that etcd holds. */
const visibleWithinMs = 180_000
const askAgainMs = 100

/** Undefined if it was never built here: building takes minutes, which a benchmark should not hide in its run. */
export async function startApiServer(dir: string, pods: readonly Pod[]): Promise<Target | undefined> {
  if (!(await isBuilt('kube-apiserver', 'etcd'))) return undefined
  const startedAt = performance.now()
  const oracle = await startOracle({ dir })
  const tls = { ca: oracle.ca, cert: oracle.cert, key: oracle.key }
  const command = argumentsOf(oracle.pids.apiserver)
  const started: ChildProcess[] = []
  const stop = async () => {
    for (const child of started) child.kill('SIGKILL')
    oracle.stop()
  }
  const { url, pids } = oracle
  const target: Target = { name: 'kube-apiserver', url, tls, pid: pids.apiserver, startedAt, stop }
  await fillEtcd(storeUrl(pids.etcd), pods)
  await untilVisible(target, pods.length)
  const restart = async (): Promise<Target> => {
    await kill(started.at(-1)?.pid ?? pids.apiserver)
    const log = openSync(join(dir, 'restarted.log'), 'w')
    const againAt = performance.now()
    const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', log, log] })
    started.push(child)
    process.once('exit', () => child.kill('SIGKILL'))
    await untilReady(target, child)
    return { ...target, pid: child.pid!, startedAt: againAt, restart }
  }
  return { ...target, restart }
}

/** Whether `npm run conformance` has built them here. */
export async function isBuilt(...binaries: readonly Binary[]): Promise<boolean> {
  const folder = join(process.env.AKE_CACHE || join(homedir(), '.cache', 'ake'), `kubernetes-${kubernetesVersion}`)
  const found = await Promise.allSettled(binaries.map((name) => access(join(folder, name))))
  return found.every(({ status }) => status === 'fulfilled')
}

async function untilReady(target: Target, child: ChildProcess): Promise<void> {
  while ((await ask({ ...target.tls, url: target.url }, '/readyz').catch(() => undefined))?.status !== 200) {
    if (child.exitCode !== null) throw new Error(`kube-apiserver ended with ${child.exitCode} when started again`)
    await pause(askAgainMs / 10)
  }
}

/** Its port is free only when it is gone, which takes a moment for a process of that size. */
async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL')
  for (;;) {
    try {
      process.kill(pid, 0)
    } catch {
      return
    }
    await pause(1)
  }
}

/** Where the etcd of this process is asked. */
export function storeUrl(etcd: number): string {
  const option = '--listen-client-urls='
  const found = argumentsOf(etcd).find((argument) => argument.startsWith(option))
  if (found === undefined) throw new Error(`etcd was started without ${option}`)
  return found.slice(option.length)
}

/** What is stored besides pods: its key below /registry/, and the object. */
export type StoredRow = readonly [key: string, object: { readonly metadata: object }]

export async function fillEtcd(url: string, pods: readonly Pod[], others: readonly StoredRow[] = []): Promise<void> {
  const random = chanceOf(2)
  const creationTimestamp = '2026-11-01T00:00:00Z'
  const born = <T extends { metadata: object }>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, uid: uuid(random), creationTimestamp },
  })
  const namespaces = makeNamespaces().map((object, index): [string, object] => [
    `namespaces/${namespaceName(index)}`,
    born(object as { metadata: object }),
  ])
  const rows = [
    ...namespaces,
    ...pods.map((pod): [string, object] => [`pods/${pod.namespace}/${pod.name}`, born(pod.object)]),
    ...others.map(([key, object]): [string, object] => [key, born(object)]),
  ]
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  for (let from = 0; from < rows.length; from += putsAtOnce) {
    const puts = rows.slice(from, from + putsAtOnce).map(([key, object]) => ({
      requestPut: { key: base64(`/registry/${key}`), value: base64(JSON.stringify(object)) },
    }))
    const answer = await fetch(`${url}/v3/kv/txn`, { method: 'POST', body: JSON.stringify({ success: puts }) })
    if (!answer.ok) throw new Error(`etcd: ${answer.status} ${await answer.text()}`)
  }
}

/** Its watch cache shows as many pods. */
export async function untilVisible(target: Pick<Target, 'url' | 'tls'>, count: number): Promise<void> {
  const give = performance.now() + visibleWithinMs
  for (;;) {
    const { status, body } = await ask({ ...target.tls, url: target.url }, '/api/v1/pods?limit=1')
    const list = JSON.parse(body) as { metadata?: { remainingItemCount?: number } }
    if (status === 200 && list.metadata?.remainingItemCount === count - 1) return
    if (performance.now() > give)
      throw new Error(`kube-apiserver does not show the ${count} pods: ${body.slice(0, 300)}`)
    await pause(askAgainMs)
  }
}
