/** A watch of which only the number of events counts. */
import type { Address } from './bench.ts'
import { watchMany } from './reader.ts'

export type CountedWatch = {
  /** Events since it was opened. Throws once a stream of it has failed. */
  seen(): number
  close(): void
}

/** `streams` of the same watch on one connection. */
export async function countedWatch({ url, tls }: Address, path: string, streams = 1): Promise<CountedWatch> {
  let seen = 0
  let failure: string | undefined
  const watching = watchMany({
    ...{ at: { url, tls }, path, streams },
    events: (count) => {
      seen += count
    },
    latency: () => {},
    failed: (why) => {
      failure ??= `a watch at ${url}: ${why}`
    },
  })
  await watching.opened
  return {
    seen: () => {
      if (failure !== undefined) throw new Error(failure)
      return seen
    },
    close: watching.close,
  }
}
