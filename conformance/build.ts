/**
 * Builds the real Kubernetes (and the etcd it needs) from the Go module proxy into a cache folder outside the repository,
 * so that answers can be compared with those of kube-apiserver. What is already there is reused: a cold build takes minutes.
 */

import { spawn } from 'node:child_process'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

export const kubernetesVersion = 'v1.36.3'

const modules = join(import.meta.dirname, 'kubernetes')

/** How often a build that is under way says so: a silent minute looks like a hang. */
const progressEveryMs = 15_000

/** How much of a failed build's output is shown: the compiler's own words are at its end. */
const outputMax = 4_000

export type Binary =
  | 'kube-apiserver'
  | 'kubectl'
  | 'etcd'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubemark'
  | 'kubelet'
  | 'kube-proxy'

const usual: readonly Binary[] = ['kube-apiserver', 'kubectl', 'etcd']

type Build = { readonly only?: readonly Binary[]; readonly progress: (line: string) => void }

/** Makes sure that the named binaries exist and tells the folder they are in. */
export async function buildKubernetes({ only = usual, progress }: Build): Promise<{ bin: string }> {
  const cache = process.env.AKE_CACHE || join(homedir(), '.cache', 'ake')
  const bin = join(cache, `kubernetes-${kubernetesVersion}`)
  await mkdir(bin, { recursive: true })
  for (const name of only) {
    if (!(await exists(join(bin, name)))) await buildOne(name, bin, progress)
  }
  return { bin }
}

async function buildOne(name: Binary, bin: string, progress: Build['progress']): Promise<void> {
  // Named by process and renamed when complete: an aborted build, or two at once, leave no half binary behind.
  const unfinished = join(bin, `.${name}.${process.pid}`)
  const started = performance.now()
  const elapsed = () => Math.round((performance.now() - started) / 1000)
  progress(`building ${name} (Kubernetes ${kubernetesVersion}); the first build compiles for some minutes`)
  const timer = setInterval(() => progress(`building ${name}: ${elapsed()} s`), progressEveryMs)
  try {
    await go(buildArguments(name, unfinished), name === 'etcd' ? join(modules, 'etcd') : modules)
    await rename(unfinished, join(bin, name))
  } finally {
    clearInterval(timer)
    await rm(unfinished, { force: true })
  }
  progress(`built ${name} in ${elapsed()} s`)
}

function buildArguments(name: Binary, output: string): string[] {
  const start = ['build', '-trimpath', '-o', output, '-ldflags']
  if (name === 'etcd') return [...start, '-s -w', '.']
  const [major, minor] = kubernetesVersion.slice(1).split('.')
  // A module build knows no git tag; without these, /version and kubectl version would say v0.0.0.
  const stamps = [
    `k8s.io/component-base/version.gitVersion=${kubernetesVersion}`,
    `k8s.io/component-base/version.gitMajor=${major}`,
    `k8s.io/component-base/version.gitMinor=${minor}`,
    `k8s.io/client-go/pkg/version.gitVersion=${kubernetesVersion}`,
  ]
  return [...start, ['-s -w', ...stamps.map((stamp) => `-X ${stamp}`)].join(' '), `k8s.io/kubernetes/cmd/${name}`]
}

function go(args: readonly string[], cwd: string): Promise<void> {
  const env = { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod' }
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-outputMax)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'ENOENT' ? new Error('Go is not installed: building Kubernetes needs Go 1.26 in PATH') : error,
      )
    })
    child.on('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`go ${args[0]} ${args.at(-1)} failed (${code}):\n${output}`))
    })
  })
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
