/**
 * Room in a map that remembers: a hit only stamps its entry, and when the map is full an eighth of it goes at once, the
 * entries that were not used for longest. That costs a sort now and then instead of a list to keep in order on every read.
 */

export function evictOldest<K, V extends { readonly usedAt: number }>(
  held: Map<K, V>,
  entriesMax: number,
  gone: (key: K, value: V) => void = () => {},
): void {
  if (held.size <= entriesMax) return
  const byUse = [...held].sort(([, a], [, b]) => a.usedAt - b.usedAt)
  const keep = entriesMax - (entriesMax >> 3)
  for (const [key, value] of byUse.slice(0, byUse.length - keep)) {
    held.delete(key)
    gone(key, value)
  }
}
