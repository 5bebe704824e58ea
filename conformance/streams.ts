/**
 * What a user does with a running pod by the real kubectl (logs, exec, attach, cp, port-forward), over WebSocket and over
 * SPDY, on whatever server the kubeconfig names: the API server itself, or an edge in front of it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Command } from './kubectl/command.ts'
import { runCommand } from './kubectl/shell.ts'

export type StreamsOptions = {
  /** The folder that kubectl is in. */
  readonly bin: string
  readonly kubeconfig: string
  /** A step that runs this twice names two folders. */
  readonly home: string
  /** The name of the stand-in's node. */
  readonly node: string
  readonly namespace?: string
  readonly signal: AbortSignal
}

type Spoken = Command & { readonly expect: RegExp }

const forwardedBytes = 3 << 20
const forwardMsMax = 30_000
const copiedBytes = 2 << 20

/** Everything that was not as it should be; nothing, if all is well. `count` is how many things were tried. */
export async function proveStreams(options: StreamsOptions): Promise<{ count: number; faults: string[] }> {
  const { bin, kubeconfig, home, node, namespace = 'streams', signal } = options
  await mkdir(home, { recursive: true })
  const shell = { bin, kubeconfig, home, signal }
  const faults: string[] = []
  let count = 0
  const prove = async ({ expect, ...command }: Spoken) => {
    const said = await runCommand(shell, command)
    count++
    if (!expect.test(said)) faults.push(`${command.line}\n  should be like ${expect}, is:\n${said}`)
  }
  await writeFile(join(home, 'pod.json'), JSON.stringify(objects(namespace, node)))
  await writeFile(join(home, 'sent'), noise(copiedBytes))
  const setUp = `kubectl apply -f ${home}/pod.json && kubectl wait -n ${namespace} pod/talker --for=condition=Ready`
  await prove({ line: setUp, expect: /talker condition met\n--- exit 0\n$/ })
  for (const protocol of ['websocket', 'spdy'] as const) {
    for (const line of script({ namespace, home, protocol })) await prove(line)
    const fault = await proveForward(options, namespace, protocol)
    count++
    if (fault !== undefined) faults.push(`port-forward by ${protocol}: ${fault}`)
  }
  await prove({ line: `kubectl delete namespace ${namespace} --wait=false`, expect: /deleted/ })
  return { count, faults }
}

function script({ namespace, home, protocol }: { namespace: string; home: string; protocol: Protocol }): Spoken[] {
  const env = protocol === 'spdy' ? 'env KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false ' : ''
  const kubectl = (words: string) => `${env}kubectl -n ${namespace} ${words}`
  const word = `said-by-${protocol}`
  return [
    { line: kubectl('exec talker -c first -- echo hello'), expect: /^hello\n--- exit 0\n$/ },
    { line: kubectl('exec talker -c second -- echo hello'), expect: /^hello\n--- exit 0\n$/ },
    { line: `echo typed | ${kubectl('exec -i talker -c first -- cat')}`, expect: /^typed\n--- exit 0\n$/ },
    { line: kubectl("exec talker -c first -- sh -c 'exit 3'"), expect: /exit code 3\n--- exit 3\n$/ },
    { line: kubectl('exec talker -c first -- complain loudly'), expect: /^--- errors\nloudly\n--- exit 0\n$/ },
    { line: kubectl('exec talker -c first -- nothing'), expect: /nothing: not found[\s\S]*exit 127\n$/ },
    { line: kubectl(`exec talker -c first -- log ${word}`), expect: /^--- exit 0\n$/ },
    { line: kubectl('logs talker -c first --tail=1'), expect: new RegExp(`^${word}\n--- exit 0\n$`) },
    { line: kubectl('logs talker -c second'), expect: /^started talker\/second\n--- exit 0\n$/ },
    { line: kubectl('logs talker -c none'), expect: /not valid for pod[\s\S]*exit 1\n$/ },
    {
      line: `exec ${env}kubectl -n ${namespace} logs -f --tail=1 talker -c first`,
      watch: {
        from: 1,
        until: 3,
        meanwhile: ['one', 'two'].map((text) => kubectl(`exec talker -c first -- log ${text}`)),
      },
      expect: new RegExp(`^${word}\none\ntwo\n`),
    },
    // Tried again: straight to kube-apiserver, too, one answer in four is lost when the input ends that soon.
    {
      line: `for i in 1 2 3 4 5 6; do echo typed | ${kubectl('attach -i talker -c first')} | grep 'heard typed' && break; done`,
      expect: /heard typed\n/,
    },
    { line: kubectl('exec talker -c first -- cat /etc/hostname'), expect: /^talker\n--- exit 0\n$/ },
    {
      line: [
        kubectl(`cp ${home}/sent talker:/copied/${protocol} -c first`),
        kubectl(`cp talker:/copied/${protocol} ${home}/back-${protocol} -c first`),
        `cmp ${home}/sent ${home}/back-${protocol} && echo the same`,
      ].join(' && '),
      expect: /the same\n(?:--- errors\n[\s\S]*)?--- exit 0\n$/,
    },
  ]
}

type Protocol = 'websocket' | 'spdy'

/** Some megabytes there and back through a forwarded port, twice at the same time, then an orderly end. */
async function proveForward(
  options: StreamsOptions,
  namespace: string,
  protocol: Protocol,
): Promise<string | undefined> {
  const { bin, kubeconfig, home, signal } = options
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    KUBECONFIG: kubeconfig,
    ...(protocol === 'spdy' ? { KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' } : {}),
  }
  const args = ['-n', namespace, 'port-forward', '--address', '127.0.0.1', 'pod/talker', ':8080']
  const child = spawn(join(bin, 'kubectl'), args, { env, stdio: ['ignore', 'pipe', 'pipe'], signal })
  let said = ''
  child.on('error', (error) => {
    said += error.message
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const exited = once(child, 'close').then(() => undefined)
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(forwardMsMax)])
    const [line] = (await Promise.race([once(createInterface(child.stdout), 'line', { signal: limit }), exited])) ?? []
    const port = /127\.0\.0\.1:(\d+)/.exec(String(line))?.[1]
    if (port === undefined) return `it did not listen: ${said}`
    const echoed = await Promise.all([echo(Number(port), limit), echo(Number(port), limit)])
    return echoed.every(Boolean) ? undefined : `what came back is not what was sent: ${said}`
  } catch (error) {
    return `${error}; kubectl said: ${said}`
  } finally {
    child.kill('SIGTERM')
    await exited.catch(() => {})
  }
}

async function echo(port: number, signal: AbortSignal): Promise<boolean> {
  const sent = noise(forwardedBytes)
  const socket = connect({ port, host: '127.0.0.1', signal })
  socket.end(sent)
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part as Buffer)
  return Buffer.concat(parts).equals(sent)
}

/** The same on every run, and nothing a compression could shorten to a trifle. */
function noise(bytes: number): Buffer {
  const made = Buffer.alloc(bytes)
  let state = 1
  for (let at = 0; at < bytes; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    made.writeUInt32LE(state, at)
  }
  return made
}

function objects(namespace: string, node: string): object {
  const container = (name: string) => ({ name, image: 'registry.example/talker:1' })
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'talker', namespace },
        spec: { nodeName: node, containers: [container('first'), container('second')] },
      },
    ],
  }
}
