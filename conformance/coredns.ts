/** CoreDNS as a process: the cluster's DNS on loopback, fed by whatever server the kubeconfig names. */
import { Resolver } from 'node:dns/promises'
import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { buildGoProgram } from './goprogram.ts'
import { freePorts } from './ports.ts'
import { startReady } from './ready.ts'

const syncedMsMax = 60_000
const askAgainMs = 50

export type Coredns = {
  readonly port: number
  readonly pid: number
  /** The IPv4 addresses of a name, as a pod would ask: `web.shop.svc.cluster.local`. Throws with code ENOTFOUND. */
  resolve(name: string): Promise<string[]>
  stop(): Promise<void>
}

export type CorednsOptions = {
  /** Where its Corefile and log go. */
  readonly dir: string
  readonly kubeconfig: string
  readonly port?: number
  readonly signal?: AbortSignal
  readonly progress?: (line: string) => void
}

/** Resolves when it has synced with its server: only then it says that it is ready. */
export async function startCoredns(options: CorednsOptions): Promise<Coredns> {
  const { dir, kubeconfig, signal, progress = () => {} } = options
  const program = await buildGoProgram('coredns', progress)
  await mkdir(dir, { recursive: true })
  const [free, readyPort] = (await freePorts(2)) as [number, number]
  const port = options.port ?? free
  const corefile = join(dir, 'Corefile')
  await writeFile(corefile, corefileOf({ port, readyPort, kubeconfig }))
  const { pid, stop } = await startReady({
    program,
    args: ['-conf', corefile],
    log: join(dir, 'coredns.log'),
    isReady: (line) => /^CoreDNS-(\S+)/.exec(line)?.[1],
    ...(signal === undefined ? {} : { signal }),
  })
  const give = performance.now() + syncedMsMax
  while (!(await isSynced(readyPort))) {
    if (performance.now() > give || signal?.aborted) {
      await stop()
      throw new Error(`CoreDNS did not sync: see ${join(dir, 'coredns.log')}`)
    }
    await pause(askAgainMs)
  }
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  resolver.setServers([`127.0.0.1:${port}`])
  return { port, pid, resolve: (name) => resolver.resolve4(name), stop }
}

function corefileOf(to: { port: number; readyPort: number; kubeconfig: string }): string {
  return [
    `.:${to.port} {`,
    '  bind 127.0.0.1',
    '  errors',
    '  log',
    `  ready 127.0.0.1:${to.readyPort}`,
    '  kubernetes cluster.local in-addr.arpa {',
    `    kubeconfig ${to.kubeconfig}`,
    '    pods verified',
    '    ttl 1',
    '  }',
    '}',
    '',
  ].join('\n')
}

function isSynced(port: number): Promise<boolean> {
  return new Promise((done) => {
    const sent = request({ host: '127.0.0.1', port, path: '/ready', agent: false }, (answer) => {
      answer.resume()
      done(answer.statusCode === 200)
    })
    sent.on('error', () => done(false))
    sent.end()
  })
}
