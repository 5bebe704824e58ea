/**
 * The headers by which an API server takes a request of the hub for another caller's. Where it constrains impersonation (Kubernetes 1.36) a node or a
 * service account is named alone, and has the groups that all of its kind have; any other user is named with its groups. Where it does
 * not, each caller is named with its groups.
 */
import { accountIn } from '../../access/authenticate/impersonation.ts'
import type { Caller } from '../../kube/caller.ts'
import { dnsSubdomainFaults } from '../../kube/names.ts'
import type { Headers } from '../../upstream/upstream.ts'
import { mastersGroup } from './callers.ts'

const authenticated = 'system:authenticated'
const unauthenticated = 'system:unauthenticated'
const nodePrefix = 'system:node:'

/** What HTTP would change on the way (white space at the ends) or end the header with would name another caller. */
const told = /^[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/
/** Kubernetes reads keys in lower case, whatever was sent. */
const extraKey = /^[^A-Z]+$/

/** A sentence where it cannot be told so. */
export function expressed(caller: Caller, isConstrained: boolean): Headers | string {
  const { name, uid, groups, extra = {} } = caller
  if (groups.includes(mastersGroup)) return `a hub speaks for no member of ${mastersGroup}`
  const kind = kindOf(name)
  const isAlone = isUsual(caller, kind)
  // Without the group of nodes a node would have no right of one, where only the constrained way adds it.
  if (isAlone && (isConstrained || kind?.what === 'account')) return withTold({ 'impersonate-user': name })
  if (isConstrained && kind !== undefined)
    return 'a node or a service account can only be spoken for with the groups of its kind, and nothing besides'
  const more = Object.entries(extra).filter(
    ([key]) => kind === undefined || !key.startsWith('authentication.kubernetes.io/'),
  )
  if (!more.every(([key]) => extraKey.test(key))) return 'a key of its extra cannot be told in a header'
  return withTold({
    'impersonate-user': name,
    ...(uid === '' ? {} : { 'impersonate-uid': uid }),
    ...listed('impersonate-group', spokenGroups(caller)),
    ...Object.fromEntries(more.flatMap(([key, values]) => Object.entries(listed(extraHeader(key), values)))),
  })
}

/** Those that the API server does not add by itself. */
function spokenGroups({ name, groups }: Caller): readonly string[] {
  const added = name === 'system:anonymous' ? unauthenticated : groups.includes(unauthenticated) ? '' : authenticated
  return groups.filter((group) => group !== added)
}

type SpecialUser = { readonly what: 'node' | 'account'; readonly groups: readonly string[] }

function kindOf(name: string): SpecialUser | undefined {
  const [namespace] = accountIn(name) ?? []
  if (namespace !== undefined)
    return { what: 'account', groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, authenticated] }
  const isNode = name.startsWith(nodePrefix) && dnsSubdomainFaults(name.slice(nodePrefix.length)).length === 0
  return isNode ? { what: 'node', groups: ['system:nodes', authenticated] } : undefined
}

/** Whether it is as all of its kind are; what names its credential does not count. */
function isUsual({ uid, groups, extra = {} }: Caller, kind: SpecialUser | undefined): boolean {
  if (kind === undefined || uid !== '') return false
  if (Object.keys(extra).some((key) => !key.startsWith('authentication.kubernetes.io/'))) return false
  const [theirs, usual] = [new Set(groups), new Set(kind.groups)]
  return theirs.size === usual.size && [...theirs].every((group) => usual.has(group))
}

function listed(name: string, values: readonly string[]): Record<string, readonly string[]> {
  return values.length === 0 ? {} : { [name]: values }
}

/** Bytes that may stand in no header's name are escaped, as Kubernetes reads them. */
function extraHeader(key: string): string {
  const escaped = [...Buffer.from(key)].map((byte) => {
    const character = String.fromCharCode(byte)
    return /[a-z0-9._-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  })
  return `impersonate-extra-${escaped.join('')}`
}

/** Texts to Go, and bytes to HTTP. */
function withTold(headers: Readonly<Record<string, string | readonly string[]>>): Headers | string {
  const found: Record<string, string | readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    const values = [value].flat().map((one) => Buffer.from(one, 'utf8').toString('latin1'))
    if (!values.every((one) => told.test(one))) return 'its name, or a group of it, cannot be told in a header'
    found[name] = values.length === 1 ? (values[0] as string) : values
  }
  return found
}
