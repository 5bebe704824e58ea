/** Adds paths to a set while a walk goes down and up a value: what the walk has come through is not looked up again. */

import { FieldSet } from './fieldset.ts'
import type { Path } from './pathelement.ts'

export class PathWriter {
  readonly set = FieldSet.of()
  /** The sets below the first steps of the path the walk is at, as far as they were needed. */
  readonly #below: FieldSet[] = [this.set]

  /** `path` is where the walk is. */
  insert(path: Path): void {
    const last = path.length - 1
    if (last < 0) return
    for (let at = this.#below.length - 1; at < last; at++) this.#below.push(this.#below[at]!.descend(path[at]!))
    this.#below[last]!.mark(path[last]!)
  }

  /** The walk has gone up: its path has only so many steps now. */
  leave(steps: number): void {
    if (this.#below.length > steps + 1) this.#below.length = steps + 1
  }
}
