/**
 * The block whose pieces are coming: one at a time for each link, so that what a hub claims costs an edge no more than
 * one of them, and only as far as it has come.
 */
import { LinkFault } from '../frames/bytes.ts'
import type { LinkFrame } from '../frames/frames.ts'
import { type BlockContent, decodeBlock } from './block.ts'
import type { StagedChange } from './session.ts'

type BlockPiece = Extract<LinkFrame, { readonly kind: 'block' }>

export class BlockAssembly {
  #first: BlockPiece | undefined
  #pieces: Buffer[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** What had come of a block of this interest does not count: it begins again, or was given up. */
  drop(interest: number): void {
    if (this.#first?.interest === interest) this.#clear()
  }

  /** What is in the block once its last piece has come. */
  add(piece: BlockPiece): { readonly of: BlockContent; readonly changes: readonly StagedChange[] } | undefined {
    const first = this.#first ?? piece
    const isSame =
      first.interest === piece.interest &&
      first.size === piece.size &&
      first.version === piece.version &&
      first.after === piece.after
    if (!isSame || piece.offset !== this.#bytes || piece.piece.length === 0)
      throw new LinkFault('a piece that does not fit')
    if (piece.offset + piece.piece.length > piece.size) throw new LinkFault('a piece beyond its block')
    this.#first = first
    this.#pieces.push(piece.piece)
    this.#bytes += piece.piece.length
    if (this.#bytes < piece.size) return undefined
    const whole = this.#pieces.length === 1 ? piece.piece : Buffer.concat(this.#pieces)
    this.#clear()
    return decodeBlock(whole)
  }

  #clear(): void {
    this.#first = undefined
    this.#pieces = []
    this.#bytes = 0
  }
}
