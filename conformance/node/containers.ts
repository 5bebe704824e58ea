/** What really runs, asked at containerd itself: the kubelet and the API server only tell what they believe. */
import { runtimeSocket } from './configured.ts'
import type { Machine } from './machine.ts'

export type Container = {
  readonly id: string
  readonly pod: string
  readonly uid: string
  /** As the machine counts processes. */
  readonly pid: number
}

export function ctr(machine: Machine, ...args: readonly string[]): Promise<string> {
  return machine.run('ctr', ['--address', runtimeSocket, '--namespace', 'k8s.io', ...args])
}

/** The running containers of pods, without their sandboxes. */
export class Containers {
  readonly #machine: Machine
  /** Labels do not change, and a listing has none. */
  readonly #labels = new Map<string, Record<string, string>>()

  constructor(machine: Machine) {
    this.#machine = machine
  }

  async running(): Promise<Container[]> {
    const found: Container[] = []
    for (const line of (await ctr(this.#machine, 'tasks', 'list')).split('\n')) {
      const [id, pid, status] = line.split(/\s+/)
      if (id === undefined || status !== 'RUNNING') continue
      const labels = await this.#labelsOf(id)
      const pod = labels['io.kubernetes.pod.name']
      const uid = labels['io.kubernetes.pod.uid']
      if (labels['io.cri-containerd.kind'] !== 'container' || pod === undefined || uid === undefined) continue
      found.push({ id, pod, uid, pid: Number(pid) })
    }
    return found.sort((a, b) => a.pod.localeCompare(b.pod))
  }

  /** The address that a container really has. */
  async addressOf({ pid }: Container): Promise<string> {
    const args = ['--target', String(pid), '--net', '--', 'ip', '-4', '-o', 'address', 'show', 'dev', 'eth0']
    const shown = await this.#machine.run('nsenter', args)
    return /inet ([0-9.]+)/.exec(shown)?.[1] ?? 'none'
  }

  async #labelsOf(id: string): Promise<Record<string, string>> {
    const known = this.#labels.get(id)
    if (known !== undefined) return known
    const text = await ctr(this.#machine, 'containers', 'info', id).catch(() => '{}')
    const labels = (JSON.parse(text) as { Labels?: Record<string, string> }).Labels ?? {}
    if (Object.keys(labels).length > 0) this.#labels.set(id, labels)
    return labels
  }
}
