/** The service `default/kubernetes`, by whose addresses pods find an API server, as far as it is mirrored. */
import { isIP } from 'node:net'
import type { Item } from '../cache/item.ts'
import { scopeOfName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'

const key = 'default/kubernetes'
const scope = scopeOfName({ group: '', version: 'v1', resource: 'services', namespace: 'default' }, 'kubernetes')

export class KubernetesService {
  readonly #interests: Pick<Interests, 'holding'>
  #read: { readonly item: Item; readonly addresses: readonly string[] } | undefined

  constructor(interests: Pick<Interests, 'holding'>) {
    this.#interests = interests
  }

  /** One for each family of the cluster. */
  get addresses(): readonly string[] {
    const cache = this.#interests.holding(scope, key)?.readable
    const item = cache?.isCorrupt(key) === true ? undefined : cache?.get(key)
    if (item === undefined) return this.#read?.addresses ?? []
    if (this.#read?.item !== item) this.#read = { item, addresses: addressesIn(item.bytes) }
    return this.#read.addresses
  }
}

function addressesIn(bytes: Buffer): string[] {
  try {
    const { clusterIP, clusterIPs = [clusterIP] } = JSON.parse(bytes.toString()).spec
    return clusterIPs.filter((one: unknown) => typeof one === 'string' && isIP(one) !== 0)
  } catch {
    // What is taken in was looked at as far as reading needs: one without a spec has no address.
    return []
  }
}
