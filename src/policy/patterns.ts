/** Names as policies write them: exact, or with one `*` at the end, which stands for whatever follows; alone it stands for every name. */

/** Undefined: `*` stands where it may not, or there is nothing. */
export function patternFault(pattern: string): string | undefined {
  if (pattern === '') return 'is empty'
  const star = pattern.indexOf('*')
  return star < 0 || star === pattern.length - 1 ? undefined : 'has a "*" that is not its last character'
}

export function matches(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

/** What the cluster itself is made of. */
const own = 'system:'

/**
 * Of users and groups: names of the cluster's own (`system:…`) are reached only by what is written with that, so that `*` means
 * people and not the controllers.
 */
export function matchesIdentity(pattern: string, name: string): boolean {
  return matches(pattern, name) && (!name.startsWith(own) || pattern.startsWith(own))
}
