/** Which paths are documents, where each is kept, and which of them fall with another. Pure. */

/** The index of OpenAPI v3. It has one form whatever is asked. */
export const indexPlace = '/openapi/v3'
/** Ends the place of a document that is asked for by its hash: the same but for how long it may be cached. */
const hashed = '?hash'
const others = new Set(['/openapi/v2', indexPlace, '/version', '/openid/v1/jwks', '/.well-known/openid-configuration'])

/** Documents are asked for in the edge's own name: only by what no proxy on the way could take for another path. */
const plainPath = /^(\/[\w-][\w.-]*|\/\.well-known)+\/?$/

/** Where a document is kept, undefined if it is none. Queries other than the hash (`timeout`, `pretty`) change nothing. */
export function placeOf(path: string, hash: string): string | undefined {
  if (!plainPath.test(path)) return undefined
  if (path.startsWith('/openapi/v3/')) return hash === '' ? path : `${path}${hashed}`
  const place = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  if (isDiscovery(place)) return place
  return others.has(place) && !(place !== path && place.startsWith('/openapi/')) ? place : undefined
}

/** Whether a path is one that `Documents.answer` speaks for. */
export function isDocument(path: string): boolean {
  return placeOf(path, '') !== undefined
}

/** A place of discovery, without a slash at its end. */
export function isDiscovery(place: string): boolean {
  return /^\/(api|apis)$|^\/api\/[^/]+$|^\/apis\/[^/]+(\/[^/]+)?$/.test(place)
}

export function isHashed(place: string): boolean {
  return place.endsWith(hashed)
}

/** Of OpenAPI v3: the same document with a hash, or without; undefined for any other. */
export function twinOf(place: string): string | undefined {
  if (!place.startsWith('/openapi/v3/')) return undefined
  return isHashed(place) ? place.slice(0, -hashed.length) : `${place}${hashed}`
}

/** The two documents without which nothing is known: a server that says that they do not exist is no API server. */
export function isRoot(place: string): boolean {
  return place === '/api' || place === '/apis'
}

/** Whether a document exists only as long as another one does: a group's versions and their OpenAPI go with the group. */
export function isBeneath(place: string, other: string): boolean {
  const [bare = ''] = place.split('?')
  const [of = ''] = other.split('?')
  return [of, `/openapi/v3${of}`].some((path) => bare === path || bare.startsWith(`${path}/`))
}
