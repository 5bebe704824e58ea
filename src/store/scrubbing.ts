/**
 * The slow scrub as the main thread has it: it asks for the next step when that is due, tells what was found damaged, and hands
 * back the bytes that the copy still holds, so that they are written again.
 */
import type { Clock } from '../base/clock.ts'
import { type DamagedBody, type DamagedHolder, type ScrubProgress, stepEveryMs } from './scrub.ts'
import type { HeldBytes, ScrubFigures } from './store.ts'
import type { FromWorker, ToWorker } from './wire.ts'

type ScrubbingParts = {
  readonly clock: Clock
  readonly send: (message: ToWorker) => void
  readonly onDamage: (damage: DamagedHolder) => void
  readonly onMended: (mended: DamagedHolder) => void
}

export class Scrubbing {
  readonly #parts: ScrubbingParts
  #cancel: (() => void) | undefined
  #held: HeldBytes = () => undefined
  /** Under way to be written again. */
  readonly #mending = new Map<number, DamagedHolder>()
  #progress: ScrubProgress = { bytes: 0, of: 0, rounds: 0 }
  #damaged = 0
  #mended = 0

  constructor(parts: ScrubbingParts) {
    this.#parts = parts
  }

  get figures(): ScrubFigures {
    return { ...this.#progress, damaged: this.#damaged, mended: this.#mended }
  }

  start(): void {
    this.#cancel = this.#parts.clock.setTimer(stepEveryMs, () => {
      this.#parts.send({ kind: 'scrub' })
      this.start()
    })
  }

  stop(): void {
    this.#cancel?.()
  }

  /** Whom the bytes of damaged objects are asked of. */
  mendFrom(held: HeldBytes): void {
    this.#held = held
  }

  receive(message: Extract<FromWorker, { kind: 'scrubbed' | 'mended' }>): void {
    if (message.kind === 'mended') {
      const one = this.#mending.get(message.id)
      this.#mending.delete(message.id)
      if (one === undefined || !message.isDone) return
      this.#mended++
      this.#parts.onMended(one)
      return
    }
    this.#progress = message.progress
    for (const body of message.damaged) this.#found(body)
  }

  #found({ id, holders }: DamagedBody): void {
    // Nothing holds it any more: it was about to go.
    if (holders.length === 0) return
    this.#damaged++
    for (const holder of holders) this.#parts.onDamage(holder)
    for (const holder of holders) {
      const held = holder.kind === 'record' ? undefined : this.#held(holder.interest, holder.key)
      if (held === undefined) continue
      this.#mending.set(id, holder)
      // A copy of its own: a view would take everything with it that its buffer holds.
      this.#parts.send({ kind: 'mend', id, version: held.version, body: new Uint8Array(held.bytes) })
      return
    }
  }
}
