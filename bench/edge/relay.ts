/**
 * The least that any program on this runtime could do for a watch: one HTTP/2 connection to the API server, one to each
 * client, bytes handed on as they come. It keeps nothing, reads nothing and decides nothing; its CPU is what TLS, HTTP/2 and
 * waking up for an event cost alone. A process of its own.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openPki } from '../../src/pki/pki.ts'
import type { Address, Credentials } from '../bench.ts'

export type Relay = Address & { readonly pid: number; stop(): Promise<void> }

type Order = { readonly folder: string; readonly url: string; readonly tls: Credentials }
type Ready = { readonly port: number } & Credentials

export async function startRelay({ dir, to }: { dir: string; to: Address }): Promise<Relay> {
  const child: ChildProcess = fork(import.meta.filename, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const order: Order = { folder: join(dir, 'relay'), url: to.url, tls: to.tls }
  child.send(order)
  const [{ port, ...tls }] = (await once(child, 'message')) as [Ready]
  return {
    url: `https://127.0.0.1:${port}`,
    tls,
    pid: child.pid!,
    stop: async () => {
      process.removeListener('exit', endWithUs)
      const exit = once(child, 'exit')
      endWithUs()
      await exit
    },
  }
}

async function relay({ folder, url, tls }: Order): Promise<void> {
  const pki = await openPki({ folder, hosts: ['127.0.0.1'], now: Date.now() })
  const upstream = connect(url, { ...tls })
  const server = createSecureServer({ ...pki.serving, ca: pki.ca, requestCert: true, rejectUnauthorized: false })
  server.on('session', (session) => session.on('error', () => {}))
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    const asked = upstream.request({ ':path': headers[':path'] ?? '/', accept: 'application/json' })
    asked.on('error', () => stream.destroy())
    asked.on('response', (head) => stream.respond({ ':status': head[':status'] ?? 502 }))
    asked.on('data', (bytes: Buffer) => stream.write(bytes))
    asked.on('end', () => stream.end())
    stream.on('close', () => asked.close())
  })
  server.listen(0, '127.0.0.1', () => {
    const ready: Ready = { port: (server.address() as AddressInfo).port, ca: pki.ca, ...pki.admin }
    process.send?.(ready)
  })
}

if (import.meta.main && process.send !== undefined) {
  process.once('message', (order: Order) => void relay(order))
  process.on('disconnect', () => process.exit())
}
