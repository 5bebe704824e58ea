/**
 * The addresses of one API server in the order of preference, and which one is in use: the first that answers. It moves
 * on when the current one is gone, and back when an earlier one has answered for a while.
 */
import type { Sign } from './judgement.ts'
import type { Pool } from './pool.ts'
import { answersWell } from './upstream.ts'

export type Address = {
  readonly url: URL
  /** Connections by the name they act in; made when first needed. */
  readonly pools: Map<string, Pool>
  why: string
  /** Probes in a row. */
  answered: number
  failed: number
}

/** An earlier address has to answer this often before it is used again: moving costs every stream its connection. */
const returnProbes = 3

type Parts = {
  readonly urls: readonly URL[]
  readonly probe: (address: Address) => Promise<Sign>
  readonly moved: (from: Address, to: Address) => void
}

export class Addresses {
  readonly #parts: Parts
  readonly all: readonly Address[]
  #current: Address

  constructor(parts: Parts) {
    this.#parts = parts
    this.all = parts.urls.map((url) => ({ url, pools: new Map(), why: 'not asked yet', answered: 0, failed: 0 }))
    const [first] = this.all
    if (first === undefined) throw new Error('no address of an API server is given')
    this.#current = first
  }

  get current(): Address {
    return this.#current
  }

  /** One round of probes: the sign of the address that is in use when it ends. */
  async probe(): Promise<Sign> {
    const before = this.#current
    const at = this.all.indexOf(before)
    const earlier = this.all.slice(0, at)
    const [own, ...others] = await Promise.all([before, ...earlier].map((address) => this.#probe(address)))
    if (own === undefined) throw new Error('unreachable: the current address is always probed')
    if (own.kind === 'probe answered') {
      const back = earlier.find((address) => address.answered >= returnProbes)
      if (back === undefined) return own
      this.#move(back)
      return others[earlier.indexOf(back)] ?? own
    }
    const gone = own.kind === 'probe failed' && !own.alive && (own.certain || before.failed > 1)
    if (!gone) return own
    const later = this.all.slice(at + 1)
    const signs = [...others, ...(await Promise.all(later.map((address) => this.#probe(address))))]
    const found = signs.findIndex((sign) => sign.kind === 'probe answered')
    const to = [...earlier, ...later][found]
    if (to === undefined) return own
    this.#move(to)
    return signs[found] ?? own
  }

  async #probe(address: Address): Promise<Sign> {
    const sign = await this.#parts.probe(address)
    const answered = sign.kind === 'probe answered'
    address.answered = answered ? address.answered + 1 : 0
    address.failed = answered ? 0 : address.failed + 1
    address.why = answered ? (sign.note ?? answersWell) : sign.why
    return sign
  }

  #move(to: Address): void {
    const from = this.#current
    this.#current = to
    this.#parts.moved(from, to)
  }
}

/** An address may have a path before the API's own, as behind some gateways. */
export function withBase(url: URL, path: string): string {
  return url.pathname === '/' ? path : `${url.pathname.replace(/\/$/, '')}${path}`
}
