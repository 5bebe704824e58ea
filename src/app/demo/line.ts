/**
 * The network between the demo's edges and their hub: a TCP proxy on loopback with a switch. Cut, what is open is destroyed, and
 * what comes is taken and stays silent, as where radio is lost; mended, what waits goes on. It counts what went over it.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

const host = '127.0.0.1'

export class DemoLine {
  readonly #port: number
  readonly #server: Server
  /** What is open, or waits for the line to be mended. */
  readonly #clients = new Set<Socket>()
  readonly #waiting = new Set<Socket>()
  #isCut = false
  /** Of connections that are over. */
  #bytesBefore = 0

  private constructor(port: number) {
    this.#port = port
    this.#server = createServer({ pauseOnConnect: true, noDelay: true }, (client) => this.#take(client))
  }

  /** To what listens at a port of this machine. */
  static async open(port: number): Promise<DemoLine> {
    const line = new DemoLine(port)
    await once(line.#server.listen(0, host), 'listening')
    return line
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get isCut(): boolean {
    return this.#isCut
  }

  /** Both ways, TLS and all. */
  get bytes(): number {
    let bytes = this.#bytesBefore
    for (const client of this.#clients) bytes += bytesOf(client)
    return bytes
  }

  cut(): void {
    this.#isCut = true
    for (const client of this.#clients) client.destroy()
  }

  mend(): void {
    this.#isCut = false
    for (const client of this.#waiting) this.#carry(client)
    this.#waiting.clear()
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const client of this.#clients) client.destroy()
    await closed
  }

  #take(client: Socket): void {
    this.#clients.add(client)
    client.on('error', () => {})
    client.once('close', () => {
      this.#bytesBefore += bytesOf(client)
      this.#clients.delete(client)
      this.#waiting.delete(client)
    })
    if (this.#isCut) this.#waiting.add(client)
    else this.#carry(client)
  }

  #carry(client: Socket): void {
    const server = connect({ host, port: this.#port, noDelay: true })
    server.on('error', () => {}).once('close', () => client.destroy())
    client.once('close', () => server.destroy())
    client.pipe(server).pipe(client)
  }
}

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten
}
