/**
 * The API server reached directly, over TLS: one set of connections per address and name, so that no caller's certificate
 * ever carries another caller's request; credentials followed as their files change; one checker for all.
 */
import { createHash, type X509Certificate } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { type Address, Addresses, withBase } from './addresses.ts'
import { authoritiesOf } from './authorities.ts'
import { Checker } from './checker.ts'
import { upgradeOver } from './connect.ts'
import { type Credential, type CredentialLife, lifeOf, problemOf } from './credential.ts'
import type { Dial } from './dial.ts'
import { followFiles } from './files.ts'
import { FollowedProfile, type Renewal } from './followedprofile.ts'
import { bytesOf, requestHeaders, upgradeHeaders } from './headers.ts'
import type { KeptBody } from './keptbody.ts'
import { standardLimits, type UpstreamLimits } from './limits.ts'
import { type OwnCredential, onceMore } from './oncemore.ts'
import { Patience } from './patience.ts'
import { type Ask, Pool } from './pool.ts'
import { isBalancer, probe, throughProxy } from './probe.ts'
import { type Files, readUpstreams, type Upstreams } from './profile.ts'
import type { ForwardProxy } from './proxychoice.ts'
import { dialThrough } from './proxydial.ts'
import type { Sending } from './session.ts'
import {
  type Arrival,
  type Connected,
  type EdgeUpstream,
  type Gate,
  type Reachability,
  Unreachable,
  type UpstreamRequest,
  type UpstreamResponse,
} from './upstream.ts'
import { readWhole } from './whole.ts'

export type DirectParts = Files & {
  /** Every connection begins with it: TCP, or whatever carries bytes to the address. */
  readonly dial: Dial
  readonly probeEveryMs: number
  /** What the edge's own requests say of where they come from. */
  readonly userAgent: string
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<UpstreamLimits>
  /** Whether what answers is what is meant; without one whatever answers is. */
  readonly gate?: Gate
}

const sharedPool = 'shared' // tokens: no certificate, so any of them may share a connection
/** The API server ends a connection on which it refuses a credential as unknown: that must not be the one callers use. */
const strangersPool = 'strangers'

/** Interests come back together after an outage: one answer is for all that ask within this time. */
const confirmedMsMax = 500

/** Where a request goes, and with which token; `own`: by a credential that files bring. */
type Way = {
  readonly pool: Pool
  readonly token: string | undefined
  readonly own?: OwnCredential
}

export class DirectUpstream implements EdgeUpstream {
  readonly #parts: DirectParts
  readonly #limits: UpstreamLimits
  readonly #checker: Checker
  readonly #stopped = new AbortController()
  /** Pools that were replaced and still drain. */
  readonly #draining = new Set<Pool>()
  readonly #renewals = new Set<() => void>()
  readonly #profile: FollowedProfile
  #addresses: Addresses

  /** Rejects with a sentence when the files name no server to reach; a bad client credential does not stop it. */
  static async open(parts: DirectParts): Promise<DirectUpstream> {
    return new DirectUpstream(parts, await readUpstreams(parts))
  }

  private constructor(parts: DirectParts, upstreams: Upstreams) {
    const { clock, log, probeEveryMs } = parts
    this.#parts = parts
    this.#limits = { ...standardLimits, ...parts.limits }
    const renewed = (renewal: Renewal) => this.#renewed(renewal)
    this.#profile = new FollowedProfile({ ...parts, everyMs: this.#limits.rereadEveryMs, renewed }, upstreams)
    this.#addresses = this.#addressesOf(upstreams.urls)
    this.#checker = new Checker({
      probe: () => this.#addresses.probe(),
      everyMs: probeEveryMs,
      clock,
      log,
      limits: this.#limits,
      note: () => problemOf(this.#credential('edge') ?? {}, clock.now()),
    })
    this.#checker.observe((state) => {
      if (state !== 'unreachable') return
      for (const pool of this.#addresses.current.pools.values()) pool.giveUp(this.#checker.why)
    })
    this.#sayProxies()
  }

  get #upstreams(): Upstreams {
    return this.#profile.upstreams
  }

  get reachability(): Reachability {
    return this.#checker
  }

  get complaints(): readonly string[] {
    return this.#profile.complaints
  }

  addresses(): readonly { readonly url: string; readonly current: boolean; readonly why: string }[] {
    const { all, current } = this.#addresses
    return all.map((address) => {
      const why = throughProxy(address.why, this.#proxy(address)?.name)
      return { url: address.url.href, current: address === current, why }
    })
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const { body } = asked
    const isStream = body !== undefined && Symbol.asyncIterator in body
    const kept = isStream ? this.#way(asked).pool.keep(body) : undefined
    try {
      return await onceMore({
        ...{ asked, profile: this.#profile, clock: this.#parts.clock, way: () => this.#way(asked) },
        send: (way, asked) => this.#askBy(way, asked, kept),
        mayRepeat: () => kept?.isWhole !== false,
        leave: (answer) => answer.body.return?.(),
      })
    } finally {
      kept?.settle()
    }
  }

  async #askBy({ pool, token }: Way, asked: UpstreamRequest, kept?: KeptBody): Promise<UpstreamResponse> {
    const headers = requestHeaders(this.#headersOf(asked, token))
    const body = kept ?? (asked.body as Buffer | undefined)
    const answer = await this.#patiently(asked, (head) => pool.ask({ ...head, headers, body }))
    if (isBalancer(answer)) this.#checker.suspect(`nobody behind the load balancer (${answer.status})`)
    return answer
  }

  async connect(asked: UpstreamRequest): Promise<Connected> {
    return await onceMore({
      ...{ asked, profile: this.#profile, clock: this.#parts.clock, way: () => this.#way(asked) },
      send: (way, asked) => this.#connectBy(way, asked),
      // What comes with an upgrade is not kept.
      mayRepeat: () => asked.body === undefined,
      leave: (answer) => answer.socket.destroy(),
    })
  }

  #way(asked: UpstreamRequest): Way {
    return this.#connection(this.#addresses.current, asked)
  }

  async #connectBy({ pool, token }: Way, asked: UpstreamRequest): Promise<Connected> {
    const { url } = this.#addresses.current
    const headers = upgradeHeaders(this.#headersOf(asked, token))
    return await this.#patiently(asked, (head) => {
      const sending = { ...head, headers, body: asked.body }
      return upgradeOver({ pool, url, sending, stopped: this.#stopped.signal })
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = () => this.#stop()
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const { clock } = this.#parts
    const paths = () => this.#upstreams.files
    const changed = () => this.#profile.reread()
    await Promise.all([
      this.#checker.run(signal),
      followFiles({ paths, everyMs: this.#limits.followEveryMs, clock, changed }, signal),
    ])
  }

  async #patiently<T>(
    asked: UpstreamRequest,
    send: (head: Pick<Sending, 'method' | 'path' | 'patience'>) => Promise<T>,
  ): Promise<T> {
    if (this.#stopped.signal.aborted) throw new Unreachable('stopped', false)
    const { method, signal, headMsMax } = asked
    const patience = new Patience({ clock: this.#parts.clock, signal, headMsMax })
    try {
      const path = withBase(this.#addresses.current.url, asked.path)
      return await send({ method, path, patience })
    } catch (error) {
      patience.done()
      throw error
    }
  }

  #headersOf(asked: UpstreamRequest, token: string | undefined): Parameters<typeof requestHeaders>[0] {
    const agent = asked.passedOn === true ? undefined : this.#parts.userAgent
    return { headers: asked.headers, token, agent, bytes: bytesOf(asked) }
  }

  #connection(
    address: Address,
    { identity, byStranger = false }: Pick<UpstreamRequest, 'identity' | 'byStranger'>,
  ): Way {
    switch (identity.kind) {
      case 'edge': {
        const credential = this.#credential('edge') ?? {}
        return { pool: this.#pool(address, 'edge'), token: credential.token, own: { name: 'edge', credential } }
      }
      case 'token':
        return { pool: this.#pool(address, byStranger ? strangersPool : sharedPool), token: identity.token }
      case 'anonymous':
        return { pool: this.#pool(address, strangersPool), token: undefined }
      case 'named':
      case 'local':
        throw new Unreachable(`no credential is configured for "${identity.caller.name}"`, false)
      case 'certificate': {
        const name = `certificate/${identity.name}`
        const credential = this.#credential(name)
        // Not without a certificate: a refusal by the API server would count against a caller whose file is only missing.
        if (credential?.pair === undefined) {
          throw new Unreachable(credential?.missing ?? `no credential is configured for "${identity.name}"`, false)
        }
        return { pool: this.#pool(address, name), token: undefined, own: { name, credential } }
      }
    }
  }

  credentialVersion(name: string): string {
    const cert = this.#credential(`certificate/${name}`)?.pair?.cert
    return cert === undefined ? '' : createHash('sha256').update(cert).digest('base64')
  }

  certificateOf(name: string): X509Certificate | 'unusable' | undefined {
    const credential = this.#credential(`certificate/${name}`)
    return credential === undefined ? undefined : (credential.certificate ?? 'unusable')
  }

  credentials(): CredentialLife[] {
    return [...this.#upstreams.credentials].map(([name, credential]) => lifeOf(name, credential))
  }

  onRenewed(listener: () => void): () => void {
    this.#renewals.add(listener)
    return () => void this.#renewals.delete(listener)
  }

  #credential(name: string): Credential | undefined {
    return this.#upstreams.credentials.get(name)
  }

  #proxy({ url }: Address): ForwardProxy | undefined {
    return this.#upstreams.proxies.get(url.href)
  }

  #sayProxies(): void {
    for (const [url, { name }] of this.#upstreams.proxies) this.#parts.log.info('upstream.proxy', { url, proxy: name })
  }

  #pool(address: Address, name: string): Pool {
    const known = address.pools.get(name)
    if (known !== undefined) return known
    const { clock, dial, gate } = this.#parts
    const { trust } = this.#upstreams
    const proxy = this.#proxy(address)
    const pool: Pool = new Pool({
      dial: proxy === undefined ? dial : dialThrough(dial, proxy, trust),
      url: address.url,
      trust,
      pair: this.#credential(name)?.pair,
      clock,
      limits: this.#limits,
      lost: (why) => {
        // What strangers bring upon their connections says nothing about the line.
        if (name === strangersPool) return
        if (address === this.#addresses.current && address.pools.get(name) === pool) this.#checker.suspect(why)
      },
      // A connection in a caller's name cannot be asked as the edge: the edge asks over its own, once that one is made.
      admit:
        gate &&
        ((ask, server) => {
          const isOwn = name === 'edge'
          return gate.admit({ ...this.#arrival(address, isOwn ? ask : undefined), server, isOwn })
        }),
    })
    address.pools.set(name, pool)
    return pool
  }

  /**
   * Resolves if what answers now is what is meant: a connection that stays may lead elsewhere behind a gateway, and is then
   * cut with all the others. Rejects with `Unreachable`.
   */
  async confirm(): Promise<void> {
    const why = await this.#elsewhere(this.#addresses.current, confirmedMsMax)
    if (why === undefined) return
    this.#checker.suspect(why)
    throw new Unreachable(why, false)
  }

  async #elsewhere(address: Address, withinMs?: number): Promise<string | undefined> {
    const why = await this.#parts.gate?.look(this.#arrival(address), withinMs)
    if (why === undefined) return undefined
    for (const pool of address.pools.values()) pool.destroy(why)
    address.pools.clear()
    return `${address.url.origin}: ${why}`
  }

  #arrival(address: Address, ask: Ask = (sending) => this.#pool(address, 'edge').ask(sending)): Arrival {
    const { clock, userAgent } = this.#parts
    const { urls, trust } = this.#upstreams
    return {
      address: address.url.href,
      server: '',
      isOwn: true,
      addresses: urls.map(({ href }) => href),
      authorities: authoritiesOf(trust),
      get: async (path) => {
        // One that is configured no more gets no new connections.
        if (!this.#addresses.all.includes(address)) throw new Unreachable('another address is used', false)
        const token = this.#credential('edge')?.token
        const headers = requestHeaders({ headers: { accept: 'application/json' }, token, agent: userAgent, bytes: 0 })
        const patience = new Patience({ clock, headMsMax: this.#limits.dialMsMax })
        try {
          const sending = { method: 'GET', path: withBase(address.url, path), headers, body: undefined, patience }
          const answer = await ask(sending)
          return { status: answer.status, body: await readWhole(answer, this.#limits.probeBytesMax) }
        } finally {
          patience.done()
        }
      },
    }
  }

  #addressesOf(urls: readonly URL[]): Addresses {
    const { clock, log } = this.#parts
    return new Addresses({
      urls,
      probe: async (address) => {
        const { pool, token } = this.#connection(address, { identity: { kind: 'edge' } })
        const path = withBase(address.url, '/readyz')
        const startedMs = clock.steady()
        const agent = this.#parts.userAgent
        const proxy = this.#proxy(address)?.name
        const sign = await probe({ pool, path, token, agent, proxy, clock, limits: this.#limits })
        for (const one of address.pools.values()) {
          if (sign.kind === 'probe answered') one.forgive()
          // After reachability returns, connections whose far end no longer knows them must not be used.
          else if (sign.kind === 'probe failed' && !sign.certain && !sign.alive && one !== pool) one.doubt(startedMs)
        }
        if (sign.kind !== 'probe answered') return sign
        const why = await this.#elsewhere(address).catch(() => undefined)
        return why === undefined ? sign : { kind: 'probe failed', why, certain: true, alive: false }
      },
      moved: (from, to) => {
        log.info('upstream.moved', { from: from.url.href, to: to.url.href, why: from.why })
        for (const name of [...from.pools.keys()]) this.#replace(from, name, 'another address is used')
      },
    })
  }

  /** The next request gets new connections; those there were get some time to end. */
  #replace(address: Address, name: string, why: string): void {
    const pool = address.pools.get(name)
    if (pool === undefined) return
    address.pools.delete(name)
    this.#draining.add(pool)
    pool.drain(why, () => this.#draining.delete(pool))
  }

  #renewed({ names, isElsewhere, hasOtherUrls, hasOtherWay }: Renewal): void {
    if (this.#stopped.signal.aborted) return
    const replaced = isElsewhere ? [...names, sharedPool, strangersPool] : names
    this.#parts.log.info('upstream.renewed', { names: replaced.join(' ') })
    for (const address of this.#addresses.all) {
      for (const name of replaced) this.#replace(address, name, 'the credential was renewed')
    }
    if (hasOtherUrls) this.#addresses = this.#addressesOf(this.#upstreams.urls)
    if (hasOtherWay) this.#sayProxies()
    this.#checker.probeAnew()
    for (const listener of this.#renewals) listener()
  }

  #stop(): void {
    this.#stopped.abort()
    const pools = this.#addresses.all.flatMap(({ pools }) => [...pools.values()])
    for (const pool of [...pools, ...this.#draining]) pool.destroy('stopped')
  }
}
