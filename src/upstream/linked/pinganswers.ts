/** Readers that wait for the hub's answer to a ping: each hears whether it came within the reader's time. */
import type { Clock } from '../../base/clock.ts'

export class PingAnswers {
  readonly #clock: Clock
  #waiting: ((isAnswered: boolean) => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  wait(msMax: number): Promise<boolean> {
    return new Promise((resolve) => {
      const answer = (isAnswered: boolean) => {
        cancel()
        resolve(isAnswered)
      }
      const cancel = this.#clock.setTimer(msMax, () => {
        this.#waiting = this.#waiting.filter((one) => one !== answer)
        resolve(false)
      })
      this.#waiting.push(answer)
    })
  }

  /** The hub has answered, or never will. */
  settle(isAnswered: boolean): void {
    for (const answer of this.#waiting.splice(0)) answer(isAnswered)
  }
}
