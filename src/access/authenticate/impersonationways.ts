/**
 * The ways in which a caller may be taken for another, in the order in which kube-apiserver 1.36 tries them: narrow ones, for which
 * also the request itself has to be allowed by a verb of its own (`impersonate-on:user-info:list`), then the verb `impersonate`.
 */
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { dnsSubdomainFaults } from '../../kube/names.ts'
import { accountIn, callerAs, type Impersonated, partsOf, type WantedCaller } from './impersonation.ts'

export type ImpersonationWay = {
  readonly name: string
  readonly caller: Caller
  /** Stands before the verb of the request, which has to be allowed so; '' where nothing is asked of it. */
  readonly on: string
  /** Each has to be allowed, in this order. */
  readonly asked: readonly Impersonated[]
  /** What no right can make good, told as a denial of that question. */
  readonly never?: { readonly asked: Impersonated; readonly why: string } | undefined
}

const authentication = 'authentication.k8s.io'
const nodeName = 'authentication.kubernetes.io/node-name'
const nodePrefix = 'system:node:'

export function impersonationWays(wanted: WantedCaller, requestor: Caller): readonly ImpersonationWay[] {
  const { name, uid, groups, extra } = wanted
  const isNameAlone = uid === '' && groups.length === 0 && Object.keys(extra).length === 0
  const node = nodeIn(name)
  const isAccount = accountIn(name) !== undefined
  const ways: ImpersonationWay[] = []
  if (node !== undefined && isNameAlone) {
    const own = requestor.extra?.[nodeName]
    const isItsNode = accountIn(requestor.name) !== undefined && own?.length === 1 && own[0] === node
    // Whichever node it is, an account on it is on its own.
    if (isItsNode) ways.push(nodeWay('associated-node', wanted, '*'))
    ways.push(nodeWay('arbitrary-node', wanted, node))
  }
  if (isAccount && isNameAlone) ways.push(narrowWay('serviceaccount', wanted))
  if (node === undefined && !isAccount) ways.push(narrowWay('user-info', wanted))
  ways.push({ name: '', caller: callerAs(wanted), on: '', asked: partsOf(wanted, 'impersonate', '') })
  return ways
}

function narrowWay(name: string, wanted: WantedCaller): ImpersonationWay {
  const asked = partsOf(wanted, `impersonate:${name}`, authentication)
  const never = neverIn(wanted, asked[0] as Impersonated)
  const last = asked.findIndex(({ resource }) => resource === never?.asked.resource)
  return {
    ...{ name, caller: callerAs(wanted), on: `impersonate-on:${name}:`, never },
    asked: last < 0 ? asked : asked.slice(0, last),
  }
}

/** A node has the group of nodes, and no other. */
function nodeWay(name: string, wanted: WantedCaller, node: string): ImpersonationWay {
  const [user] = partsOf(wanted, `impersonate:${name}`, authentication)
  const caller = callerAs({ ...wanted, groups: ['system:nodes'] })
  const asked = [{ ...(user as Impersonated), resource: 'nodes', name: node }]
  return { name, caller, on: `impersonate-on:${name}:`, asked }
}

function neverIn({ groups, extra }: WantedCaller, like: Impersonated): ImpersonationWay['never'] {
  const at = (resource: string, name = ''): Impersonated => ({ ...like, resource, name, namespace: '' })
  if (groups.includes('')) return { asked: at('groups'), why: 'impersonating the empty string group is not allowed' }
  if (groups.includes('system:masters')) {
    const why = 'impersonating the system:masters group is not allowed'
    return { asked: at('groups', 'system:masters'), why }
  }
  for (const [key, values] of Object.entries(extra)) {
    const why = extraFault(key, values)
    if (why !== undefined) return { asked: at('userextras'), why }
  }
  return undefined
}

function extraFault(key: string, values: readonly string[]): string | undefined {
  if (key === '') return 'impersonating the empty string key in extra is not allowed'
  const slash = key.indexOf('/')
  if (slash <= 0 || slash === key.length - 1) {
    const why = `extra.key: Invalid value: ${quoted(key)}: must be a domain-prefixed path (such as "acme.io/foo")`
    return `impersonating an invalid key in extra is not allowed: ${why}`
  }
  const [fault] = dnsSubdomainFaults(key.slice(0, slash))
  if (fault !== undefined) {
    const why = `extra.key: Invalid value: ${quoted(key.slice(0, slash))}: ${fault}`
    return `impersonating an invalid key in extra is not allowed: ${why}`
  }
  if (key !== key.toLowerCase()) return `impersonating a non-lowercase key in extra is not allowed: ${quoted(key)}`
  return values.includes('') ? 'impersonating the empty string value in extra is not allowed' : undefined
}

function nodeIn(user: string): string | undefined {
  if (!user.startsWith(nodePrefix)) return undefined
  const name = user.slice(nodePrefix.length)
  return dnsSubdomainFaults(name).length === 0 ? name : undefined
}
