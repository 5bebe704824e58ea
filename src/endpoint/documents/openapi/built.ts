/** Documents as bytes, by a name that has their hash in it: under the same name every caller means the same bytes. */

/** The largest documents (v2, core v1) are about a megabyte each: room for what kubectl asks for in a row. */
const documentBytesMax = 4 * 1024 * 1024

export class BuiltDocuments {
  /** The one asked for last at the end. */
  readonly #documents = new Map<string, Promise<Buffer> | Buffer>()
  #bytes = 0

  /** Built once however many ask at the same time; the least wanted go when the room is full. */
  async take(key: string, build: () => Promise<Buffer> | Buffer): Promise<Buffer> {
    const known = this.#documents.get(key)
    if (known !== undefined) {
      this.#documents.delete(key)
      this.#documents.set(key, known)
      return known
    }
    const building = build()
    this.#documents.set(key, building)
    let bytes: Buffer
    try {
      bytes = await building
    } catch (error) {
      this.#documents.delete(key)
      throw error
    }
    this.#documents.set(key, bytes)
    this.#bytes += bytes.length
    for (const [old, document] of this.#documents) {
      if (this.#bytes <= documentBytesMax || old === key) break
      if (!Buffer.isBuffer(document)) continue
      this.#documents.delete(old)
      this.#bytes -= document.length
    }
    return bytes
  }
}
