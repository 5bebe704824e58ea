/** nginx as a target: what sending the same bytes from a file costs, with TLS, is the floor a server can hope for. */

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Target } from './bench.ts'

const run = promisify(execFile)
const startWithinMs = 5_000

export type FileServer = Target & {
  /** Makes `bytes` the answer to `path`. */
  put(path: string, bytes: Buffer): Promise<void>
}

/** Undefined if there is no nginx on the PATH. */
export async function startNginx(dir: string): Promise<FileServer | undefined> {
  const found = await run('nginx', ['-v']).then(
    () => true,
    () => false,
  )
  if (!found) return undefined
  const files = join(dir, 'files')
  await mkdir(files, { recursive: true })
  await makeCertificate(dir)
  const port = await freePort()
  await writeFile(join(dir, 'nginx.conf'), configuration(dir, port))
  const startedAt = performance.now()
  const child = spawn('nginx', ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', join(dir, 'error.log')], {
    stdio: 'inherit',
  })
  const exit = once(child, 'exit')
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  const tls = {
    ca: await readFile(join(dir, 'server.crt'), 'utf8'),
    cert: await readFile(join(dir, 'server.crt'), 'utf8'),
    key: await readFile(join(dir, 'server.key'), 'utf8'),
  }
  const url = `https://127.0.0.1:${port}`
  await untilListening(url)
  return {
    name: 'nginx',
    url,
    tls,
    pid: child.pid!,
    startedAt,
    stop: async () => {
      process.removeListener('exit', endWithUs)
      child.kill('SIGTERM')
      await exit
    },
    put: (path, bytes) => writeFile(join(files, path), bytes),
  }
}

/** One process without a master, so that its own CPU time is all; open files are kept, as any busy server's would be. */
function configuration(dir: string, port: number): string {
  return `
daemon off;
master_process off;
worker_processes 1;
pid ${dir}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  default_type application/json;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 100000000;
  keepalive_timeout 1h;
  open_file_cache max=100 inactive=1h;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi;
  scgi_temp_path ${dir}/scgi;
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${dir}/server.crt;
    ssl_certificate_key ${dir}/server.key;
    ssl_protocols TLSv1.3;
    root ${dir}/files;
  }
}
`
}

async function makeCertificate(dir: string): Promise<void> {
  const request = ['req', '-x509', '-nodes', '-days', '30', '-subj', '/CN=localhost']
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const output = ['-keyout', join(dir, 'server.key'), '-out', join(dir, 'server.crt')]
  await run('openssl', [...request, ...key, ...output, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'])
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await once(server.close(), 'close')
  return port
}

async function untilListening(url: string): Promise<void> {
  const give = performance.now() + startWithinMs
  const { hostname, port } = new URL(url)
  for (;;) {
    const socket = connect(Number(port), hostname)
    const open = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (open) return
    if (performance.now() > give) throw new Error('nginx does not listen')
    await new Promise((resume) => setTimeout(resume, 50))
  }
}
