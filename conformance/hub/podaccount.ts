/**
 * What a kubelet mounts into the pod of a hub, and the hub as the process of that pod: no kubeconfig, the address in its environment, token and
 * authority where client-go looks for them. No container: the mount is in a namespace of the process alone, which takes root.
 */
import { execFile } from 'node:child_process'
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ask, type Oracle } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'

const ake = join(import.meta.dirname, '..', '..', 'bin', 'ake')
const [namespace, name] = ['ake-system', 'ake-hub'] as const
const secrets = `/api/v1/namespaces/${namespace}/secrets`
const mounted = '/run/secrets/kubernetes.io/serviceaccount'

export class PodAccount {
  /** Runs `ake` in the pod. */
  readonly launcher: string
  readonly #oracle: Oracle
  readonly #folder: string
  #rounds = 0
  #token = ''

  private constructor(oracle: Oracle, dir: string) {
    this.#oracle = oracle
    this.#folder = join(dir, 'account')
    this.launcher = join(dir, 'ake-in-pod')
  }

  /** Undefined where this process may not mount. */
  static async make(oracle: Oracle, dir: string): Promise<PodAccount | undefined> {
    const mayMount = await promisify(execFile)('unshare', ['-m', 'true']).then(
      () => true,
      () => false,
    )
    if (!mayMount) return undefined
    const account = new PodAccount(oracle, dir)
    await mkdir(account.#folder, { recursive: true, mode: 0o700 })
    await account.#write()
    for (const file of ['token', 'ca.crt', 'namespace'])
      await symlink(join('..data', file), join(account.#folder, file))
    await account.#writeLauncher()
    return account
  }

  /** As a kubelet does before a token ends; the one before counts no more, since what it was bound to is gone. Answers that one. */
  async replaceToken(): Promise<string> {
    const [before, bound] = [this.#token, this.#boundTo]
    await this.#write()
    await ask(this.#oracle, `${secrets}/${bound}`, { method: 'DELETE' })
    return before
  }

  get #boundTo(): string {
    return `hub-pod-${this.#rounds}`
  }

  /** A new folder, and a link to it that takes the place of the one before in one step. */
  async #write(): Promise<void> {
    this.#rounds++
    const metadata = { name: this.#boundTo }
    const { uid } = (await creatorOf(this.#oracle)(secrets, { metadata })).metadata
    const boundObjectRef = { kind: 'Secret', apiVersion: 'v1', name: this.#boundTo, uid }
    this.#token = await this.#oracle.tokenFor(namespace, name, { boundObjectRef })
    const data = `..data-${this.#rounds}`
    await mkdir(join(this.#folder, data))
    const files = { token: this.#token, 'ca.crt': this.#oracle.ca, namespace }
    for (const [file, text] of Object.entries(files))
      await writeFile(join(this.#folder, data, file), text, { mode: 0o600 })
    const next = join(this.#folder, '..data-next')
    await symlink(data, next)
    await rename(next, join(this.#folder, '..data'))
  }

  async #writeLauncher(): Promise<void> {
    const { hostname, port } = new URL(this.#oracle.url)
    const inPod = `mount -t tmpfs tmpfs /run; mkdir -p ${mounted}; mount --bind "$0" ${mounted}; exec "${ake}" "$@"`
    const script = [
      '#!/bin/sh',
      `export KUBERNETES_SERVICE_HOST=${hostname} KUBERNETES_SERVICE_PORT=${port}`,
      `exec unshare -m sh -ec '${inPod}' "${this.#folder}" "$@"`,
    ]
    await writeFile(this.launcher, `${script.join('\n')}\n`, { mode: 0o755 })
  }
}
