/** Images made by hand, as archives that `ctr images import` takes: busybox, of which sandboxes are made too, and static programs. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export const image = 'ake.test/busybox:1'

const commands = ['sh', 'cat', 'grep', 'httpd', 'mkdir', 'sleep', 'test', 'wget']

type Parts = {
  readonly name: string
  /** A file that goes to /bin under another name. */
  readonly program: string
  readonly as: string
  /** Further names of the same program. */
  readonly commands?: readonly string[]
  /** What runs unless the pod says otherwise; arguments of the pod go to the second kind. */
  readonly command?: readonly string[]
  readonly entrypoint?: readonly string[]
}

/** Returns the archive's path. */
export function makeImage(dir: string, busybox: string): Promise<string> {
  return makeProgramImage(dir, {
    name: image,
    program: busybox,
    as: 'busybox',
    commands,
    command: ['/bin/sleep', '2147483647'],
  })
}

/** Around one program that needs nothing but the kernel. */
export async function makeProgramImage(dir: string, parts: Parts): Promise<string> {
  const root = join(dir, 'root')
  for (const folder of ['bin', 'tmp', 'etc', 'proc', 'sys', 'dev']) await mkdir(join(root, folder), { recursive: true })
  await copyFile(parts.program, join(root, 'bin', parts.as))
  for (const command of parts.commands ?? []) await symlink(parts.as, join(root, 'bin', command))
  await execute('tar', ['-C', root, '--owner=0', '--group=0', '-cf', join(dir, 'layer.tar'), '.'])
  const digest = createHash('sha256')
    .update(await readFile(join(dir, 'layer.tar')))
    .digest('hex')
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: parts.command, Entrypoint: parts.entrypoint },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  }
  const manifest = [{ Config: 'config.json', RepoTags: [parts.name], Layers: ['layer.tar'] }]
  await writeFile(join(dir, 'config.json'), JSON.stringify(config))
  await writeFile(join(dir, 'manifest.json'), JSON.stringify(manifest))
  const archive = join(dir, 'image.tar')
  await execute('tar', ['-C', dir, '-cf', archive, 'manifest.json', 'config.json', 'layer.tar'])
  return archive
}
