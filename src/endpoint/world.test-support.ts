/** A whole server without sockets: the endpoint over a memory store, asked directly. */

import { generateKeyPairSync } from 'node:crypto'
import { followDefinitions, objectsOf } from '../app/authority.ts'
import { bootstrap } from '../app/bootstrap.ts'
import { ownIdentity } from '../app/ownidentity.ts'
import { beginRoles } from '../app/roleaggregation.ts'
import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { AuthorityCopy } from '../cache/authoritycopy.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { openMemory } from '../store/memory.ts'
import type { Store } from '../store/store.ts'
import { Writer } from '../write/writer.ts'
import { Discovery } from './documents/discovery.ts'
import { Health } from './documents/health.ts'
import { IssuerDocuments } from './documents/issuer.ts'
import { Measures } from './documents/measures.ts'
import type { Peer, Request, Response } from './endpoint.ts'
import type { Holder } from './holder.ts'
import { OwnCatalog } from './owncatalog.ts'
import { AuthorityAnswers } from './request/authority.ts'
import { Endpoint } from './request/pipeline.ts'

export type Answer = { status: number; headers: Response['headers']; bytes: Buffer; text: string; json: any }

export type World = {
  copy: AuthorityCopy
  clock: FakeClock
  /** The answer as sockets get it. */
  respond(method: string, url: string, body?: unknown, headers?: Request['headers'], peer?: Peer): Promise<Response>
  ask(method: string, url: string, body?: unknown, headers?: Record<string, string>, peer?: Peer): Promise<Answer>
  /** Of clients that show no certificate. */
  readonly stranger: Peer
  /** The administrator's machine, its requests counted as those of another holder. */
  peerOf(holder: Holder): Peer
  /** One round of the sweeper; answers how much is still leaving. */
  sweep(): Promise<number>
  /** Resolves when aggregated roles have their rules. */
  aggregate(): Promise<boolean>
  /** The body as it comes, for watches. */
  open(url: string, headers?: Record<string, string>): Promise<AsyncIterator<Buffer>>
}

const certificate = { name: 'ake-admin', organizations: ['system:masters'], issuedBy: 'own', expiresMs: 0 } as const
const admin: Peer = { certificate }
const { privateKey: accountKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })

type Parts = {
  readonly store?: Store
  readonly historyBytesMax?: number
  readonly clock?: FakeClock
  /** Whether it judges by roles. */
  readonly rbac?: boolean
  /** Whether it has what a whole server has besides resources: health, discovery. */
  readonly documents?: boolean
}

export async function openWorld(parts: Parts = {}): Promise<World> {
  const store = parts.store ?? openMemory({ historyBytesMax: parts.historyBytesMax ?? 1 << 24 })
  const clock = parts.clock ?? fakeClock()
  const log = silentLog
  const resources = new OwnCatalog()
  const copy = await AuthorityCopy.open({ store, clock, log, planOf: (interest) => resources.planOf(interest) })
  followDefinitions(copy, resources)
  const mode = parts.rbac === true ? 'rbac' : 'open'
  const { authentication, authorization, writing } = ownIdentity({ copy, key: accountKey, authorization: mode, clock })
  const writer = new Writer({ ...writing, objectsOf: objectsOf(copy, resources), catalog: resources, clock, log })
  await bootstrap(writer, resources)
  const aggregation = parts.rbac === true ? await beginRoles({ copy, resources, writer, clock, log }) : undefined
  const measures = new Measures({ copy, catalog: resources, store })
  const health = new Health({ version: builtinFacts().version, checks: [] })
  const discovery = new Discovery({ resources, serverAddress: '192.0.2.1:6443', paths: ['/healthz', '/version'] })
  const issuer = new IssuerDocuments(writing.issuer.documents('192.0.2.1:6443'))
  const documents = parts.documents === true ? [health, discovery, issuer, measures] : [measures]
  const asked = { authentication, authorization, catalog: resources }
  const answering = new AuthorityAnswers({ ...asked, copy, writer, documents, clock })
  const endpoint = new Endpoint({ ...asked, answering, measures, log })
  const holders = new Map<Peer, Holder>()
  const handle = (method: string, url: string, body: unknown, headers: Request['headers'] = {}, peer = admin) => {
    const bytes = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
    const whole = Buffer.isBuffer(body) ? body : Buffer.from(bytes)
    const stream = async function* () {
      yield whole
    }
    const hasBody = bytes !== ''
    const request = { method, url, headers, hasBody, body: async () => whole, stream, peer }
    const holder = holders.get(peer)
    return endpoint.handle(holder === undefined ? request : { ...request, holder: () => holder })
  }
  return {
    copy,
    clock,
    respond: handle,
    sweep: () => writer.sweeper.sweep(),
    aggregate: async () => (await aggregation?.settle()) ?? true,
    stranger: {},
    peerOf(holder) {
      const peer = { ...admin }
      holders.set(peer, holder)
      return peer
    },
    async ask(method, url, body, headers = {}, peer = admin) {
      const response = await handle(method, url, body, headers, peer)
      const bytes = await whole(response.body)
      const text = bytes.toString()
      const isJson = String(response.headers['content-type']).startsWith('application/json')
      const json = isJson ? JSON.parse(text) : undefined
      return { status: response.status, headers: response.headers, bytes, text, json }
    },
    async open(url, headers = {}) {
      const { body } = await handle('GET', url, undefined, headers)
      if (Buffer.isBuffer(body) || !(Symbol.asyncIterator in body)) throw new Error('not a stream')
      return body[Symbol.asyncIterator]()
    },
  }
}

async function whole(body: Response['body']): Promise<Buffer> {
  if (Buffer.isBuffer(body)) return body
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts)
}
