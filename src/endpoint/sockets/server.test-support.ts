/** A server on real sockets over made-up answers, and clients of it that a test writes to by hand. */
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { silentLog } from '../../base/log.ts'
import { type CertificateRequest, issueCertificate, type KeyPair } from '../../pki/certificate.ts'
import type { Traffic } from '../documents/measures.ts'
import { Server } from './server.ts'

type ServerParts = ConstructorParameters<typeof Server>[0]
type Given = Pick<ServerParts, 'handle' | 'upgrade' | 'whose' | 'limits' | 'compress'> & {
  callersCa?: string
  addresses?: ServerParts['addresses']
}

export type Running = { server: Server; url: string; port: number; ports: readonly number[]; traffic: Traffic }

const dayMs = 24 * 3600 * 1000

export function authority(commonName: string): KeyPair {
  return issueCertificate({ subject: { commonName }, use: 'authority', ...dates() })
}

export function issuedBy(issuer: KeyPair, issuerName: string, request: Partial<CertificateRequest>): KeyPair {
  const subject = { commonName: 'somebody' }
  return issueCertificate({ subject, use: 'client', ...dates(), ...request } as CertificateRequest, {
    name: { commonName: issuerName },
    key: createPrivateKey(issuer.key),
  })
}

function dates() {
  return { notBefore: Date.now() - dayMs, notAfter: Date.now() + dayMs }
}

export const own = authority('ake-ca')
export const serving = issuedBy(own, 'ake-ca', { use: 'server', hosts: ['127.0.0.1'], subject: { commonName: 'ake' } })
export const admin = issuedBy(own, 'ake-ca', { subject: { commonName: 'ake-admin', organization: 'system:masters' } })

export async function withServer(given: Given, body: (running: Running) => Promise<void>): Promise<void> {
  const traffic: Traffic = { connections: 0, bytesOut: 0, bytesIn: 0, refused: 0, stalled: 0 }
  const { callersCa, limits, addresses = [{ host: '127.0.0.1', port: 0 }], ...asked } = given
  const server = new Server({
    ...asked,
    addresses,
    tls: { ...serving, clientCa: own.cert, ...(callersCa === undefined ? {} : { callersCa }) },
    traffic,
    log: silentLog,
    limits: { closingMsMax: 50, ...limits },
  })
  const ports = (await server.listen()).map(({ port }) => port)
  const [port = 0] = ports
  try {
    await body({ server, url: `https://127.0.0.1:${port}`, port, ports, traffic })
  } finally {
    await server.close()
  }
}

/** A connection for HTTP/1.1 by hand that ends only its own direction. */
export async function open({ port }: Running, more: ConnectionOptions = admin): Promise<TLSSocket> {
  const socket = connect({
    ...{ host: '127.0.0.1', port, ca: own.cert, ALPNProtocols: ['http/1.1'], allowHalfOpen: true },
    ...more,
  })
  await once(socket, 'secureConnect')
  return socket
}

/** Reads until the text holds `end`, and leaves the rest unread. */
export async function readUntil(socket: TLSSocket, end: string): Promise<string> {
  let text = ''
  while (!text.includes(end)) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) text += chunk.toString('latin1')
    else await once(socket, 'readable')
  }
  return text
}

/** Everything up to the end of the other's direction; ours stays open. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
