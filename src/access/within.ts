/**
 * A wait with a limit: the answer if it comes in time, else what `late` says.
 */
import type { Clock } from '../base/clock.ts'

export function within<T>(clock: Clock, ms: number, answer: Promise<T>, late: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(ms, () => resolve(late()))
    answer.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error: unknown) => {
        cancel()
        reject(error)
      },
    )
  })
}
