/** Where the demo speaks: sentences that stay, and on a terminal below them a block that is drawn anew in its place. */

export class DemoScreen {
  readonly #output: NodeJS.WriteStream
  #block = ''

  constructor(output: NodeJS.WriteStream) {
    this.#output = output
  }

  get isLive(): boolean {
    return this.#output.isTTY
  }

  say(text: string): void {
    this.#output.write(`${this.#cleared()}${text}\n${this.#block}`)
  }

  draw(block: string): void {
    const cleared = this.#cleared()
    const columns = this.#output.columns || 80
    // A line that goes on in the next one would be a line that is not cleared.
    this.#block = block.replace(/^.*$/gm, (line) => line.slice(0, columns - 1))
    this.#output.write(`${cleared}${this.#block}`)
  }

  #cleared(): string {
    const lines = this.#block.split('\n').length - 1
    return lines === 0 ? '' : `\x1b[${lines}F\x1b[0J`
  }
}
