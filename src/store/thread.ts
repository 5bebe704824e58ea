/**
 * The thread of the index as the main thread has it: one that ends unexpectedly (out of memory, a bug) is followed by
 * another, but not by one after the other without rest.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker, type WorkerOptions } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import type { FromWorker, ThreadParts, ToWorker } from './wire.ts'

/** The V8 heap of the thread stays small: it holds one transaction at a time, bodies lie outside. */
const workerHeapMb = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 }
/** A thread that keeps ending is started no more often than this: each start reads the whole history's sizes. */
const restartsMax = 3
const restartWindowMs = 60_000

type Live = { readonly port: MessagePort; why: Error }

type IndexThreadParts = {
  readonly clock: Clock
  readonly startThread: (options: WorkerOptions) => Worker
  readonly partsOf: () => ThreadParts
  readonly receive: (message: FromWorker) => void
  /** Everything it said has been received; nothing that it was asked will be answered. */
  readonly ended: (why: Error) => void
  /** For now there will be no other. */
  readonly gaveUp: (why: Error) => void
}

export class IndexThread {
  readonly #parts: IndexThreadParts
  /** Undefined while the last one has ended and the next may not start yet. */
  #live: Live | undefined
  #restarts: number[] = []
  #isOver = false

  constructor(parts: IndexThreadParts) {
    this.#parts = parts
    this.#live = this.#start()
  }

  #start(): Live {
    const { port1, port2 } = new MessageChannel()
    const worker = this.#parts.startThread({
      workerData: { ...this.#parts.partsOf(), port: port2 },
      transferList: [port2],
      resourceLimits: workerHeapMb,
      name: 'store',
    })
    const live: Live = { port: port1, why: new Error('it ended by itself') }
    port1.on('message', (message: FromWorker) => this.#parts.receive(message))
    worker.on('error', (error: Error) => {
      live.why = error
    })
    // Not on an error already: only when it has ended is its file closed.
    worker.on('exit', () => this.#ended(live))
    return live
  }

  /** The end of the thread may be told before what it said last: why it cannot go on, or what it has found. */
  #ended(live: Live): void {
    if (this.#isOver) return
    for (;;) {
      const said = this.#isOver ? undefined : receiveMessageOnPort(live.port)
      if (said === undefined) break
      this.#parts.receive(said.message as FromWorker)
    }
    if (this.#isOver) return
    live.port.close()
    this.#live = undefined
    this.#parts.ended(live.why)
    if (!this.#isOver && this.#restart() === undefined) this.#parts.gaveUp(live.why)
  }

  #restart(): Live | undefined {
    const now = this.#parts.clock.steady()
    this.#restarts = this.#restarts.filter((at) => now - at < restartWindowMs)
    if (this.#restarts.length >= restartsMax) return undefined
    this.#restarts.push(now)
    this.#live = this.#start()
    return this.#live
  }

  /** Says why it is going to end. */
  blame(why: Error): void {
    if (this.#live !== undefined) this.#live.why = why
  }

  /** False when there is no thread, and may not be one for now. */
  send(message: ToWorker): boolean {
    if (this.#isOver) return false
    const live = this.#live ?? this.#restart()
    live?.port.postMessage(message)
    return live !== undefined
  }

  get isLive(): boolean {
    return this.#live !== undefined
  }

  /** No more messages, no more threads. */
  stop(): void {
    this.#isOver = true
    this.#live?.port.close()
  }
}

export function startWorker(options: WorkerOptions): Worker {
  return new Worker(new URL('./threadstart.ts', import.meta.url), options)
}
