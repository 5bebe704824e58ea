/**
 * Connections by where they come from, so that one source gives way to others before these do. A source is an IPv4 address, or the first
 * half of an IPv6 address, of which a single machine has all the rest. No source has a fixed part: many edges behind one NAT, or behind a balancer
 * that hides addresses, may have everything as long as no other source wants any of it, and an equal part then.
 */
import { isIPv6 } from 'node:net'

export class SourceShares<One extends { readonly source: string }> {
  readonly #bySource = new Map<string, Set<One>>()
  /** Sources that have one, two and so on: the largest is found at once, however many there are. */
  readonly #byCount: Set<string>[] = []

  of(source: string): number {
    return this.#bySource.get(source)?.size ?? 0
  }

  add(one: One): void {
    const { source } = one
    const all = this.#bySource.get(source) ?? new Set()
    this.#bySource.set(source, all)
    const before = all.size
    this.#counted(source, before, all.add(one).size)
  }

  delete(one: One): void {
    const { source } = one
    const all = this.#bySource.get(source)
    if (all?.delete(one) !== true) return
    this.#counted(source, all.size + 1, all.size)
    if (all.size === 0) this.#bySource.delete(source)
  }

  /** Of a source that has the most, in the order in which they came. */
  largest(): ReadonlySet<One> {
    const [source] = this.#byCount.at(-1) ?? []
    return this.#bySource.get(source ?? '') ?? new Set()
  }

  /** The counts of a source go up and down by one, so that the last set has a source in it once the empty ones behind it are gone. */
  #counted(source: string, before: number, count: number): void {
    if (before > 0) this.#byCount[before - 1]?.delete(source)
    if (count > 0) {
      this.#byCount[count - 1] ??= new Set()
      this.#byCount[count - 1]?.add(source)
    }
    while (this.#byCount.at(-1)?.size === 0) this.#byCount.pop()
  }
}

/** As above, of an address as a socket has it. */
export function sourceOf(address = ''): string {
  const [plain = ''] = address.split('%')
  if (!isIPv6(plain)) return plain
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined) return mapped
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const behind = tail === undefined || tail === '' ? 0 : tail.split(':').length
  // Where zeros are left out they may be among the first four groups.
  const zeros = tail === undefined ? 0 : 8 - groups.length - behind
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...(tail ?? '').split(':')]
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
