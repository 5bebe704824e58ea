/** The Go program that knows how kube-apiserver's own code reads and writes a message, as something to be asked. */
import { type ChildProcess, spawn } from 'node:child_process'
import { buildGoProgram } from '../goprogram.ts'

/** What it made of a message, or why it refused it. */
export type Judgement = { readonly bytes: Buffer } | { readonly fault: string }

type Waiting = { readonly resolve: (judgement: Judgement) => void; readonly reject: (error: Error) => void }

const lengthBytes = 4
const well = 0x6f

export class Judge {
  readonly #child: ChildProcess
  readonly #waiting: Waiting[] = []
  #pieces: Buffer[] = []
  #size = 0

  static async start(progress: (line: string) => void): Promise<Judge> {
    return new Judge(await buildGoProgram('protobufjudge', progress))
  }

  constructor(program: string) {
    this.#child = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#take(chunk))
    this.#child.on('close', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error('the judge has ended'))
    })
  }

  /** What a message in its envelope is as JSON. */
  json(message: Buffer): Promise<Judgement> {
    return this.#ask('j', message)
  }

  /** What an object in JSON is as a message in its envelope. */
  protobuf(object: Buffer): Promise<Judgement> {
    return this.#ask('p', object)
  }

  stop(): void {
    this.#child.stdin?.end()
  }

  #ask(what: 'j' | 'p', content: Buffer): Promise<Judgement> {
    const head = Buffer.alloc(lengthBytes + 1, what)
    head.writeUInt32BE(content.length + 1)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#child.stdin?.write(Buffer.concat([head, content]))
    })
  }

  #take(chunk: Buffer): void {
    this.#pieces.push(chunk)
    this.#size += chunk.length
    if (this.#size < lengthBytes) return
    let bytes = Buffer.concat(this.#pieces)
    while (bytes.length >= lengthBytes) {
      const end = lengthBytes + bytes.readUInt32BE(0)
      if (bytes.length < end) break
      const content = Buffer.from(bytes.subarray(lengthBytes + 1, end))
      const isWell = bytes[lengthBytes] === well
      this.#waiting.shift()?.resolve(isWell ? { bytes: content } : { fault: content.toString() })
      bytes = bytes.subarray(end)
    }
    this.#pieces = [bytes]
    this.#size = bytes.length
  }
}
