/**
 * A stand-in for kube-apiserver that sends events faster than a real one can on the same machine: made-up pods, lists in
 * pages, watches, reviews that allow everything, and the discovery of the real one. It runs as a process of its own and
 * takes orders by messages (edgeupstream.ts).
 */

import { createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Discovery } from '../../src/endpoint/documents/discovery.ts'
import type { Request } from '../../src/endpoint/endpoint.ts'
import { OwnCatalog } from '../../src/endpoint/owncatalog.ts'
import { parseRequest } from '../../src/kube/request.ts'
import { apiVersion, type Resource } from '../../src/kube/resource.ts'
import { openPki } from '../../src/pki/pki.ts'
import { type CloudPod, makeCloudPods } from './pods.ts'
import type { CloudOrder, CloudReply } from './upstream.ts'

/** As everybody writes at most in a burst: as much as a connection may hold unread. */
const windowBytes = 4 * 1024 * 1024

type Watching = { readonly stream: ServerHttp2Stream; readonly node: string | undefined }
type Answer = { readonly body: string | Buffer; readonly status?: number; readonly headers?: Record<string, string> }

class Cloud {
  readonly #pods: readonly CloudPod[]
  readonly #watching = new Set<Watching>()
  readonly #resources = new OwnCatalog()
  readonly #discovery: Discovery
  readonly #packed = new Map<string, Buffer>()
  #version: number

  constructor(count: number) {
    this.#pods = makeCloudPods(count)
    this.#version = count + 1
    this.#discovery = new Discovery({ resources: this.#resources, serverAddress: '127.0.0.1', paths: [] })
  }

  serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => {})
    const method = String(headers[':method'])
    const url = new URL(String(headers[':path']), 'https://cloud')
    if (method === 'POST') {
      stream.resume()
      stream.on('end', () => this.#answer(stream, headers, reviewOf(url.pathname)))
      return
    }
    if (url.searchParams.get('watch') === 'true') this.#watch(stream, url)
    else void this.#read(url, headers).then((answer) => this.#answer(stream, headers, answer))
  }

  #answer(stream: ServerHttp2Stream, asked: IncomingHttpHeaders, { body, status = 200, headers = {} }: Answer): void {
    if (stream.destroyed) return
    const gzip = String(asked['accept-encoding'] ?? '').includes('gzip') && body.length > 100_000
    const bytes = gzip ? this.#gzipped(body) : Buffer.from(body)
    stream.respond({
      ':status': status,
      'content-type': 'application/json',
      'audit-id': 'bench',
      ...(gzip ? { 'content-encoding': 'gzip' } : {}),
      ...headers,
    })
    stream.end(bytes)
  }

  /** Pages that were packed before are the same until something changes. */
  #gzipped(body: string | Buffer): Buffer {
    const text = body.toString()
    const key = `${this.#version} ${text.length} ${text.slice(0, 300)}`
    const packed = this.#packed.get(key) ?? gzipSync(text, { level: 4 })
    if (this.#packed.size > 64) this.#packed.clear()
    this.#packed.set(key, packed)
    return packed
  }

  async #read(url: URL, headers: IncomingHttpHeaders): Promise<Answer> {
    const { pathname, search } = url
    if (pathname === '/readyz') return { body: 'ok', headers: { 'content-type': 'text/plain' } }
    if (pathname === '/version') return { body: '{"major":"1","minor":"36"}' }
    if (pathname === '/api/v1/namespaces/kube-system') return { body: systemNamespace }
    const api = parseRequest('GET', pathname + search)
    if (!api.isResource) {
      const request = { method: 'GET', url: pathname, headers, hasBody: false } as unknown as Request
      const found = await this.#discovery.answer(api, request)
      if (found === undefined) return notFound
      return { body: found.body as Buffer, status: found.status, headers: found.headers as Record<string, string> }
    }
    const found = this.#resources.find(api.group, api.version, api.resource)
    if (found === undefined) return notFound
    const { resource } = found
    if (api.resource !== 'pods') return { body: listOf(resource, this.#version, everything[api.resource] ?? [], '') }
    if (api.name !== '') {
      const pod = this.#pods.find(({ name, namespace }) => name === api.name && namespace === api.namespace)
      return pod === undefined ? notFound : { body: `${pod.text()}\n` }
    }
    const node = nodeOf(url)
    // An edge that comes back looks at its newest objects by name.
    const name = fieldOf(url, 'metadata.name')
    const chosen = this.#pods.filter(
      (pod) =>
        (node === undefined || pod.node === node) &&
        (name === undefined || pod.name === name) &&
        (api.namespace === '' || api.namespace === pod.namespace),
    )
    const from = Number(url.searchParams.get('continue') ?? 0)
    const limit = Number(url.searchParams.get('limit') ?? chosen.length)
    const page = chosen.slice(from, from + limit).map((pod) => pod.text())
    return { body: listOf(resource, this.#version, page, from + limit < chosen.length ? String(from + limit) : '') }
  }

  #watch(stream: ServerHttp2Stream, url: URL): void {
    stream.respond({ ':status': 200, 'content-type': 'application/json', 'audit-id': 'bench' })
    if (!url.pathname.endsWith('/pods')) return
    const watching = { stream, node: nodeOf(url) }
    const after = Number(url.searchParams.get('resourceVersion'))
    const missed = this.#pods.filter((pod) => pod.version > after).sort((one, other) => one.version - other.version)
    for (const pod of missed) if (isFor(watching, pod)) stream.write(eventOf(pod))
    this.#watching.add(watching)
    stream.on('close', () => this.#watching.delete(watching))
  }

  async obey(order: CloudOrder): Promise<CloudReply> {
    const among = order.node === undefined ? this.#pods : this.#pods.filter(({ node }) => node === order.node)
    const start = performance.now()
    for (let sent = 0; sent < order.count; sent++) {
      const wait = start + (sent * 1_000) / order.perSecond - performance.now()
      if (wait > 0) await new Promise((resume) => setTimeout(resume, wait))
      const pod = among[sent % among.length]!
      pod.version = ++this.#version
      pod.stamp = process.hrtime.bigint()
      const event = eventOf(pod)
      const full: ServerHttp2Stream[] = []
      for (const watching of this.#watching) {
        if (isFor(watching, pod) && !watching.stream.write(event)) full.push(watching.stream)
      }
      // Faster than they read: at a steady rate they fall behind, in a burst they are waited for.
      if (order.perSecond === Number.POSITIVE_INFINITY) await Promise.all(full.map(drained))
    }
    return { version: this.#version, watches: this.#watching.size, tookMs: performance.now() - start }
  }
}

/** By its uid an edge knows its cluster. */
const systemNamespace = JSON.stringify({
  kind: 'Namespace',
  apiVersion: 'v1',
  metadata: { name: 'kube-system', uid: '6c0e5c0a-5c53-4d7e-9d0c-3a0d4c1b7e11', resourceVersion: '1' },
})

const notFound: Answer = {
  status: 404,
  body: '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404}',
}

function drained(stream: ServerHttp2Stream): Promise<void> {
  if (stream.destroyed || stream.writableLength < windowBytes) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      stream.removeListener('drain', end)
      stream.removeListener('close', end)
      resolve()
    }
    stream.on('drain', end)
    stream.on('close', end)
  })
}

function isFor({ node }: Watching, pod: CloudPod): boolean {
  return node === undefined || node === pod.node
}

function nodeOf(url: URL): string | undefined {
  return fieldOf(url, 'spec.nodeName')
}

function fieldOf(url: URL, field: string): string | undefined {
  const wanted = (url.searchParams.get('fieldSelector') ?? '').split(',')
  return wanted.find((one) => one.startsWith(`${field}=`))?.slice(field.length + 1)
}

function eventOf(pod: CloudPod): Buffer {
  return Buffer.from(`{"type":"MODIFIED","object":${pod.text()}}\n`)
}

function listOf(resource: Resource, version: number, items: readonly string[], next: string): string {
  const more = next === '' ? '' : `,"continue":"${next}"`
  const metadata = `{"resourceVersion":"${version}"${more}}`
  const head = `"kind":"${resource.listKind}","apiVersion":"${apiVersion(resource)}"`
  return `{${head},"metadata":${metadata},"items":[${items.join(',')}]}\n`
}

/** Its roles say what its reviews say. */
const everything: Readonly<Record<string, readonly string[]>> = {
  clusterroles: [
    roleOf({
      rules: [
        { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
        { verbs: ['*'], nonResourceURLs: ['*'] },
      ],
    }),
  ],
  clusterrolebindings: [
    roleOf({
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'everything' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:authenticated' }],
    }),
  ],
}

function roleOf(content: object): string {
  const metadata = { name: 'everything', uid: '0d5c1f0e-5d0a-4a6e-8f4a-0c2f6f1a9d01', resourceVersion: '1' }
  return JSON.stringify({ metadata, ...content })
}

/** Everybody is the same account, and may do everything. */
function reviewOf(path: string): Answer {
  const name = 'system:serviceaccount:team-00:default'
  const groups = ['system:serviceaccounts', 'system:serviceaccounts:team-00', 'system:authenticated']
  const subject = { userInfo: { username: name, uid: '0b9f3a56-9a10-4f8e-8a0e-57a4f2a3c111', groups } }
  const status = path.endsWith('/selfsubjectreviews') ? subject : { allowed: true }
  return { status: 201, body: JSON.stringify({ kind: 'Review', apiVersion: 'v1', status }) }
}

if (import.meta.main && process.send !== undefined) {
  const [folder = '', port = '0', count = '0'] = process.argv.slice(2)
  const pki = await openPki({ folder, hosts: ['127.0.0.1'], now: Date.now() })
  const cloud = new Cloud(Number(count))
  const server = createSecureServer({ ...pki.serving, ca: pki.ca, requestCert: true, rejectUnauthorized: false })
  server.on('session', (session) => session.on('error', () => {}))
  server.on('stream', (stream, headers) => cloud.serve(stream as ServerHttp2Stream, headers))
  server.listen(Number(port), '127.0.0.1', () => {
    process.send?.({ ready: { port: (server.address() as AddressInfo).port, ca: pki.ca, ...pki.admin } })
  })
  process.on('message', (order: CloudOrder) => void cloud.obey(order).then((reply) => process.send?.({ reply })))
  process.on('disconnect', () => process.exit())
}
