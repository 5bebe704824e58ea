/** When history is forgotten and how much of it at once, the same for every engine. */

/** What an entry costs besides the body it keeps alive: its row and its share of pages. */
export const entryOverheadBytes = 128
/** Forgetting is spread over commits, so that none of them waits long: this many entries for each one written. */
const forgetPerEntry = 4
/** At least so many at once: forgetting one entry touches as many pages of the file as forgetting dozens together. */
const forgetEntriesMin = 64

export function forgetEntriesMax(written: number): number {
  return Math.max(forgetEntriesMin, written * forgetPerEntry)
}

/** Once the limit is passed history shrinks to a little below it, so that the next commits need not forget. */
export function historyBytesAfter(historyBytesMax: number): number {
  return historyBytesMax - historyBytesMax / 16
}
