/** `ake join`: this machine becomes an edge. Only wiring here; what is printed is what was written and what to do next. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import { askingHubs } from '../join/hubasking.ts'
import { Join } from '../join/join.ts'
import { JoinedFiles } from '../join/joinedfiles.ts'
import { nearest, serverUrl } from '../pki/kubeconfig.ts'
import { dialTcp } from '../upstream/dial.ts'
import type { JoinConfig } from './config.ts'
import { type HostPort, isBootstrapToken, kinds, type TokenSource } from './optionkinds.ts'

type Around = {
  /** A line for the operator who waits. */
  readonly told: (line: string) => void
  readonly stdin: AsyncIterable<Buffer | string>
  /** A test has another. */
  readonly clock?: Clock
}

/** A token and a line end. */
const tokenBytesMax = 256
const edgeListen = '127.0.0.1:10005'

/** Answers what to print. */
export async function joinEdge(config: JoinConfig, { told, stdin, clock = systemClock }: Around): Promise<string> {
  const token = await tokenIn(config.token, stdin)
  const places = {
    data: config.data,
    kubeletKubeconfig: config.kubeletKubeconfig ?? join(config.data, 'kubelet.kubeconfig'),
    edgeConfig: config.edgeConfig ?? join(config.data, 'edge.yaml'),
  }
  const { host, port } = nearest(config.listen)
  const listen = config.listen.map(textOf)
  const words = { hubs: config.hub, listen: listen.join() === edgeListen ? [] : listen, server: serverUrl(host, port) }
  const files = new JoinedFiles(places, words)
  const present = await files.present()
  const node = nodeOf(config.name, present?.node, config.data)
  const pair = present?.pair
  const ask = askingHubs({
    ...{ hubs: config.hub.map((one) => new URL(one)), token, hashes: config.caHash, dial: dialTcp(), clock },
    ...{ environment: process.env, ...(pair !== undefined && { pair }) },
  })
  const joining = new Join({
    ...{ ask, node, replace: config.replace, key: files.key, withinMs: config.wait, clock, told },
  })
  const authorities = await joining.authorities()
  if (config.dryRun) return shown(files, authorities, node)
  await files.makeFolders()
  const issued = await joining.certificate(authorities)
  const until = new X509Certificate(issued.cert).validToDate.toISOString()
  const title = `credential of the edge ${node}, which "ake edge" renews before ${until}`
  const isConfigured = await files.write(authorities, { pair: issued, title, now: clock.now() })
  const { config: options } = files
  const lines = [
    `${present === undefined ? 'joined' : 'joined again'} as node ${node}, until ${until}; "ake edge" renews it before`,
    `wrote ${files.credentialPath}: certificate and key of system:node:${node}, and the hub's authorities (0600)`,
    ...files.plain(authorities).map(({ path, about }) => `wrote ${path}: ${about}`),
    isConfigured
      ? `wrote ${options.path}: ${options.about}`
      : `left ${options.path} as it is: let it have\n${indented(options.text)}`,
    `next: ake edge --config ${options.path}`,
    `then: kubelet --kubeconfig ${places.kubeletKubeconfig} --hostname-override ${node}, with rotateCertificates: false in its configuration`,
  ]
  return `${lines.join('\n')}\n`
}

function shown(files: JoinedFiles, authorities: Parameters<JoinedFiles['plain']>[0], node: string): string {
  const all = [...files.plain(authorities), files.config].map(
    ({ path, text, about }) => `${path}: ${about}\n${indented(text)}`,
  )
  return `the token counts, the hub is the one of --ca-hash, and the clock is right: this machine would join as node ${node}\n${files.credentialPath}: certificate and key of system:node:${node}, and the hub's authorities (0600)\n${all.join('\n')}\nnothing was requested or written\n`
}

function indented(text: string): string {
  return text.trimEnd().replace(/^/gm, '  ')
}

/** That of the options, of an earlier join, or of this machine. */
function nodeOf(given: string | undefined, present: string | undefined, data: string): string {
  if (given !== undefined && present !== undefined && given !== present) {
    throw new UsageError(
      `${data} is of the edge ${present}: leave out --name, or give another folder with --data for ${given}`,
    )
  }
  const own = kinds.name.parse(hostname().toLowerCase())
  const node = given ?? present ?? own
  if (node !== undefined) return node
  throw new UsageError(`the name of this machine (${hostname()}) cannot be that of a node: give one with --name`)
}

async function tokenIn(source: TokenSource, stdin: AsyncIterable<Buffer | string>): Promise<string> {
  if ('token' in source) return source.token
  const text = 'file' in source ? await textIn(source.file) : await textFrom(stdin)
  const token = text.trim()
  if (isBootstrapToken(token)) return token
  const where = 'file' in source ? source.file : 'standard input'
  throw new UsageError(`${where} holds no token: give what "ake hub token" printed behind --token, and nothing else`)
}

async function textIn(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`cannot read ${path} (${reasonOf(error)}): check --token`)
  }
}

async function textFrom(stdin: AsyncIterable<Buffer | string>): Promise<string> {
  let text = ''
  for await (const chunk of stdin) {
    text += chunk.toString()
    if (text.length > tokenBytesMax) break
  }
  return text
}

function textOf({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
