/**
 * Name lookups for dialling. At most one per name is under way, because each blocks a thread of the pool that files are
 * read with, and without a network it blocks for long. The last addresses serve while the name server is away.
 */
import { type LookupAddress, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

type Found = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void
type Resolve = (name: string, found: Found) => void

const systemResolve: Resolve = (name, found) => lookup(name, { all: true }, found)

export function createLookup(resolve: Resolve = systemResolve): LookupFunction {
  const known = new Map<string, LookupAddress[]>()
  const waiting = new Map<string, Found[]>()
  return (name, options, callback) => {
    const found: Found = (error, addresses) => {
      const family = options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : (options.family ?? 0)
      const fitting = addresses.filter((address) => family === 0 || address.family === family)
      const none = fitting.length > 0 ? null : (error ?? Object.assign(new Error('no address'), { code: 'ENOTFOUND' }))
      if (options.all) callback(none, fitting)
      else callback(none, fitting[0]?.address ?? '', fitting[0]?.family)
    }
    const others = waiting.get(name)
    if (others !== undefined) {
      others.push(found)
      return
    }
    waiting.set(name, [found])
    resolve(name, (error, addresses) => {
      if (error === null && addresses.length > 0) known.set(name, addresses)
      const all = waiting.get(name) ?? []
      waiting.delete(name)
      for (const one of all) one(error, known.get(name) ?? [])
    })
  }
}
