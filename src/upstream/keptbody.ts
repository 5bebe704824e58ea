/**
 * A request's body that comes as a stream, kept while it goes until the request is answered: where a dying connection surely did
 * not process it, it is sent again whole. Beyond its limits it is passed on all the same, once only.
 */

type KeptPiece = { readonly piece: Buffer | undefined; next?: Promise<KeptPiece> }

/** What all bodies of one pool may keep together. A body for which there is no room is not kept. */
export class KeptRoom {
  readonly bodyBytesMax: number
  #free: number

  constructor({ bodyBytesMax, bytesMax }: { readonly bodyBytesMax: number; readonly bytesMax: number }) {
    this.bodyBytesMax = bodyBytesMax
    this.#free = bytesMax
  }

  take(bytes: number): boolean {
    if (bytes > this.#free) return false
    this.#free -= bytes
    return true
  }

  give(bytes: number): void {
    this.#free += bytes
  }
}

export class KeptBody {
  readonly #source: AsyncIterator<Buffer>
  readonly #room: KeptRoom
  /** Before the first piece; undefined once another attempt would not have all of it, or none comes. */
  #first: KeptPiece | undefined = { piece: undefined }
  #bytes = 0
  #readers = 0

  constructor(source: AsyncIterable<Buffer>, room: KeptRoom) {
    this.#source = source[Symbol.asyncIterator]()
    this.#room = room
  }

  /** Whether another attempt would have all of it. */
  get isWhole(): boolean {
    return this.#first !== undefined
  }

  /** From its beginning. One that is left behind may still wait for a piece: the next attempt gets that too. */
  async *attempt(): AsyncGenerator<Buffer, void, void> {
    // Not a parameter: a generator would hold it, and with it every piece of a body of any length.
    let at = this.#first
    if (at === undefined) throw new Error('a body that is not kept is sent once')
    this.#readers++
    try {
      for (;;) {
        at.next ??= this.#pull()
        at = await at.next
        if (at.piece === undefined) return
        yield at.piece
      }
    } finally {
      this.#readers--
      this.#leaveIfDone()
    }
  }

  /** No attempt follows: what is still to be sent is not kept any longer. */
  settle(): void {
    this.#forget()
    this.#leaveIfDone()
  }

  async #pull(): Promise<KeptPiece> {
    const { value, done } = await this.#source.next()
    if (done === true) return { piece: undefined }
    const piece = value as Buffer
    if (this.isWhole) this.#keep(piece.length)
    return { piece }
  }

  #keep(bytes: number): void {
    const fits = this.#bytes + bytes <= this.#room.bodyBytesMax && this.#room.take(bytes)
    if (fits) this.#bytes += bytes
    else this.#forget()
  }

  #forget(): void {
    this.#first = undefined
    this.#room.give(this.#bytes)
    this.#bytes = 0
  }

  /** Its source is told that it is not read any further. */
  #leaveIfDone(): void {
    if (this.#readers === 0 && !this.isWhole) this.#source.return?.()?.catch(() => {})
  }
}
