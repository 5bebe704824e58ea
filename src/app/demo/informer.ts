/**
 * What a plain client does at an endpoint: list each resource, then watch it from there. At the edges it shows that watches stay
 * open; at the cloud it tells what a watch costs that is never cut: bodies alone, and no list a second time.
 */
import type { DemoClient } from './democlient.ts'

type Listed = { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly ListedItem[] }
type ListedItem = { readonly metadata: { readonly name: string; readonly resourceVersion: string } }
type WatchLine = { readonly type: string; readonly object: ListedItem }

/** A demo that is left open over a weekend is not asked for again. */
const watchSeconds = 7 * 24 * 3600

export class DemoInformer {
  readonly #client: DemoClient
  readonly #paths: readonly string[]
  /** The highest that it was shown. */
  version = 0
  objects = 0
  events = 0
  /** Of what its watches told, as JSON. */
  bytes = 0
  /** Watches that are open; one that ends is not opened again, so that it can be counted. */
  open = 0

  constructor(client: DemoClient, paths: readonly string[]) {
    this.#client = client
    this.#paths = paths
  }

  async start(): Promise<void> {
    await Promise.all(this.#paths.map((path) => this.#follow(path)))
  }

  get watches(): number {
    return this.#paths.length
  }

  async #follow(path: string): Promise<void> {
    const { metadata, items } = JSON.parse(await this.#client.send('GET', path)) as Listed
    this.objects += items.length
    // That of the list counts what happened elsewhere, too; at an edge it is how far this resource is.
    for (const item of items) this.#reached(item)
    this.open++
    const query = `watch=1&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=${watchSeconds}`
    this.#client.watch(`${path}?${query}`, {
      line: (line) => this.#take(line),
      over: () => {
        this.open--
      },
    })
  }

  #take(line: string): void {
    const { type, object } = JSON.parse(line) as WatchLine
    this.events++
    this.bytes += Buffer.byteLength(line) + 1
    if (type === 'ADDED') this.objects++
    if (type === 'DELETED') this.objects--
    this.#reached(object)
  }

  #reached({ metadata }: ListedItem): void {
    this.version = Math.max(this.version, Number(metadata.resourceVersion))
  }
}
