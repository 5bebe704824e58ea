/** The stand-in of cloud.ts, started as a process: where an edge under measurement gets its objects and events from. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import { freePorts } from '../../conformance/ports.ts'
import type { Address } from '../bench.ts'

/** Events to send: changes of pods in turn, of all or of one node's. */
export type CloudOrder = { readonly count: number; readonly perSecond: number; readonly node?: string }

export type CloudReply = { readonly version: number; readonly watches: number; readonly tookMs: number }

export type CloudUpstream = Address & {
  readonly port: number
  /** The path of the kubeconfig for an edge. */
  readonly kubeconfig: string
  /** Resolves when the last is sent. */
  send(order: CloudOrder): Promise<CloudReply>
  stop(): Promise<void>
}

type Ready = { readonly port: number; readonly ca: string; readonly cert: string; readonly key: string }

export async function startCloud({ dir, pods }: { dir: string; pods: number }): Promise<CloudUpstream> {
  const folder = join(dir, 'cloud')
  // Not one the system picks: the line to it must find it again.
  const [own] = await freePorts(1)
  const child = fork(join(import.meta.dirname, 'cloud.ts'), [folder, String(own), String(pods)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Without limits on numbers that JSON cannot carry: a burst is sent at an infinite rate.
    serialization: 'advanced',
  })
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const { port, ...tls } = await message<Ready>(child, 'ready')
  const url = `https://127.0.0.1:${port}`
  const kubeconfig = join(dir, 'cloud.kubeconfig')
  await writeKubeconfig(kubeconfig, { url, ...tls })
  return {
    url,
    tls,
    port,
    kubeconfig,
    send: (order) => {
      const reply = message<CloudReply>(child, 'reply')
      child.send(order)
      return reply
    },
    stop: async () => {
      process.removeListener('exit', endWithUs)
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      endWithUs()
      await exit
    },
  }
}

async function message<T>(child: ChildProcess, name: string): Promise<T> {
  const ended = once(child, 'exit').then(() => {
    throw new Error('the stand-in of the API server ended')
  })
  ended.catch(() => {})
  const [found] = (await Promise.race([once(child, 'message'), ended])) as [Record<string, T>]
  return found[name]!
}
