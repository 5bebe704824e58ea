/**
 * Where the values of a message stand, noted while passing over them once: two numbers per value in a frame, which is a run
 * of cells; what repeats is a chain of cells. Neither JSON nor protobuf has its fields in the order of the other.
 */

/** What stays allocated between two messages: enough for a large pod. */
const cellsKept = 1 << 13

export class Frames {
  cells = new Int32Array(cellsKept)
  /** The first cell is never given out: 0 means that there is nothing. */
  used = 1

  /** So many cells, all 0; answers the first. */
  take(count: number): number {
    const start = this.used
    const end = start + count
    if (end > this.cells.length) {
      const larger = new Int32Array(Math.max(end, this.cells.length * 2))
      larger.set(this.cells)
      this.cells = larger
    } else for (let cell = start; cell < end; cell++) this.cells[cell] = 0
    this.used = end
    return start
  }

  /** Gives everything back. */
  clear(): void {
    this.used = 1
    if (this.cells.length > cellsKept) this.cells = new Int32Array(cellsKept)
  }
}
