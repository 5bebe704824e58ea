/** A client of RFC 6455 as bare as can be, so that a proof sees every byte of the handshake and every frame as it came. */
import { connect } from 'node:tls'

/** Longer than anything takes that a proof waits for. */
const answerMsMax = 10_000

export type Server = { readonly url: string; readonly ca: string; readonly cert: string; readonly key: string }

export type Opening = {
  readonly path: string
  /** Over those of a browser; undefined leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Without a certificate. */
  readonly anonymous?: boolean
  /** Sent once the handshake is answered. */
  readonly send?: Buffer
  /** How many messages are waited for; without it, until the other side ends. */
  readonly messages?: number
  /** Done once the handshake is answered. */
  readonly meanwhile?: () => Promise<void>
}

export type Frame = { readonly opcode: number; readonly payload: Buffer }

export type Told = {
  readonly status: string
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly frames: readonly Frame[]
  /** Of an answer that is no upgrade. */
  readonly body: string
}

const browser = {
  Host: 'cluster.example',
  Upgrade: 'websocket',
  Connection: 'Upgrade',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version': '13',
  Origin: 'https://page.example',
}

export function openWebSocket(server: Server, opening: Opening): Promise<Told> {
  const { hostname, port } = new URL(server.url)
  const { ca, cert, key } = server
  const { path, anonymous = false, send, messages = Number.POSITIVE_INFINITY, meanwhile } = opening
  const given = { ...browser, ...opening.headers }
  const lines = Object.entries(given).filter(([, value]) => value !== undefined)
  const ask = `GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: hostname,
      port: Number(port),
      ca,
      ...(anonymous ? {} : { cert, key }),
      ALPNProtocols: ['http/1.1'],
    })
    let bytes = Buffer.alloc(0)
    let isAnswered = false
    const late = setTimeout(() => done(), answerMsMax)
    const done = () => {
      clearTimeout(late)
      socket.destroy()
      resolve(read(bytes))
    }
    socket.on('secureConnect', () => socket.write(ask))
    socket.on('error', (error) => (isAnswered ? done() : reject(error)))
    socket.on('end', done)
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      if (!isAnswered && bytes.includes('\r\n\r\n')) {
        isAnswered = true
        if (send !== undefined) socket.write(send)
        meanwhile?.().catch(reject)
      }
      const told = read(bytes)
      const length = told.headers.get('content-length')
      if (length !== undefined && told.body.length >= Number(length)) done()
      if (told.frames.length >= messages) done()
    })
  })
}

/** As a client has to send it. */
export function clientFrame(opcode: number, payload: string, isMasked = true): Buffer {
  const bytes = Buffer.from(payload, 'latin1')
  const head = [0x80 | opcode, (isMasked ? 0x80 : 0) | bytes.length, ...(isMasked ? [0, 0, 0, 0] : [])]
  return Buffer.concat([Buffer.from(head), bytes])
}

function read(bytes: Buffer): Told {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return { status: '', headers: new Map(), frames: [], body: '' }
  const [status = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  const rest = bytes.subarray(end + 4)
  if (!status.includes(' 101 ')) return { status, headers, frames: [], body: rest.toString() }
  return { status, headers, frames: framesIn(rest), body: '' }
}

function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at + 2 <= bytes.length; ) {
    const opcode = (bytes[at] as number) & 0x0f
    const short = bytes[at + 1] as number
    const head = short === 127 ? 10 : short === 126 ? 4 : 2
    if (at + head > bytes.length) break
    const length =
      short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short === 126 ? bytes.readUInt16BE(at + 2) : short
    if (at + head + length > bytes.length) break
    frames.push({ opcode, payload: bytes.subarray(at + head, at + head + length) })
    at += head + length
  }
  return frames
}
