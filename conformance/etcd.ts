/** What a proof does to etcd itself: compaction and single writes, over its JSON gateway, and going back to a copy of its files. */
import { execFile } from 'node:child_process'
import { cp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Places } from './controlplane.ts'
import { buildGoProgram } from './goprogram.ts'

const run = promisify(execFile)

/**
 * Forgets everything before now and tells the revision at which it was done. A write of its own comes first, under a key
 * that Kubernetes does not look at: so every version that anybody has seen is below that revision.
 */
export async function compactEtcd(port: number): Promise<number> {
  const { header } = await ask(port, 'put', { key: Buffer.from('ake/compaction').toString('base64') })
  await ask(port, 'compaction', { revision: header.revision, physical: true })
  return Number(header.revision)
}

/** A write behind kube-apiserver's back: it takes whatever it can read for an object, valid or not. */
export async function putEtcd(port: number, key: string, value: Buffer): Promise<void> {
  await ask(port, 'put', { key: Buffer.from(key).toString('base64'), value: value.toString('base64') })
}

export async function getEtcd(port: number, key: string): Promise<Buffer> {
  const { kvs = [] } = await ask(port, 'range', { key: Buffer.from(key).toString('base64') })
  if (kvs[0] === undefined) throw new Error(`etcd has no ${key}`)
  return Buffer.from(kvs[0].value, 'base64')
}

type Answered = { readonly header: { readonly revision: string }; readonly kvs?: readonly { readonly value: string }[] }

function ask(port: number, call: 'put' | 'range' | 'compaction', body: object): Promise<Answered> {
  return new Promise((done, fail) => {
    const sent = request(
      { host: '127.0.0.1', port, path: `/v3/kv/${call}`, method: 'POST', agent: false },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (chunk: string) => {
          text += chunk
        })
        answer.on('end', () => {
          if (answer.statusCode === 200) done(JSON.parse(text) as Answered)
          else fail(new Error(`etcd answered ${call} with ${answer.statusCode}: ${text}`))
        })
        answer.on('error', fail)
      },
    )
    sent.on('error', fail)
    sent.end(JSON.stringify(body))
  })
}

/** While etcd is away: its files become those of the copy; `bump` as the manual of etcd advises, 0 as a plain copy. */
export async function restoreEtcd({ dir, peer }: Places, copy: string, bump: number): Promise<void> {
  const folder = join(dir, 'etcd')
  await rm(folder, { recursive: true, force: true })
  if (bump === 0) {
    await cp(copy, folder, { recursive: true })
    return
  }
  const program = await buildGoProgram('etcdrestore', () => {})
  const from = join(copy, 'member', 'snap', 'db')
  await run(program, ['-from', from, '-to', folder, '-peer', `http://127.0.0.1:${peer}`, '-bump', String(bump)])
}
