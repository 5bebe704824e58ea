/** The programs that a real node needs besides Kubernetes itself, from the system's packages. */
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { plugins } from './configured.ts'

const execute = promisify(execFile)
const installMsMax = 300_000

export const busybox = '/usr/bin/busybox'

/** By what tells that they are there; a busybox that is not static would run in no container. */
export type Package = { readonly name: string; readonly file: string }

export const nodePackages: readonly Package[] = [
  { name: 'containerd', file: '/usr/bin/containerd' },
  { name: 'runc', file: '/usr/sbin/runc' },
  { name: 'containernetworking-plugins', file: `${plugins}/bridge` },
  { name: 'busybox-static', file: '/usr/share/doc/busybox-static' },
  { name: 'iproute2', file: '/usr/sbin/ip' },
]

/** Empty where a node can run, or whatever needs these; else sentences. */
export async function missing(needed: readonly Package[] = nodePackages): Promise<string[]> {
  const absent = await absentPackages(needed)
  return [
    ...(process.platform === 'linux' ? [] : ['Linux']),
    ...(process.getuid?.() === 0 ? [] : ['root']),
    ...(absent.length === 0 ? [] : [`the packages ${absent.join(', ')}`]),
  ]
}

/** Only where root asked for this proof by name: nobody else's system is changed. */
export async function install(progress: (line: string) => void, needed = nodePackages): Promise<void> {
  const absent = await absentPackages(needed)
  if (absent.length === 0) return
  progress(`installing ${absent.join(', ')}`)
  const started = performance.now()
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = (...args: string[]) => execute('apt-get', args, { env, timeout: installMsMax })
  const get = () => apt('install', '--yes', '--no-install-recommends', ...absent)
  await get().catch(async () => {
    await apt('update')
    await get()
  })
  progress(`installed in ${Math.round((performance.now() - started) / 1000)} s`)
}

async function absentPackages(needed: readonly Package[]): Promise<string[]> {
  const found = await Promise.all(needed.map(({ file }) => isThere(file)))
  return needed.filter((_, at) => !found[at]).map(({ name }) => name)
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
