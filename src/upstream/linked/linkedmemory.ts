/**
 * What is remembered of an interest between two links: a snapshot that was cut, which the next link goes on with, and that objects were older
 * than a copy has them. Whether that copy is of a past that no longer exists only the API server can tell.
 */
import type { PutAside } from './aside.ts'
import { isForgotten } from './exactly.ts'
import { LinkedCopy } from './linkedcopy.ts'

export class LinkedMemory {
  unfinished: { readonly epoch: number; readonly aside: PutAside } | undefined
  /** What is followed at the moment. */
  copy = new LinkedCopy()
  /** Whether the API server has forgotten that version is asked before the next following, and told. */
  #fallen: { readonly version: number; isForgotten: boolean } | undefined

  /** It is followed no more, unless another following has begun. */
  leave(copy: LinkedCopy): void {
    if (this.copy === copy) this.copy = new LinkedCopy()
  }

  /** Objects were older than a copy of this version has them; false: that is known already. */
  fell(version: number): boolean {
    if (this.#fallen?.version === version) return false
    this.#fallen = { version, isForgotten: false }
    return true
  }

  /**
   * Whether the copy was seen to be of a past that no longer exists though the hub knows of no other: no past goes back. `version` is
   * that of the copy; undefined: what is held of it is of no past that counts.
   */
  async isPutBack(
    version: number | undefined,
    asking: Omit<Parameters<typeof isForgotten>[0], 'exactly'>,
  ): Promise<boolean> {
    const fallen = this.#fallen
    if (fallen === undefined || fallen.isForgotten) return false
    if (fallen.version !== version) {
      this.#fallen = undefined
      return false
    }
    fallen.isForgotten = await isForgotten({ ...asking, exactly: version })
    if (!fallen.isForgotten) this.#fallen = undefined
    return !fallen.isForgotten
  }
}
