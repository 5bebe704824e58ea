/** The command that grants an edge what it lacks, such that it can be pasted into a shell. Pure. */
import type { Caller } from '../kube/caller.ts'
import type { Scope } from '../kube/scope.ts'

/** Who the edge is to its API server, as far as roles go by it. */
export type EdgeSubject = Pick<Caller, 'name' | 'groups'>

/** Those of `deploy/edge-rbac.yaml`: what one edge of them lacks all do. */
const edgeGroups = ['ake:edges', 'system:serviceaccounts:ake-edges']

/** In a namespace a role for its objects, else one for those of all. */
export function granting(
  { group, resource, namespace }: Pick<Scope, 'group' | 'resource' | 'namespace'>,
  subject: EdgeSubject,
): string {
  const of = group === '' ? resource : `${resource}.${group}`
  const { flag, suffix } = bound(subject)
  // No name that deploy/ has: a role of it may be there, and bound to others.
  const name = quoted(`ake-edge-reads-${of}${suffix}`.replaceAll(/[/%]/g, '-'))
  const [role, place] = namespace === '' ? ['clusterrole', ''] : ['role', ` -n ${quoted(namespace)}`]
  const made = `kubectl create ${role} ${name}${place} --verb=get,list,watch --resource=${quoted(of)}`
  return `${made} && kubectl create ${role}binding ${name}${place} --${role}=${name} ${quoted(flag)}`
}

function bound({ name, groups }: EdgeSubject): { readonly flag: string; readonly suffix: string } {
  const shared = groups.find((one) => edgeGroups.includes(one))
  if (shared !== undefined) return { flag: `--group=${shared}`, suffix: '' }
  const account = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(name)?.[1]
  const flag = account === undefined ? `--user=${name}` : `--serviceaccount=${account}`
  return { flag, suffix: `-${account ?? name}` }
}

function quoted(word: string): string {
  return /^[\w.:=@,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
