/**
 * What the link costs beside plain watches of the same. The edges begin with all objects and the documents of the API, megabytes
 * that plain watches have no part in: the comparison begins when the line has gone quiet.
 */

/** Bytes since the start of the demo: over the line, and by a plain watch for each edge. */
type CostReading = { readonly line: number; readonly plain: number }

export type LinkBytes = {
  /** Until the comparison began, or until now. */
  readonly start: number
  /** Since then; undefined before. */
  readonly since: CostReading | undefined
}

/** A change costs both edges together less than 1 KB; documents come as fast as the machine can. */
const quietBytesMax = 8 * 1024
/** A machine that is busy may pause for one. */
const quietTimes = 3

export class LinkCost {
  #times = 0
  #last = 0
  #start: CostReading | undefined

  /** To be told regularly. */
  read(now: CostReading): LinkBytes {
    const isQuiet = now.line - this.#last < quietBytesMax
    this.#times = isQuiet && this.#last > 0 ? this.#times + 1 : 0
    this.#last = now.line
    if (this.#times >= quietTimes) this.#start ??= now
    const start = this.#start
    if (start === undefined) return { start: now.line, since: undefined }
    return { start: start.line, since: { line: now.line - start.line, plain: now.plain - start.plain } }
  }
}
