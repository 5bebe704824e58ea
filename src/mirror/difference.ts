/** What a list found to differ from the copy. */
import type { Cache } from '../cache/cache.ts'
import type { Difference } from '../cache/intake.ts'
import type { Item } from '../cache/item.ts'
import type { Listing } from './listing.ts'

/** `followed`: everybody who watches has heard all that the copy holds, so that what is damaged here is damaged here only. */
export function differenceOf(
  cache: Cache,
  { version, objects }: Pick<Listing, 'version' | 'objects'>,
  followed: boolean,
): Difference & { readonly repaired: readonly Item[] } {
  const changed: Item[] = []
  const repaired: Item[] = []
  const gone: string[] = []
  for (const found of objects.values()) {
    if (found === 'same') continue
    const isWhole = followed && cache.isCorrupt(found.key) && found.version <= cache.version
    if (isWhole) repaired.push(found)
    else changed.push(found)
  }
  for (const item of [...cache.all(), ...[...cache.corrupt].map((key) => cache.peek(key) as Item)]) {
    const found = objects.get(item.key)
    if (found === undefined) gone.push(item.key)
    // Deleted and made again: two events, as for everybody who watched.
    else if (found !== 'same' && !cache.isCorrupt(item.key) && found.uid !== item.uid) gone.push(item.key)
  }
  return { version, changed, gone, repaired }
}
