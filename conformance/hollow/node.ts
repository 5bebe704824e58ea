/**
 * kubemark's hollow kubelet and hollow kube-proxy as processes: the real code of both over a container runtime and a proxier
 * that do nothing. Neither finds an iptables on its path, so the machine they run on stays as it is.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from '../build.ts'
import { freePorts } from '../ports.ts'
import { Program } from '../program.ts'

export type Hollow = {
  /** Starts it, after an end as a new process that remembers nothing. */
  start(): void
  /** By SIGKILL, as a power cut would. */
  end(): Promise<void>
  /** Whether it has ended by itself. */
  readonly ended: boolean
  /** What it has logged since its last start. */
  said(): Promise<string>
  /** A kubelet's own view of its pods. */
  pods(): Promise<readonly HollowPod[]>
}

export type HollowPod = {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string }
  readonly status: { readonly phase: string; readonly containerStatuses?: readonly HollowContainer[] }
}

type HollowContainer = {
  readonly restartCount: number
  readonly state?: { readonly running?: { readonly startedAt: string } }
}

type Options = {
  readonly dir: string
  readonly morph: 'kubelet' | 'proxy'
  readonly node: string
  readonly kubeconfig: string
}

export async function prepareHollow({ dir, morph, node, kubeconfig }: Options): Promise<Hollow> {
  const { bin } = await buildKubernetes({ only: ['kubemark'], progress: () => {} })
  const [port, readOnlyPort] = (await freePorts(2)) as [number, number]
  const temporary = join(dir, morph)
  await mkdir(temporary, { recursive: true })
  const log = join(dir, `${morph}.log`)
  const args = [
    ...['-i', 'PATH=/nonexistent', `TMPDIR=${temporary}`, 'HOME=/nonexistent', join(bin, 'kubemark')],
    ...[`--morph=${morph}`, `--name=${node}`, `--kubeconfig=${kubeconfig}`, '--v=4'],
    ...(morph === 'kubelet'
      ? [`--kubelet-port=${port}`, `--kubelet-read-only-port=${readOnlyPort}`, '--use-host-image-service=false']
      : []),
  ]
  const program = new Program({ program: '/usr/bin/env', args, log })
  let begun = 0
  let running = false
  const all = () => readFile(log, 'utf8').catch(() => '')
  return {
    start: () => {
      running = true
      program.start()
    },
    end: async () => {
      await program.end()
      running = false
      begun = (await all()).length
    },
    get ended() {
      return running && program.ended
    },
    said: async () => (await all()).slice(begun),
    pods: async () => {
      const answer = await fetch(`http://127.0.0.1:${readOnlyPort}/pods`).catch(() => undefined)
      return answer?.ok ? (((await answer.json()) as { items: HollowPod[] | null }).items ?? []) : []
    },
  }
}
