/**
 * Whom a request asks to be taken for, by its headers, and what has to be allowed for that: the rules of kube-apiserver for the
 * verb `impersonate`. An edge leaves its narrower verbs, which depend on its version, to it; for an authority they are in
 * impersonationways.ts.
 */
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { badRequest, type StatusError } from '../../kube/status.ts'

export type Impersonation = {
  readonly caller: Caller
  /** Each has to be allowed, in this order. */
  readonly asked: readonly Impersonated[]
}

/** One part of the other caller. */
export type Impersonated = {
  readonly verb: string
  readonly group: string
  readonly version: 'v1'
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
}

const prefix = 'impersonate-'
const extraPrefix = 'extra-'
const authentication = 'authentication.k8s.io'
const authenticated = 'system:authenticated'
const unauthenticated = 'system:unauthenticated'
const account =
  /^system:serviceaccount:([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?):([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)$/

/** Of names and values in turn, as they came. Refuses what names no user. */
export function impersonationOf(rawHeaders: readonly string[]): Impersonation | undefined {
  const wanted = wantedBy(rawHeaders)
  return wanted && { caller: callerAs(wanted), asked: partsOf(wanted, 'impersonate', '') }
}

/** The caller that the headers name, as they say it. */
export function wantedBy(rawHeaders: readonly string[]): WantedCaller | undefined {
  let [user, uid] = ['', '']
  const groups: string[] = []
  const extras = new Map<string, string[]>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const header = (rawHeaders[at] as string).toLowerCase()
    if (!header.startsWith(prefix)) continue
    const what = header.slice(prefix.length)
    // Bytes to HTTP, and texts to Go.
    const value = Buffer.from(rawHeaders[at + 1] as string, 'latin1').toString('utf8')
    if (what === 'user') user ||= value
    else if (what === 'uid') uid ||= value
    else if (what === 'group') groups.push(value)
    else if (what.startsWith(extraPrefix)) {
      const key = unescaped(what.slice(extraPrefix.length))
      extras.set(key, [...(extras.get(key) ?? []), value])
    }
  }
  const isMore = uid !== '' || groups.length > 0 || extras.size > 0
  const wanted = { name: user, uid, groups, extra: Object.fromEntries(extras) }
  if (user === '' && isMore) throw withoutUser(wanted)
  return user === '' ? undefined : wanted
}

/** As the headers say it. */
export type WantedCaller = Required<Caller>

/** The namespace and the name of a service account, if it is one. */
export function accountIn(user: string): readonly [namespace: string, name: string] | undefined {
  const [, namespace, name] = account.exec(user) ?? []
  return namespace === undefined || name === undefined ? undefined : [namespace, name]
}

/** With the groups that go without saying. */
export function callerAs({ name, uid, groups, extra }: WantedCaller): Caller {
  const namespace = accountIn(name)?.[0]
  const isFixed = namespace !== undefined && groups.length === 0
  const all = isFixed ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`] : [...groups]
  if (name === 'system:anonymous') {
    if (!all.includes(unauthenticated)) all.push(unauthenticated)
  } else if (!all.includes(unauthenticated) && !all.includes(authenticated)) all.push(authenticated)
  return { name, uid, groups: all, ...(Object.keys(extra).length === 0 ? {} : { extra }) }
}

/** What has to be allowed; users and groups are of that API group, which is another for each kind of verb. */
export function partsOf({ name: user, uid, groups, extra }: WantedCaller, verb: string, of: string): Impersonated[] {
  const ask = (group: string, resource: string, name: string, more: Partial<Impersonated> = {}): Impersonated => ({
    ...{ verb, group, version: 'v1', resource, subresource: '', namespace: '', name },
    ...more,
  })
  const [namespace, name] = accountIn(user) ?? []
  return [
    name === undefined ? ask(of, 'users', user) : ask(of, 'serviceaccounts', name, { namespace: namespace ?? '' }),
    ...(uid === '' ? [] : [ask(authentication, 'uids', uid)]),
    ...groups.map((group) => ask(of, 'groups', group)),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => ask(authentication, 'userextras', value, { subresource: key })),
    ),
  ]
}

/** A key that is no escaped text stays as it is. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

/** In kube-apiserver's words, which print a Go value. */
function withoutUser({ uid, groups, extra }: WantedCaller): StatusError {
  const list = (texts: readonly string[]) => `[]string{${texts.map(quoted).join(', ')}}`
  const keys = Object.entries(extra).sort(([a], [b]) => (a < b ? -1 : 1))
  const map = `map[string][]string${keys.length === 0 ? '(nil)' : `{${keys.map(([key, all]) => `${quoted(key)}:${list(all)}`).join(', ')}}`}`
  const info = `Name:"", UID:${quoted(uid)}, Groups:${groups.length === 0 ? '[]string(nil)' : list(groups)}, Extra:${map}`
  return badRequest(`requested &user.DefaultInfo{${info}} without impersonating a user name`)
}
