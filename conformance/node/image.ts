/** The only image that the proof's pods need, sandboxes included: busybox, as an archive that `ctr images import` takes. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export const image = 'ake.test/busybox:1'

const commands = ['sh', 'cat', 'grep', 'httpd', 'mkdir', 'sleep', 'test', 'wget']

/** Returns the archive's path. */
export async function makeImage(dir: string, busybox: string): Promise<string> {
  const root = join(dir, 'root')
  for (const folder of ['bin', 'tmp', 'etc', 'proc', 'sys', 'dev']) await mkdir(join(root, folder), { recursive: true })
  await copyFile(busybox, join(root, 'bin', 'busybox'))
  for (const command of commands) await symlink('busybox', join(root, 'bin', command))
  await execute('tar', ['-C', root, '--owner=0', '--group=0', '-cf', join(dir, 'layer.tar'), '.'])
  const digest = createHash('sha256')
    .update(await readFile(join(dir, 'layer.tar')))
    .digest('hex')
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Env: ['PATH=/bin'], Cmd: ['/bin/sleep', '2147483647'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  }
  const manifest = [{ Config: 'config.json', RepoTags: [image], Layers: ['layer.tar'] }]
  await writeFile(join(dir, 'config.json'), JSON.stringify(config))
  await writeFile(join(dir, 'manifest.json'), JSON.stringify(manifest))
  const archive = join(dir, 'image.tar')
  await execute('tar', ['-C', dir, '-cf', archive, 'manifest.json', 'config.json', 'layer.tar'])
  return archive
}
