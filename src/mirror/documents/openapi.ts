/**
 * OpenAPI, fetched before a caller asks: without it `kubectl explain` and `kubectl apply --dry-run=client` end with the line to
 * the cloud. In the forms that kubectl asks for, each again only when the index names another hash of it.
 */
import { Bell } from '../../base/bell.ts'
import type { Clock } from '../../base/clock.ts'
import type { ToldSigns } from '../../upstream/told.ts'
import { type Reachability, Unreachable } from '../../upstream/upstream.ts'
import { type DocumentStore, etagOf } from './documentstore.ts'
import type { Fetcher } from './fetcher.ts'
import { indexPlace, placeOf } from './place.ts'
import { acceptV2, placeV2 } from './signs.ts'

/** As kubectl spells them: `explain` reads JSON, what checks fields and options before a request reads protobuf. */
const accepts = ['application/json', 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf']

/** As often as discovery is looked at: what a definition adds is here soon after. */
const lookMs = 5 * 60_000
/** After one that failed, or while the API server is away and does not say when it is back. */
const retryMs = 60_000
/** A cluster has a few dozen group versions, one with hundreds of definitions a hundred more. */
const documentsMax = 500

type Parts = {
  readonly documentStore: DocumentStore
  readonly fetcher: Fetcher
  readonly reachability: Reachability
  readonly told: ToldSigns | undefined
  readonly clock: Clock
}

export class OpenApiMirror {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { reachability, told, clock } = this.#parts
    const bell = new Bell(clock)
    const deaf = told?.observe(() => bell.ring())
    const stop = reachability.observe((state) => {
      if (state === 'reachable') bell.ring()
    })
    while (!signal.aborted) {
      const isDone = reachability.state === 'reachable' && (await this.#look(signal))
      await bell.wait(signal, isDone ? lookMs : retryMs)
    }
    stop()
    deaf?.()
  }

  /** One at a time: a megabyte or two in all, behind which nothing else should wait. Answers whether everything was asked for. */
  async #look(signal: AbortSignal): Promise<boolean> {
    const { documentStore, fetcher } = this.#parts
    try {
      const index = await fetcher.look({ place: indexPlace, accept: '*/*', basis: '' })
      const content = index.kind === 'held' ? await documentStore.content(index.head) : undefined
      for (const { path, place, etag } of listed(content)) {
        for (const accept of accepts) {
          if (signal.aborted) return false
          if (etagOf(documentStore.find(place, accept)) === etag) continue
          await fetcher.fetch({ place, path, accept, basis: '' })
        }
      }
      await fetcher.look({ place: placeV2, accept: acceptV2, basis: '' })
      return true
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      return false
    }
  }
}

type Listed = { readonly path: string; readonly place: string; readonly etag: string }

/** What an index names, as far as it is what it should be. */
function listed(index: Buffer | undefined): Listed[] {
  const found: Listed[] = []
  for (const path of urlsIn(index)) {
    const [bare = '', query = ''] = path.split('?')
    const hash = new URLSearchParams(query).get('hash') ?? ''
    const place = placeOf(bare, hash)
    if (place?.startsWith(`${indexPlace}/`)) found.push({ path, place, etag: `"${hash}"` })
  }
  return found.slice(0, documentsMax)
}

function urlsIn(index: Buffer | undefined): string[] {
  try {
    const { paths } = JSON.parse(String(index)) as { paths: Record<string, { serverRelativeURL: unknown }> }
    return Object.values(paths).map(({ serverRelativeURL }) => String(serverRelativeURL))
  } catch {
    return []
  }
}
