/**
 * The way to the API server as callers use it, divided among them: each request that is passed on holds a stream of a few
 * connections that all callers with tokens share, a watch or a log for hours. A caller that has its share waits alone.
 */
import type { Access } from '../../access/access.ts'
import type { Caller } from '../../kube/caller.ts'
import { tooManyRequests } from '../../kube/status.ts'
import type {
  Connected,
  Identity,
  NamedIdentity,
  Speaking,
  Upstream,
  UpstreamRequest,
  UpstreamResponse,
} from '../../upstream/upstream.ts'
import type { Request } from '../endpoint.ts'
import { type Holder, strangers } from '../holder.ts'
import { bearerIdentity } from '../identify.ts'
import { placesOf, Shares, type Whose } from '../shares.ts'

/** The callers that tokens name, by what the API server said of them. */
export function tokenCallers(access: Pick<Access, 'held' | 'caller'>): Whose {
  const identityOf = ({ peer, headers }: Request): Identity => bearerIdentity(peer, headers)
  return {
    held: (request) => {
      const identity = identityOf(request)
      return identity.kind === 'token' ? nameOf(access.held(identity)) : undefined
    },
    ask: async (request) => {
      const identity = identityOf(request)
      return identity.kind === 'token' ? nameOf(await access.caller(identity)) : undefined
    },
  }
}

function nameOf(caller: Caller | undefined): string | undefined {
  return caller === undefined ? undefined : `caller ${caller.name} ${caller.uid}`
}

type Parts = {
  readonly upstream: Upstream
  readonly access: Pick<Access, 'held'>
  /** Requests with the API server at the same time, and what each may hold here before it counts for more than one. */
  readonly limits: { readonly passedMax: number; readonly requestBytes: number }
}

export class FairUpstream implements Upstream {
  readonly #parts: Parts
  readonly #shares: Shares

  constructor(parts: Parts) {
    this.#parts = parts
    this.#shares = new Shares(parts.limits.passedMax)
  }

  get reachability(): Upstream['reachability'] {
    return this.#parts.upstream.reachability
  }

  speaksFor(identity: NamedIdentity): Speaking {
    return this.#parts.upstream.speaksFor?.(identity) ?? { yes: false, why: '' }
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const holder = this.#holderOf(asked.identity)
    const leave = this.#enter(holder, asked.path)
    try {
      const answer = await this.#parts.upstream.ask({ ...asked, byStranger: holder === strangers })
      return { ...answer, body: new Counted(answer.body, leave) }
    } catch (error) {
      leave()
      throw error
    }
  }

  async connect(asked: UpstreamRequest): Promise<Connected> {
    const holder = this.#holderOf(asked.identity)
    const leave = this.#enter(holder, asked.path)
    try {
      const connected = await this.#parts.upstream.connect({ ...asked, byStranger: holder === strangers })
      if (connected.socket.closed) leave()
      else connected.socket.once('close', leave)
      return connected
    } catch (error) {
      leave()
      throw error
    }
  }

  addresses(): ReturnType<Upstream['addresses']> {
    return this.#parts.upstream.addresses()
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#parts.upstream.run(signal)
  }

  #enter(holder: Holder, path: string): () => void {
    const places = placesOf(path, this.#parts.limits.requestBytes)
    if (!this.#shares.take(holder, places)) {
      throw tooManyRequests('too many requests of this caller are with the API server', 1)
    }
    let inside = true
    return () => {
      if (inside) this.#shares.give(holder, places)
      inside = false
    }
  }

  #holderOf(identity: Identity): Holder {
    if (identity.kind === 'edge') return { standing: 'own', name: 'edge' }
    if (identity.kind === 'certificate') return { standing: 'known', name: `certificate ${identity.name}` }
    const isKnown = identity.kind === 'token' || identity.kind === 'named'
    const name = nameOf(isKnown ? this.#parts.access.held(identity) : undefined)
    return name === undefined ? strangers : { standing: 'known', name }
  }
}

/** Tells when it is not read any longer. */
class Counted implements AsyncIterableIterator<Buffer> {
  readonly #body: AsyncIterableIterator<Buffer>
  readonly #over: () => void

  constructor(body: AsyncIterableIterator<Buffer>, over: () => void) {
    this.#body = body
    this.#over = over
  }

  async next(): Promise<IteratorResult<Buffer>> {
    try {
      const result = await this.#body.next()
      if (result.done === true) this.#over()
      return result
    } catch (error) {
      this.#over()
      throw error
    }
  }

  async return(): Promise<IteratorResult<Buffer>> {
    this.#over()
    await this.#body.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
